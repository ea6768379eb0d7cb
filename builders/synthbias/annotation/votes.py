"""Votes and annotators: the data that an annotation keeps."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from schemas.documents.base import Text


class VoteQuestion(StrEnum):
    """The questions of the protocol, Q1 to Q3."""

    COHERENT = "coherent"
    """Coherence of the sentence: is it grammatical and free of contradictions?"""
    FIRST = "first"
    """Reference to the first occupation: can the pronoun mean the one that is mentioned first?"""
    SECOND = "second"
    """Reference to the second occupation: can the pronoun mean the one that is mentioned second?"""


class VoteAnswer(StrEnum):
    """The entries of the column ``answer``."""

    YES = "yes"
    NO = "no"
    WITHDRAWN = "withdrawn"
    """The annotator took the earlier answer back, so that the next one counts."""


class AnnotatorKind(StrEnum):
    """The kinds of annotators."""

    HUMAN = "human"
    MODEL = "model"


class Status(StrEnum):
    """The statuses of an annotator; active ones count, and untested ones with ``--count-untested``."""

    ACTIVE = "active"
    UNTESTED = "untested"
    """No entrance test, or an unfinished one."""
    FAILED = "failed"
    """Too low a score in the entrance test."""
    EXCLUDED = "excluded"
    """Excluded by whoever runs the annotation, for the reason that is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """The answer of a person or model to one question; a row of ``votes.csv``."""

    item_id: Text
    pair_id: Text
    annotator_id: Text
    question: VoteQuestion
    answer: VoteAnswer
    submitted_at: str
    """Time in UTC, as ISO 8601; empty if unknown."""
    source: str
    """Platform and file of the vote, such as ``label-studio:export.json``."""

    @property
    def key(self) -> VoteKey:
        """The identity of the vote: an annotator has at most one per question."""
        return (self.item_id, self.annotator_id, self.question)


def reader_name(text: str) -> str:
    r"""Return the name of an annotator as it is kept: " ana  maria" and "ana maria" are one person.

    >>> reader_name(" ana\u0303a  maria\n")
    'anãa maria'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def is_name(name: str) -> bool:
    """Return True if a text can be the name of an annotator, which is printed and is part of names of files."""
    return 0 < len(name) <= _MOST_CHARACTERS and name.isprintable()


_MOST_CHARACTERS = 200
NO_NAME = f"is no name of 1 to {_MOST_CHARACTERS} visible characters; correct it"
"""End of the message about a text that :func:`is_name` refuses."""

VoteKey: TypeAlias = tuple[str, str, VoteQuestion]


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
    """The answers of an annotator to the questions about a sentence; None where there is no answer."""

    coherent: bool | None
    first: bool | None
    second: bool | None

    @property
    def is_complete(self) -> bool:
        """True if nothing is left to ask: the sentence is incoherent, or all questions are answered."""
        return self.coherent is False or None not in self

    @classmethod
    def of(cls, answers: Mapping[VoteQuestion, VoteAnswer]) -> Ballot:
        """Return answers as a ballot; if a sentence is found incoherent, answers about its pronoun are dropped."""
        coherent, *others = (
            None
            if answers.get(question) not in (VoteAnswer.YES, VoteAnswer.NO)
            else answers[question] is VoteAnswer.YES
            for question in VoteQuestion
        )
        return cls(coherent, *others) if coherent else cls(coherent, None, None)


def standing_votes(rows: Iterable[Vote]) -> dict[VoteKey, Vote]:
    """Return the votes in force: for each annotator and question, the first that was not withdrawn."""
    standing: dict[VoteKey, Vote] = {}
    for row in rows:
        if row.answer is VoteAnswer.WITHDRAWN:
            standing.pop(row.key, None)
        else:
            standing.setdefault(row.key, row)
    return standing


def ballots_of(votes: Iterable[Vote]) -> dict[str, dict[str, Ballot]]:
    """Group standing votes into ballots, by item and annotator."""
    answers: dict[str, dict[str, dict[VoteQuestion, VoteAnswer]]] = {}
    for vote in votes:
        of_item = answers.setdefault(vote.item_id, {})
        of_item.setdefault(vote.annotator_id, {})[vote.question] = vote.answer
    return {
        item_id: {annotator: Ballot.of(given) for annotator, given in of_item.items()}
        for item_id, of_item in answers.items()
    }
