"""Votes and annotators: what is kept of an annotation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from schemas.documents.base import Text


class Question(StrEnum):
    """The questions of the protocol, Q1 to Q3."""

    COHERENT = "coherent"
    """Coherence of the sentence: is it grammatical and free of contradictions?"""
    FIRST = "first"
    """Reference to the first occupation: can the pronoun mean the one that is mentioned first?"""
    SECOND = "second"
    """Reference to the second occupation: can the pronoun mean the one that is mentioned second?"""


class Answer(StrEnum):
    """The entries of the column ``answer``."""

    YES = "yes"
    NO = "no"
    WITHDRAWN = "withdrawn"
    """No answer: the annotator took the earlier one back, and the next one counts."""


class AnnotatorKind(StrEnum):
    """The kinds of annotators."""

    HUMAN = "human"
    MODEL = "model"


class Status(StrEnum):
    """The standings of an annotator; only the votes of active ones count."""

    ACTIVE = "active"
    UNTESTED = "untested"
    """No entrance test, or an unfinished one."""
    FAILED = "failed"
    """Too low a score in the entrance test."""
    EXCLUDED = "excluded"
    """Excluded by whoever runs the annotation; the reason says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """The answer of a person or model to one question; a row of ``votes.csv``."""

    item_id: Text
    pair_id: Text
    annotator_id: Text
    question: Question
    answer: Answer
    submitted_at: str
    """Time in UTC, as ISO 8601; empty if unknown."""
    source: str
    """Place where the vote was cast, such as ``label-studio:export.json``."""

    @property
    def key(self) -> VoteKey:
        """The identity of the vote: nobody has two on one question."""
        return (self.item_id, self.annotator_id, self.question)


VoteKey: TypeAlias = tuple[str, str, Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """A person or model that votes; a row of ``annotators.csv``."""

    annotator_id: Text
    kind: AnnotatorKind
    entrance: str = ""
    """Score in the entrance test, such as ``17/20``; empty if it was not finished."""
    status: Status = Status.UNTESTED
    reason: str = ""


class Ballot(NamedTuple):
    """The answers of one annotator to the questions about one sentence; None if there is none."""

    coherent: bool | None
    first: bool | None
    second: bool | None

    @property
    def is_complete(self) -> bool:
        """True if nothing is left to ask: the sentence is incoherent, or all questions are answered."""
        return self.coherent is False or None not in self

    @classmethod
    def of(cls, answers: Mapping[Question, Answer]) -> Ballot:
        """Return answers as a ballot; who finds a sentence incoherent says nothing about its pronoun."""
        coherent, *others = (
            None if answers.get(question) not in (Answer.YES, Answer.NO) else answers[question] is Answer.YES
            for question in Question
        )
        return cls(coherent, *others) if coherent else cls(coherent, None, None)


def standing_votes(rows: Iterable[Vote]) -> dict[VoteKey, Vote]:
    """Return the votes that stand: the first on each question that was not withdrawn."""
    standing: dict[VoteKey, Vote] = {}
    for row in rows:
        if row.answer is Answer.WITHDRAWN:
            standing.pop(row.key, None)
        else:
            standing.setdefault(row.key, row)
    return standing


def ballots_of(votes: Iterable[Vote]) -> dict[str, dict[str, Ballot]]:
    """Group standing votes into ballots, by item and annotator."""
    answers: dict[str, dict[str, dict[Question, Answer]]] = {}
    for vote in votes:
        of_item = answers.setdefault(vote.item_id, {})
        of_item.setdefault(vote.annotator_id, {})[vote.question] = vote.answer
    return {
        item_id: {annotator: Ballot.of(given) for annotator, given in of_item.items()}
        for item_id, of_item in answers.items()
    }
