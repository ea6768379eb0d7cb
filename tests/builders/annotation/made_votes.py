"""Votes that the tests make themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import expected_reading
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.session import Session
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.vote_intake import SubmittedVotes
from builders.synthbias.annotation.vote_page import open_server
from builders.synthbias.annotation.votes import Annotator, AnnotatorKind, Ballot, Status, Vote, VoteAnswer, VoteQuestion
from schemas.items.coreference import CoreferenceItem

BALLOTS = {
    "open": Ballot(True, True, True),
    "first": Ballot(True, True, False),
    "second": Ballot(True, False, True),
    "incoherent": Ballot(False, None, None),
}
EMPTY = State((), {})


def right(item: CoreferenceItem) -> Ballot:
    return BALLOTS[expected_reading(item)]


def wrong(ballot: Ballot) -> Ballot:
    """A ballot of which each answer to a coherent sentence, or the one answer to another, is wrong."""
    return BALLOTS["open" if ballot.coherent is False else "incoherent"]


def answers(ballot: Ballot) -> dict[VoteQuestion, VoteAnswer]:
    given = zip(VoteQuestion, ballot, strict=True)
    return {question: VoteAnswer.YES if answer else VoteAnswer.NO for question, answer in given if answer is not None}


def votes(item: CoreferenceItem, annotator: str, ballot: Ballot) -> Iterator[Vote]:
    for question, answer in answers(ballot).items():
        yield Vote(
            item_id=item.item_id,
            pair_id=item.pair_id,
            annotator_id=annotator,
            question=question,
            answer=answer,
            submitted_at="",
            source="test",
        )


def submission(item_id: str, annotator: str, ballot: Ballot) -> SubmittedVotes:
    return SubmittedVotes("here", item_id, annotator, answers(ballot), "", "test")


def entrance_submissions(annotator: str, *, n_wrong: int = 0) -> list[SubmittedVotes]:
    """The entrance test as somebody answers it who errs on the first sentences."""
    return [
        submission(solved.sentence.item_id, annotator, wrong(solved.answers) if number < n_wrong else solved.answers)
        for number, solved in enumerate(TEST)
    ]


def active(*names: str, kind: AnnotatorKind = AnnotatorKind.HUMAN) -> dict[str, Annotator]:
    return {name: Annotator(annotator_id=name, kind=kind, entrance="20/20", status=Status.ACTIVE) for name in names}


def unanimous(
    annotated: AnnotatedDataset, n: int = 4, *, otherwise: Mapping[str, Ballot | None] | None = None
) -> State:
    """A state in which n people accept each side of each pair; other people vote on the other side.

    Args:
        annotated: The dataset.
        n: Number of people.
        otherwise: Other ballots on the sides of some pairs, None for no votes.
    """
    names = {group: [f"{group}{number}" for number in range(n)] for group in ("A", "B")}
    rows: list[Vote] = []
    for item_id, item in annotated.items.items():
        ballot = (otherwise or {}).get(item.pair_id, right(item))
        for name in names[annotated.groups[item_id]] if ballot else ():
            rows += votes(item, name, ballot)  # type: ignore[arg-type]
    return State(tuple(rows), active(*names["A"], *names["B"]))


@contextmanager
def serving(session: Session) -> Iterator[str]:
    """The address of a session's page."""
    server, address = open_server(session, 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
