"""Takes in votes: new ones are kept, and those that must not count are refused, counted and listed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from biasboard.ground.errors import DataError
from builders.synthbias.annotation.annotated import AnnotatedDataset, asked_id
from builders.synthbias.annotation.entrance import DEFAULT_PERCENT, TEST_PAIRS, entrance_score, status_of
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import (
    NO_NAME,
    Annotator,
    AnnotatorKind,
    Ballot,
    Status,
    Vote,
    VoteAnswer,
    VoteQuestion,
    ballots_of,
    is_name,
    reader_name,
)

_TEST_ITEM_IDS = {asked_id(item_id): item_id for item_id in TEST_PAIRS}


class Refusal(StrEnum):
    """The reasons for refusing votes."""

    CANCELLED = "cancelled"
    """The annotator skipped the sentence."""
    REJECTED = "rejected"
    """The assignment was rejected or returned."""
    INCOMPLETE = "incomplete"
    """A question has no answer."""
    DUPLICATE = "duplicate"
    """The annotator has answered the question before; the first answer is kept."""
    BOTH_SIDES = "both_sides"
    """The annotator has voted on the other side of the pair."""


class SubmittedVotes(NamedTuple):
    """Answers of an annotator to questions about a sentence, as received."""

    where: str
    """File and line, or task and annotation, for messages."""
    item_id: str
    annotator_id: str
    answers: Mapping[VoteQuestion, VoteAnswer]
    submitted_at: str
    source: str
    pair_id: str = ""
    """Pair of the item according to the file; empty if it does not say."""
    refusal: Refusal | None = None
    """Reason to refuse it; None if there is none, as far as is known."""

    def of_whole_sentence(self) -> SubmittedVotes:
        """Return the submission as the complete answers about a sentence; it is refused if an answer is missing.

        Once a sentence is called incoherent, platforms hide the questions about its pronoun, but keep earlier answers
        to them; these are dropped.
        """
        is_incoherent = self.answers.get(VoteQuestion.COHERENT) is VoteAnswer.NO
        answers = {VoteQuestion.COHERENT: VoteAnswer.NO} if is_incoherent else self.answers
        refusal = self.refusal or (None if Ballot.of(answers).is_complete else Refusal.INCOMPLETE)
        return self._replace(answers=answers, refusal=refusal)


@dataclass(frozen=True, slots=True)
class Intake:
    """The state after votes were taken in, with the numbers of added and known ones."""

    state: State
    n_added: int
    n_known: int
    """Number of votes that were taken in before."""
    refused: tuple[SubmittedVotes, ...]

    @property
    def refusals(self) -> dict[str, int]:
        """The number of refused submissions by reason."""
        counts = Counter(submission.refusal for submission in self.refused)
        return {reason.value: counts[reason] for reason in Refusal}


def take_in(
    annotated: AnnotatedDataset,
    state: State,
    submissions: Sequence[SubmittedVotes],
    *,
    kind: AnnotatorKind = AnnotatorKind.HUMAN,
    entrance_percent: int = DEFAULT_PERCENT,
) -> Intake:
    """Take in submissions, earliest first.

    Args:
        annotated: Dataset that is annotated.
        state: State so far.
        submissions: Submissions in any order.
        kind: Kind of the annotators.
        entrance_percent: Share of the entrance test that must be right.

    Raises:
        DataError: an item is unknown, or its pair or the kind of an annotator differs; nothing is taken in.
    """
    submissions = [_checked(annotated, state, submission, kind) for submission in submissions]
    annotators = dict(state.annotators)
    for submission in submissions:
        name = submission.annotator_id
        annotators.setdefault(name, Annotator(annotator_id=name, kind=kind))
    names = {submission.annotator_id for submission in submissions}
    before = state.part(lambda vote: vote.annotator_id in names)
    rows, standing = set(before.rows), dict(before.standing_votes)
    # Item of a pair that an annotator has voted on.
    sides = {(vote.annotator_id, vote.pair_id): vote.item_id for vote in standing.values()}
    added: list[Vote] = []
    refused: list[SubmittedVotes] = []
    n_known = 0
    # Times are in UTC and of one form, so that they sort as texts; unknown times come last.
    for submission in sorted(submissions, key=lambda sent: (sent.submitted_at == "", sent.submitted_at)):
        votes = [
            Vote(
                item_id=submission.item_id,
                pair_id=submission.pair_id,
                annotator_id=submission.annotator_id,
                question=question,
                answer=answer,
                submitted_at=submission.submitted_at,
                source=submission.source,
            )
            for question, answer in submission.answers.items()
        ]
        new = [vote for vote in votes if vote not in rows]
        side = (submission.annotator_id, submission.pair_id)
        reason = submission.refusal
        if reason is None:
            n_known += len(votes) - len(new)
            # A model sees each sentence separately and remembers none.
            if new and sides.get(side, submission.item_id) != submission.item_id and kind is AnnotatorKind.HUMAN:
                reason = Refusal.BOTH_SIDES
            elif any((vote.answer is VoteAnswer.WITHDRAWN) != (vote.key in standing) for vote in new):
                reason = Refusal.DUPLICATE
        if reason is not None:
            refused.append(submission._replace(refusal=reason))
            continue
        for vote in new:
            added.append(vote)
            rows.add(vote)
            if vote.answer is not VoteAnswer.WITHDRAWN:
                standing[vote.key] = vote
                sides[side] = vote.item_id
                continue
            del standing[vote.key]
            if not any((vote.item_id, vote.annotator_id, question) in standing for question in VoteQuestion):
                sides.pop(side, None)
    scored = with_entrance(State((*state.rows, *added), annotators), entrance_percent)
    return Intake(scored, len(added), n_known, tuple(refused))


def _checked(
    annotated: AnnotatedDataset, state: State, submission: SubmittedVotes, kind: AnnotatorKind
) -> SubmittedVotes:
    """Return a submission with the ids of its sentence and its pair, and the annotator's name as it is kept."""
    where, given, name = submission.where, submission.item_id, reader_name(submission.annotator_id)
    item_id = annotated.item_ids.get(given) or _TEST_ITEM_IDS.get(given, given)
    if not is_name(name):
        raise DataError(f"{where}: annotator '{name}' {NO_NAME}")
    if item_id in annotated.items:
        pair_id = annotated.items[item_id].pair_id
    elif item_id in TEST_PAIRS:
        pair_id = TEST_PAIRS[item_id]
    else:
        raise DataError(f"{where}: item '{item_id}' is not in {annotated.folder}; give the dataset that was exported")
    if submission.pair_id not in ("", pair_id):
        raise DataError(
            f"{where}: item '{item_id}' is of pair '{pair_id}', not '{submission.pair_id}'; correct the line, or give "
            "the dataset that was exported"
        )
    annotator = state.annotators.get(name)
    if annotator is not None and annotator.kind is not kind:
        raise DataError(
            f"{where}: annotator '{name}' is a {annotator.kind}, not a {kind}; give --kind "
            f"{annotator.kind}, or correct the kind in annotators.csv"
        )
    return submission._replace(item_id=item_id, annotator_id=name, pair_id=pair_id)


def with_entrance(state: State, percent: int) -> State:
    """Return a state in which annotators have the scores of the entrance tests that they finished.

    Scores entered by hand stay if the votes hold no finished test, and an exclusion always stays.

    Args:
        state: Votes and annotators.
        percent: Share of the test that must be right.
    """
    of_test = state.part(lambda vote: vote.item_id in TEST_PAIRS)
    by_annotator: dict[str, dict[str, Ballot]] = defaultdict(dict)
    for item_id, of_item in ballots_of(of_test.standing_votes.values()).items():
        for name, ballot in of_item.items():
            by_annotator[name][item_id] = ballot
    annotators = dict(state.annotators)
    for name, ballots in by_annotator.items():
        score = entrance_score(ballots)
        if score is None:
            continue
        annotator = replace(annotators[name], entrance=str(score))
        if annotator.status is not Status.EXCLUDED:
            status = status_of(score, percent)
            reason = f"entrance test: {score}, less than {percent} percent" if status is Status.FAILED else ""
            annotator = replace(annotator, status=status, reason=reason)
        annotators[name] = annotator
    return State(state.rows, annotators)


def utc_time(text: str, *, where: str) -> str:
    """Return a time in UTC as ISO 8601; an empty text stays empty.

    Args:
        text: Time as ISO 8601, in UTC if it names no zone.
        where: File and line of the time, for the message.

    Raises:
        DataError: the time has another form, or its year is out of range.

    >>> utc_time("2026-03-01T12:00:00+02:00", where="")
    '2026-03-01T10:00:00.000Z'
    """
    if not text:
        return ""
    try:
        time = datetime.fromisoformat(text.strip())
        return utc_text(time if time.tzinfo is not None else time.replace(tzinfo=UTC))
    except ValueError as error:
        raise DataError(f"{where}: time '{text}' is not ISO 8601; write it like 2026-03-01T12:00:00Z") from error
    except OverflowError as error:
        raise DataError(f"{where}: time '{text}' has no year from 1 to 9999 in UTC; correct it") from error


def utc_text(time: datetime) -> str:
    """Return a time in UTC as ISO 8601, always with milliseconds, so that times sort as texts."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
