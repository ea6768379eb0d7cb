"""Decides which items and pairs the votes accept, by pure functions of the votes and the annotators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from builders.dataset.output import Rule
from builders.synthbias.annotation.annotated import AnnotatedDataset, Sides
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import Annotator, AnnotatorKind, Ballot, Status, VoteQuestion, ballots_of
from builders.synthbias.minimal_pairs import referent_position
from schemas.items.coreference import CoreferenceItem

MIN_VOTES = 4
MAX_VOTES = 10

Reading: TypeAlias = Literal["incoherent", "open", "first", "second", "unclear"]
"""Result of the votes on a sentence: the pronoun can mean either occupation (``open``), or only the one mentioned
``first`` or ``second``; or the votes agree too little (``unclear``)."""
Expected: TypeAlias = Literal["open", "first", "second"]
"""Intended reading of a sentence: ``open`` for type 1, the position of the referent for type 2."""


def expected_reading(item: CoreferenceItem) -> Expected:
    """Return the intended reading of an item."""
    return referent_position(item) or "open"


class StopRule(StrEnum):
    """The values of ``--stop-rule``."""

    CLEAR = "clear"
    """Stop when every answer is clear by the shares that accept and reject a sentence. By simulation it keeps 99 % of
    good pairs of annotators who are right in 97 %, with 4.3 votes each."""
    PAPER = "paper"
    """Stop at a consensus of 75 percent on every question, as the publication does. A consensus of just 75 percent
    stops and rejects, so that it keeps 62 % of the same pairs."""


class Count(NamedTuple):
    """The answers to one question about one sentence."""

    yes: int
    n: int

    @classmethod
    def of(cls, ballots: Iterable[Ballot], question: VoteQuestion) -> Count:
        """Count the answers to a question; ballots without an answer do not count."""
        answers = [answer for ballot in ballots if (answer := getattr(ballot, question)) is not None]
        return cls(sum(answers), len(answers))

    # Computed in integers: whether a share is exactly three quarters must not depend on rounding.
    @property
    def above_three_quarters(self) -> bool:
        """True if more than 75 percent are yes."""
        return 4 * self.yes > 3 * self.n

    @property
    def at_least_three_quarters(self) -> bool:
        """True if there are answers, and at least 75 percent are yes."""
        return self.n > 0 and 4 * self.yes >= 3 * self.n

    @property
    def below_one_quarter(self) -> bool:
        """True if less than 25 percent are yes."""
        return 4 * self.yes < self.n

    @property
    def is_consensus(self) -> bool:
        """True if there are answers, and at least 75 percent agree."""
        return self.n > 0 and 4 * max(self.yes, self.n - self.yes) >= 3 * self.n


class VoteTally(NamedTuple):
    """The votes on a sentence; annotators who find it incoherent are not asked the other questions."""

    coherent: Count
    """Answers to: is the sentence coherent?"""
    first: Count
    """Answers to: can the pronoun mean the occupation mentioned first?"""
    second: Count
    """Answers to: can the pronoun mean the occupation mentioned second?"""


def reading_of(tally: VoteTally) -> Reading:
    """Return the reading of a sentence that its votes give."""
    if not tally.coherent.above_three_quarters:
        return "incoherent"
    if tally.first.at_least_three_quarters and tally.second.at_least_three_quarters:
        return "open"
    if tally.first.at_least_three_quarters and tally.second.below_one_quarter:
        return "first"
    if tally.second.at_least_three_quarters and tally.first.below_one_quarter:
        return "second"
    return "unclear"


def is_accepted(tally: VoteTally, expected: Expected, *, relabel: bool = False) -> bool:
    """Return True if the votes accept a sentence.

    Args:
        tally: Votes on the sentence.
        expected: Intended reading of the sentence.
        relabel: True to accept a sentence of type 2 that the votes find open as one of type 1.
    """
    reading = reading_of(tally)
    return reading == expected or (relabel and reading == "open")


@lru_cache(maxsize=1 << 16)
def is_enough(tally: VoteTally, rule: StopRule) -> bool:
    """Return True if a sentence with these votes needs no more, by a rule."""
    if tally.coherent.n < MIN_VOTES:
        return False
    if tally.coherent.n >= MAX_VOTES:
        return True
    coherent = tally.coherent
    if rule is StopRule.CLEAR:
        if coherent.below_one_quarter:
            return True
        pronoun = (tally.first, tally.second)
        is_clear = all(count.at_least_three_quarters or count.below_one_quarter for count in pronoun)
        return coherent.above_three_quarters and is_clear
    if coherent.is_consensus and 2 * coherent.yes < coherent.n:
        # No agreement on the pronoun is needed where the sentence makes no sense.
        return True
    return all(count.is_consensus for count in tally)


@lru_cache(maxsize=1 << 16)
def votes_to_ask(tally: VoteTally, rule: StopRule) -> int:
    """Return the smallest number of further votes that could be enough for a sentence; 0 if it has enough.

    Fewer could not be enough, whatever the answers are, so that asking for all of these at once wastes none.
    """
    if is_enough(tally, rule):
        return 0
    for n in range(max(1, MIN_VOTES - tally.coherent.n), MAX_VOTES - tally.coherent.n):
        if any(is_enough(after, rule) for after in _after(tally, n)):
            return n
    return MAX_VOTES - tally.coherent.n


def _after(tally: VoteTally, n: int) -> Iterator[VoteTally]:
    """Yield every tally that ``n`` further votes could lead to."""
    (coherent, first, second) = tally
    for yes in range(n + 1):
        for yes_first in range(yes + 1):
            for yes_second in range(yes + 1):
                yield VoteTally(
                    Count(coherent.yes + yes, coherent.n + n),
                    Count(first.yes + yes_first, first.n + yes),
                    Count(second.yes + yes_second, second.n + yes),
                )


Verdict: TypeAlias = Literal["accepted", "rejected", "undecided"]

UNDECIDED = Rule(name="undecided", description="enough people have voted on both sides of the pair")
INCOHERENT = Rule(name="incoherent", description="more than 75 percent find the sentence coherent")
NOT_OPEN = Rule(
    name="not_open", description="in type 1, at least 75 percent say of either occupation that it can be meant"
)
NOT_SETTLED = Rule(
    name="not_settled",
    description="in type 2, at least 75 percent say of one occupation that it can be meant, and less than 25 percent "
    "of the other",
)
BOTH_POSSIBLE = Rule(name="both_possible", description="in type 2, the votes do not find that both can be meant")
OTHER_REFERENT = Rule(name="other_referent", description="in type 2, the votes settle on the occupation of the item")
OTHER_SIDE = Rule(name="other_side", description="the other side of the pair is accepted too")
SIDES_DISAGREE = Rule(name="sides_disagree", description="the two sides of the pair are understood alike")
RULES = (INCOHERENT, NOT_OPEN, NOT_SETTLED, BOTH_POSSIBLE, OTHER_REFERENT, OTHER_SIDE, SIDES_DISAGREE, UNDECIDED)
"""Rules in the order of the questions; what breaks one is not in the annotated dataset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The choices that the protocol leaves open."""

    stop_rule: StopRule = StopRule.CLEAR
    relabel: bool = False
    """True to accept pairs of type 2 that the votes find open as pairs of type 1."""
    count_models: bool = False
    """True to count the votes of models like those of people."""
    count_untested: bool = False
    """True to count annotators without an entrance test here, who were tested elsewhere."""

    def counts(self, annotator: Annotator) -> bool:
        """Return True if the votes of an annotator count."""
        if annotator.kind is AnnotatorKind.MODEL and not self.count_models:
            return False
        return annotator.status is Status.ACTIVE or (self.count_untested and annotator.status is Status.UNTESTED)


class ItemDecision(NamedTuple):
    """The verdict of the votes on one item."""

    item: CoreferenceItem
    tally: VoteTally
    verdict: Verdict
    rule: Rule | None
    """Rule that the item breaks; None if it is accepted."""
    reason: str
    reading: Reading
    n_to_ask: int
    """Minimum number of further votes to ask for; 0 unless undecided."""


class PairDecision(NamedTuple):
    """The verdict on a minimal pair, whose sides are accepted or rejected together."""

    pair_id: str
    sides: tuple[ItemDecision, ItemDecision]
    verdict: Verdict
    rules: tuple[tuple[Rule, str], ...]
    """Rule and reason for each side; empty if the pair is accepted."""

    @property
    def is_relabelled(self) -> bool:
        """True if the pair was accepted as one of type 1, though it was written as one of type 2."""
        side = self.sides[0]
        return self.verdict == "accepted" and side.reading != expected_reading(side.item)


def counting_ballots(state: State, policy: Policy) -> dict[str, dict[str, Ballot]]:
    """Return the complete ballots of the annotators whose votes count, by item and annotator.

    If a person has voted on both sides of a pair, which no command takes in, only the side of the first vote counts.
    """
    counting = {name: annotator for name, annotator in state.annotators.items() if policy.counts(annotator)}
    sides: dict[tuple[str, str], str] = {}
    standing = []
    for vote in state.standing_votes.values():
        if vote.annotator_id not in counting:
            continue
        is_model = counting[vote.annotator_id].kind is AnnotatorKind.MODEL
        if is_model or sides.setdefault((vote.annotator_id, vote.pair_id), vote.item_id) == vote.item_id:
            standing.append(vote)
    return {
        item_id: {name: ballot for name, ballot in of_item.items() if ballot.is_complete}
        for item_id, of_item in ballots_of(standing).items()
    }


def tally_of(ballots: Sequence[Ballot]) -> VoteTally:
    """Count complete ballots."""
    return VoteTally(*(Count.of(ballots, question) for question in VoteQuestion))


def decide_pairs(annotated: AnnotatedDataset, state: State, policy: Policy) -> list[PairDecision]:
    """Decide about every pair of a dataset, in the order of the dataset."""
    ballots = counting_ballots(state, policy)
    return [decide_pair(sides, ballots, policy) for sides in annotated.pairs.values()]


def decide_pair(items: Sides, ballots: Mapping[str, Mapping[str, Ballot]], policy: Policy) -> PairDecision:
    """Decide about a pair."""
    first, second = (
        decide_item(item, tally_of(list(ballots.get(item.item_id, {}).values())), policy) for item in items
    )
    pair_id, sides = items[0].pair_id, (first, second)
    verdicts = {side.verdict for side in sides}
    if "rejected" in verdicts:
        broken = tuple(
            (OTHER_SIDE, f"the other side is rejected; {side.reason}")
            if side.verdict != "rejected" or side.rule is None
            else (side.rule, side.reason)
            for side in sides
        )
        return PairDecision(pair_id, sides, "rejected", broken)
    if "undecided" in verdicts:
        waiting = tuple((UNDECIDED, side.reason) for side in sides)
        return PairDecision(pair_id, sides, "undecided", waiting)
    # None where both can be meant.
    understood = [
        side.item.occupations[side.reading == "second"] if side.reading in ("first", "second") else None
        for side in sides
    ]
    if understood[0] != understood[1]:
        reason = f"one side means {understood[0] or 'either'}, the other {understood[1] or 'either'}"
        return PairDecision(pair_id, sides, "rejected", ((SIDES_DISAGREE, reason),) * 2)
    return PairDecision(pair_id, sides, "accepted", ())


def decide_item(item: CoreferenceItem, tally: VoteTally, policy: Policy) -> ItemDecision:
    """Decide about one item by the votes on it."""
    expected = expected_reading(item)
    reading = reading_of(tally)
    (coherent, first, second) = tally
    words = (
        f"{coherent.yes} of {coherent.n} find it coherent, {first.yes} of {first.n} say that the first occupation can "
        f"be meant, {second.yes} of {second.n} the second"
    )
    n_to_ask = votes_to_ask(tally, policy.stop_rule)
    if n_to_ask:
        reason = f"{words}: {n_to_ask} more votes needed at least"
        return ItemDecision(item, tally, "undecided", UNDECIDED, reason, reading, n_to_ask)
    if is_accepted(tally, expected, relabel=policy.relabel):
        return ItemDecision(item, tally, "accepted", None, words, reading, 0)
    if reading == "incoherent":
        broken = INCOHERENT
    elif expected == "open":
        broken = NOT_OPEN
    elif reading == "unclear":
        broken = NOT_SETTLED
    else:
        broken = BOTH_POSSIBLE if reading == "open" else OTHER_REFERENT
    return ItemDecision(item, tally, "rejected", broken, words, reading, 0)


def are_decided_by_people(
    accepted: Sequence[PairDecision], annotated: AnnotatedDataset, state: State, policy: Policy
) -> bool:
    """Return True if the votes of people who passed the test accept all of these pairs, with the same relabelling.

    That others were tested elsewhere is only what the user says.
    """
    if not policy.count_models and not policy.count_untested:
        return True
    tested = replace(policy, count_models=False, count_untested=False)
    alone = {pair.pair_id: pair for pair in decide_pairs(annotated, state, tested)}
    return all(
        alone[pair.pair_id].verdict == "accepted" and alone[pair.pair_id].is_relabelled == pair.is_relabelled
        for pair in accepted
    )


def rule_counts(decisions: Sequence[PairDecision]) -> Counter[str]:
    """Count the items that each rule keeps out."""
    return Counter(rule.name for pair in decisions for rule, _ in pair.rules)
