"""The work of one annotator: which sentence is asked next, and how answers are written and taken back."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.errors import DataError
from builders.synthbias.annotation.annotated import AnnotatedDataset, AskedSentence, asked_id, sentence_of
from builders.synthbias.annotation.deciding import PairDecision, Policy, counting_ballots, decide_pair
from builders.synthbias.annotation.entrance import DEFAULT_PERCENT, TEST, TEST_PAIRS
from builders.synthbias.annotation.state import ANNOTATORS, VOTES, State, locked, read_state, write_state
from builders.synthbias.annotation.vote_intake import SubmittedVotes, take_in, utc_text
from builders.synthbias.annotation.votes import (
    Annotator,
    AnnotatorKind,
    Ballot,
    Status,
    Vote,
    VoteAnswer,
    VoteQuestion,
    ballots_of,
)

SOURCE = "serve"
Phase: TypeAlias = Literal["entrance", "items", "failed", "excluded", "done"]


class Turn(NamedTuple):
    """The sentence that an annotator is asked next, and the progress of the work."""

    phase: Phase
    sentence: AskedSentence | None
    done: int
    total: int
    can_undo: bool
    annotator: Annotator


def sampled_pairs(annotated: AnnotatedDataset, n: int | None, seed: int) -> tuple[str, ...]:
    """Return the ids of the pairs to annotate, drawn by a seed; all of them if no number is given."""
    ordered = sorted(annotated.pairs, key=lambda pair_id: _order(seed, pair_id))
    return tuple(ordered if n is None else ordered[:n])


@dataclass(slots=True)
class Session:
    """The work of one annotator on a state, which other processes may change at the same time.

    Args:
        annotated: Dataset that is annotated.
        folder: Folder of the state.
        annotator_id: The annotator.
        pairs: Pairs to annotate; the annotator sees one side of each.
        seed: Seed of the order of the sentences.
        policy: Policy that decides which sentences have enough votes.
        entrance_percent: Share of the entrance test that must be right.
    """

    annotated: AnnotatedDataset
    folder: Path
    annotator_id: str
    pairs: Sequence[str]
    seed: int = 0
    policy: Policy = field(default_factory=Policy)
    entrance_percent: int = DEFAULT_PERCENT
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _state: State | None = None
    _stamp: tuple[object, ...] = ()
    _taken_back: str | None = None
    # With 66,000 votes, reading the state takes a second and deciding all pairs 0.6 s. Both are kept between requests,
    # so that a vote takes a quarter of a second.
    _decisions: dict[str, PairDecision] = field(default_factory=dict)
    """Decisions on the pairs in the current state; empty if they must be made again."""

    def turn(self) -> Turn:
        """Return the next turn."""
        with self._lock:
            return self._turn(self._read())

    def vote(self, item_id: str, answers: Mapping[VoteQuestion, VoteAnswer]) -> Turn:
        """Write the answers about a sentence at once, and return the next turn.

        Raises:
            DataError: another sentence is asked, answers are missing, or the votes were cast before.
        """
        if not Ballot.of(answers).is_complete or VoteAnswer.WITHDRAWN in answers.values():
            raise DataError(f"item '{item_id}': a question is not answered with yes or no; answer all that are shown")
        with self._lock, locked(self.folder):
            state = self._read()
            asked = self._turn(state).sentence
            if asked is None or item_id not in (asked.item_id, asked_id(asked.item_id)):
                raise DataError(f"item '{item_id}' is not asked now; load the page again")
            item_id = asked.item_id
            submission = SubmittedVotes(
                where=SOURCE,
                item_id=item_id,
                annotator_id=self.annotator_id,
                answers=answers,
                submitted_at=utc_text(self.now()),
                source=SOURCE,
            )
            intake = take_in(self.annotated, state, [submission], entrance_percent=self.entrance_percent)
            if intake.refused:
                raise DataError(f"item '{item_id}': refused as {intake.refused[0].refusal}; load the page again")
            self._write(state, intake.state, item_id)
            self._taken_back = None
            return self._turn(intake.state)

    def undo(self) -> Turn:
        """Take back the answers about the last sentence, and ask it again.

        Raises:
            DataError: there is nothing to take back.
        """
        with self._lock, locked(self.folder):
            state = self._read()
            last = self._last(state)
            if last is None:
                raise DataError("nothing can be taken back; answer the sentence that is shown")
            standing = [vote for vote in self._mine(state) if vote.item_id == last]
            time = utc_text(self.now())
            withdrawals = [
                SubmittedVotes(SOURCE, last, self.annotator_id, {vote.question: VoteAnswer.WITHDRAWN}, time, SOURCE)
                for vote in standing
            ]
            intake = take_in(self.annotated, state, withdrawals, entrance_percent=self.entrance_percent)
            self._write(state, intake.state, last)
            self._taken_back = last
            return self._turn(intake.state)

    def _read(self) -> State:
        """Return the state, read again only if a file changed."""
        stamp = self._files()
        if self._state is None or stamp != self._stamp:
            self._state, self._stamp = read_state(self.folder), stamp
            self._decisions.clear()
        return self._state

    def _write(self, old: State, new: State, item_id: str) -> None:
        """Write a state in which the annotator's votes on an item have changed."""
        write_state(self.folder, old, new)
        self._state, self._stamp = new, self._files()
        if new.annotators != old.annotators:
            self._decisions.clear()
        elif item_id in self.annotated.items:
            pair_id = self.annotated.items[item_id].pair_id
            ballots = counting_ballots(new.part(lambda vote: vote.pair_id == pair_id), self.policy)
            self._decisions[pair_id] = decide_pair(self.annotated.pairs[pair_id], ballots, self.policy)

    def _files(self) -> tuple[object, ...]:
        paths = (self.folder / VOTES, self.folder / ANNOTATORS)
        stats = (path.stat() if path.exists() else None for path in paths)
        return tuple(None if file is None else (file.st_mtime_ns, file.st_size, file.st_ino) for file in stats)

    def _turn(self, state: State) -> Turn:
        newcomer = Annotator(annotator_id=self.annotator_id, kind=AnnotatorKind.HUMAN)
        annotator = state.annotators.get(self.annotator_id, newcomer)
        ballots = ballots_of(self._mine(state))
        mine = {item_id: of_item[self.annotator_id] for item_id, of_item in ballots.items()}
        can_undo = self._last(state) is not None
        if annotator.status in (Status.EXCLUDED, Status.FAILED):
            phase: Phase = "excluded" if annotator.status is Status.EXCLUDED else "failed"
            return Turn(phase, None, 0, 0, False, annotator)
        if annotator.status is Status.UNTESTED and not self.policy.count_untested:
            left = [solved.sentence for solved in TEST if not _is_complete(mine.get(solved.sentence.item_id))]
            # There is one: the last answer of the test makes the annotator active or failed.
            return Turn("entrance", self._first(left), len(TEST) - len(left), len(TEST), can_undo, annotator)
        waiting = sorted(self._waiting(state, mine))
        done = sum(
            any(_is_complete(mine.get(side.item_id)) for side in self.annotated.pairs[pair_id])
            for pair_id in self.pairs
        )
        total = done + len({item.pair_id for *_, item in waiting})
        sentence = self._first([item for *_, item in waiting])
        return Turn("done" if sentence is None else "items", sentence, done, total, can_undo, annotator)

    def _first(self, sentences: Sequence[AskedSentence]) -> AskedSentence | None:
        """Return the sentence to ask: the one that was taken back, or the first."""
        again = next((sentence for sentence in sentences if sentence.item_id == self._taken_back), None)
        return again or next(iter(sentences), None)

    def _waiting(self, state: State, mine: Mapping[str, Ballot]) -> Iterator[tuple[int, bytes, AskedSentence]]:
        """Yield the sentences that the annotator may be asked, after their sort keys: fewest votes, then a hash."""
        if not self._decisions:
            ballots = counting_ballots(state, self.policy)
            for pair_id in self.pairs:
                self._decisions[pair_id] = decide_pair(self.annotated.pairs[pair_id], ballots, self.policy)
        for pair_id in self.pairs:
            decision = self._decisions[pair_id]
            if decision.verdict != "undecided" or any(side.item.item_id in mine for side in decision.sides):
                continue
            for side in decision.sides:
                if side.verdict == "undecided":
                    order = _order(self.seed, self.annotator_id, side.item.item_id)
                    yield side.tally.coherent.n, order, sentence_of(side.item)

    def _mine(self, state: State) -> list[Vote]:
        """Return the annotator's votes in force, the latest last."""
        return list(state.part(lambda vote: vote.annotator_id == self.annotator_id).standing_votes.values())

    def _last(self, state: State) -> str | None:
        """Return the item whose votes can be taken back: the last one, unless it completed the entrance test."""
        mine = [vote for vote in self._mine(state) if vote.source == SOURCE]
        if not mine:
            return None
        item_id = mine[-1].item_id
        annotator = state.annotators.get(self.annotator_id)
        is_scored = annotator is not None and annotator.entrance != ""
        return None if item_id in TEST_PAIRS and is_scored else item_id


def _is_complete(ballot: Ballot | None) -> bool:
    return ballot is not None and ballot.is_complete


def _order(*parts: object) -> bytes:
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()
