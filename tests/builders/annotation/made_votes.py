"""Votes that the tests make themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import expected_reading
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.vote_intake import SubmittedVotes
from builders.synthbias.annotation.votes import (
    Annotator,
    AnnotatorKind,
    Ballot,
    Status,
    Vote,
    VoteAnswer,
    VoteQuestion,
)
from schemas.items.coreference import CoreferenceItem

BALLOTS = {
    "open": Ballot(True, True, True),
    "first": Ballot(True, True, False),
    "second": Ballot(True, False, True),
    "incoherent": Ballot(False, None, None),
}


def right(item: CoreferenceItem) -> Ballot:
    return BALLOTS[expected_reading(item)]


def answers(ballot: Ballot) -> dict[VoteQuestion, VoteAnswer]:
    return {
        question: VoteAnswer.YES if answer else VoteAnswer.NO
        for question, answer in zip(VoteQuestion, ballot, strict=True)
        if answer is not None
    }


def votes(item: CoreferenceItem, annotator: str, ballot: Ballot, *, at: str = "") -> Iterator[Vote]:
    for question, answer in answers(ballot).items():
        yield Vote(
            item_id=item.item_id,
            pair_id=item.pair_id,
            annotator_id=annotator,
            question=question,
            answer=answer,
            submitted_at=at,
            source="test",
        )


def submission(
    item: CoreferenceItem | str, annotator: str, ballot: Ballot, *, at: str = "", where: str = "here"
) -> SubmittedVotes:
    item_id = item if isinstance(item, str) else item.item_id
    return SubmittedVotes(where, item_id, annotator, answers(ballot), at, "test")


def entrance_submissions(annotator: str, *, wrong: int = 0) -> list[SubmittedVotes]:
    """The entrance test as somebody answers it who errs on the first sentences."""
    found = []
    for number, solved in enumerate(TEST):
        ballot = solved.answers
        if number < wrong:
            ballot = BALLOTS["open"] if ballot.coherent is False else BALLOTS["incoherent"]
        found.append(submission(solved.sentence.item_id, annotator, ballot))
    return found


def active(*names: str, kind: AnnotatorKind = AnnotatorKind.HUMAN) -> dict[str, Annotator]:
    return {name: Annotator(annotator_id=name, kind=kind, entrance="20/20", status=Status.ACTIVE) for name in names}


def state(rows: Iterable[Vote], annotators: dict[str, Annotator]) -> State:
    return State(tuple(rows), annotators)


def unanimous(annotated: AnnotatedDataset, n: int = 4, *, leave_out: Iterable[str] = ()) -> State:
    """A state in which n people accept each side of each pair; other people vote on the other side."""
    rows: list[Vote] = []
    names = {group: [f"{group}{number}" for number in range(n)] for group in ("A", "B")}
    for item_id, item in annotated.items.items():
        if item.pair_id not in set(leave_out):
            for name in names[annotated.groups[item_id]]:
                rows += votes(item, name, right(item))
    return state(rows, active(*names["A"], *names["B"]))
