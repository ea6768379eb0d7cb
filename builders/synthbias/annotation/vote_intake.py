"""Takes in votes: new ones are kept, and those that must not count are refused, counted and listed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from biasboard.ground.errors import DataError
from builders.synthbias.annotation.annotated import AnnotatedDataset, asked_id
from builders.synthbias.annotation.entrance import (
    DEFAULT_PERCENT,
    TEST_PAIRS,
    EntranceScore,
    EntranceUnit,
    entrance_score,
)
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import (
    NO_NAME,
    Annotator,
    AnnotatorKind,
    Ballot,
    Status,
    Vote,
    VoteAnswer,
    VoteKey,
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
    pair_id: str | None = None
    """Pair of the item according to the file; None if it has none."""
    refusal: Refusal | None = None
    """Reason to refuse it that follows from the file; None if there is none."""

    def of_whole_sentence(self) -> SubmittedVotes:
        """Return the submission as the complete answers about a sentence; it is refused if an answer is missing.

        Once a sentence is called incoherent, platforms hide the questions about its pronoun, but keep earlier answers
        to them; these are dropped.
        """
        is_incoherent = self.answers.get(VoteQuestion.COHERENT) is VoteAnswer.NO
        answers = {VoteQuestion.COHERENT: VoteAnswer.NO} if is_incoherent else self.answers
        refusal = self.refusal or (None if Ballot.of(answers).is_complete else Refusal.INCOMPLETE)
        return self._replace(answers=answers, refusal=refusal)


class Refused(NamedTuple):
    """A submission that was not taken in."""

    where: str
    item_id: str
    annotator_id: str
    reason: Refusal


class EntranceRule(NamedTuple):
    """The rule for passing the entrance test."""

    percent: int = DEFAULT_PERCENT
    unit: EntranceUnit = EntranceUnit.ITEM

    def status(self, score: EntranceScore | None) -> Status:
        """Return the status of an annotator with a score; None is for an unfinished test."""
        if score is None:
            return Status.UNTESTED
        return Status.ACTIVE if score.reaches(self.percent) else Status.FAILED


@dataclass(frozen=True, slots=True)
class Intake:
    """The state after votes were taken in, with the numbers of added, known and refused ones."""

    state: State
    n_added: int
    n_known: int
    """Number of votes that were taken in before."""
    refused: tuple[Refused, ...]

    @property
    def refusals(self) -> dict[str, int]:
        """The number of refused submissions by reason."""
        counts = Counter(submission.reason for submission in self.refused)
        return {reason.value: counts[reason] for reason in Refusal}


def take_in(
    annotated: AnnotatedDataset,
    state: State,
    submissions: Sequence[SubmittedVotes],
    *,
    kind: AnnotatorKind = AnnotatorKind.HUMAN,
    entrance: EntranceRule | None = None,
) -> Intake:
    """Take in submissions, earliest first.

    Args:
        annotated: Dataset that is annotated.
        state: State so far.
        submissions: Submissions in any order.
        kind: Kind of the annotators.
        entrance: Rule for passing the entrance test; None for the default.

    Raises:
        DataError: an item is unknown, or its pair or the kind of an annotator differs; nothing is taken in.
    """
    submissions = [_with_own_ids(annotated, submission) for submission in submissions]
    for submission in submissions:
        _check(annotated, state, submission, kind)
    names = {submission.annotator_id for submission in submissions}
    desk = _IntakeDesk(state.part(lambda vote: vote.annotator_id in names), kind)
    # Times are in UTC and of one form, so that they sort as texts; unknown times come last.
    for submission in sorted(submissions, key=lambda sent: (sent.submitted_at == "", sent.submitted_at)):
        desk.take(submission, _pair_of(annotated, submission))
    annotators = dict(state.annotators)
    for submission in submissions:
        name = submission.annotator_id
        annotators.setdefault(name, Annotator(annotator_id=name, kind=kind))
    rows = (*state.rows, *desk.added)
    scored = with_entrance(State(rows, annotators), entrance or EntranceRule())
    return Intake(scored, len(desk.added), desk.n_known, tuple(desk.refused))


def with_entrance(state: State, rule: EntranceRule) -> State:
    """Return a state in which annotators have the scores of the entrance tests that they finished.

    Scores entered by hand stay if the votes hold no finished test, and an exclusion always stays.
    """
    of_test = state.part(lambda vote: vote.item_id in TEST_PAIRS)
    by_annotator: dict[str, list[Vote]] = {}
    for vote in of_test.standing_votes.values():
        by_annotator.setdefault(vote.annotator_id, []).append(vote)
    annotators = dict(state.annotators)
    for name, votes in by_annotator.items():
        ballots = {item_id: of_item[name] for item_id, of_item in ballots_of(votes).items()}
        score = entrance_score(ballots, rule.unit)
        if score is None:
            continue
        annotator = replace(annotators[name], entrance=str(score))
        if annotator.status is not Status.EXCLUDED:
            status = rule.status(score)
            reason = f"entrance test: {score}, less than {rule.percent} percent" if status is Status.FAILED else ""
            annotator = replace(annotator, status=status, reason=reason)
        annotators[name] = annotator
    return State(state.rows, annotators)


def _with_own_ids(annotated: AnnotatedDataset, submission: SubmittedVotes) -> SubmittedVotes:
    """Return a submission with the item id of its sentence, and the annotator's name as it is kept."""
    given = submission.item_id
    item_id = annotated.item_ids.get(given) or _TEST_ITEM_IDS.get(given, given)
    return submission._replace(item_id=item_id, annotator_id=reader_name(submission.annotator_id))


def _check(annotated: AnnotatedDataset, state: State, submission: SubmittedVotes, kind: AnnotatorKind) -> None:
    where, item_id, name = submission.where, submission.item_id, submission.annotator_id
    if not is_name(name):
        raise DataError(f"{where}: annotator '{name}' {NO_NAME}")
    if item_id not in annotated.items and item_id not in TEST_PAIRS:
        raise DataError(f"{where}: item '{item_id}' is not in {annotated.folder}; give the dataset that was exported")
    pair_id = _pair_of(annotated, submission)
    if submission.pair_id not in (None, pair_id):
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


def _pair_of(annotated: AnnotatedDataset, submission: SubmittedVotes) -> str:
    item_id = submission.item_id
    return TEST_PAIRS[item_id] if item_id in TEST_PAIRS else annotated.items[item_id].pair_id


@dataclass(slots=True)
class _IntakeDesk:
    """The state of an intake: the votes so far of the annotators whose submissions are taken in."""

    state: State
    kind: AnnotatorKind
    added: list[Vote] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    n_known: int = 0
    rows: set[Vote] = field(init=False)
    standing: dict[VoteKey, Vote] = field(init=False)
    sides: dict[tuple[str, str], str] = field(init=False)
    """Item of a pair that an annotator has voted on, by annotator and pair."""

    def __post_init__(self) -> None:
        self.rows = set(self.state.rows)
        self.standing = dict(self.state.standing_votes)
        self.sides = {(vote.annotator_id, vote.pair_id): vote.item_id for vote in self.standing.values()}

    def take(self, submission: SubmittedVotes, pair_id: str) -> None:
        """Take a submission in, or refuse it."""
        votes = [
            Vote(
                item_id=submission.item_id,
                pair_id=pair_id,
                annotator_id=submission.annotator_id,
                question=question,
                answer=answer,
                submitted_at=submission.submitted_at,
                source=submission.source,
            )
            for question, answer in submission.answers.items()
        ]
        new = [vote for vote in votes if vote not in self.rows]
        if submission.refusal is None:
            self.n_known += len(votes) - len(new)
            if not new:
                return
        reason = submission.refusal or self._refusal(new)
        if reason is not None:
            self.refused.append(Refused(submission.where, submission.item_id, submission.annotator_id, reason))
            return
        for vote in new:
            self._add(vote)

    def _refusal(self, votes: Sequence[Vote]) -> Refusal | None:
        first = votes[0]
        other = self.sides.get((first.annotator_id, first.pair_id), first.item_id)
        # A model sees each sentence separately and remembers none.
        if other != first.item_id and self.kind is AnnotatorKind.HUMAN:
            return Refusal.BOTH_SIDES
        for vote in votes:
            if (vote.answer is VoteAnswer.WITHDRAWN) != (vote.key in self.standing):
                return Refusal.DUPLICATE
        return None

    def _add(self, vote: Vote) -> None:
        self.added.append(vote)
        self.rows.add(vote)
        if vote.answer is VoteAnswer.WITHDRAWN:
            del self.standing[vote.key]
            if not any((vote.item_id, vote.annotator_id, question) in self.standing for question in VoteQuestion):
                self.sides.pop((vote.annotator_id, vote.pair_id), None)
        else:
            self.standing[vote.key] = vote
            self.sides[vote.annotator_id, vote.pair_id] = vote.item_id


_OFFSETS = {"UTC": "+0000", "GMT": "+0000", "PST": "-0800", "PDT": "-0700"}
_ZONED = re.compile(rf"^\w{{3}} (\w{{3}} \d{{1,2}} \d\d:\d\d:\d\d) ({'|'.join(_OFFSETS)}) (\d{{4}})$")


def utc_time(text: str, *, where: str) -> str:
    """Return a time in UTC as ISO 8601; an empty text stays empty.

    Args:
        text: Time as ISO 8601, in UTC if it names no zone, or as Mechanical Turk writes it.
        where: File and line of the time, for the message.

    Raises:
        DataError: the time has another form, or its year is out of range.

    >>> utc_time("2026-03-01T12:00:00+02:00", where="")
    '2026-03-01T10:00:00.000Z'
    >>> utc_time("Sun Mar 01 02:00:00 PST 2026", where="")
    '2026-03-01T10:00:00.000Z'
    """
    if not text:
        return ""
    zoned = _ZONED.match(text.strip())
    try:
        if zoned is not None:
            day, zone, year = zoned.groups()
            time = datetime.strptime(f"{day} {_OFFSETS[zone]} {year}", "%b %d %H:%M:%S %z %Y")
        else:
            time = datetime.fromisoformat(text.strip())
            time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return utc_text(time)
    except ValueError as error:
        raise DataError(f"{where}: time '{text}' is not ISO 8601; write it like 2026-03-01T12:00:00Z") from error
    except OverflowError as error:
        raise DataError(f"{where}: time '{text}' has no year from 1 to 9999 in UTC; correct it") from error


def utc_text(time: datetime) -> str:
    """Return a time in UTC as ISO 8601, always with milliseconds, so that times sort as texts."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
