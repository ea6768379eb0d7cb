"""Decides which items and pairs the votes accept; a pure function of the votes and the annotators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from builders.dataset.output import Rule
from builders.synthbias.annotation.sentences import Annotated, Pair, expected_reading
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.thresholds import (
    Count,
    Expected,
    Reading,
    StopRule,
    Tally,
    is_accepted,
    is_enough,
    reading_of,
    votes_to_ask,
)
from builders.synthbias.annotation.votes import Annotator, AnnotatorKind, Ballot, Status, ballots_of
from schemas.items.coreference import CoreferenceItem

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
    """The decisions that the protocol leaves open."""

    stop_rule: StopRule = StopRule.PAPER
    relabel: bool = False
    """True to accept type 2 pairs that the votes find open, as type 1."""
    count_models: bool = False
    """True to count the votes of models like those of people."""
    count_untested: bool = False
    """True to count annotators without an entrance test, who were tested elsewhere."""

    def counts(self, annotator: Annotator) -> bool:
        """Return True if the votes of an annotator count."""
        if annotator.kind is AnnotatorKind.MODEL and not self.count_models:
            return False
        return annotator.status is Status.ACTIVE or (self.count_untested and annotator.status is Status.UNTESTED)


class ItemDecision(NamedTuple):
    """The verdict of the votes on one item."""

    item: CoreferenceItem
    tally: Tally
    verdict: Verdict
    rule: Rule | None
    """Rule that the item breaks; None if it is accepted."""
    reason: str
    reading: Reading
    n_to_ask: int
    """Number of further votes to ask for at least; 0 unless undecided."""


class PairDecision(NamedTuple):
    """The verdict on a minimal pair, whose sides stand or fall together."""

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

    Of a person who voted on both sides of a pair, which no command takes in, only the side of the first vote counts.
    """
    counting = {name: one for name, one in state.annotators.items() if policy.counts(one)}
    sides: dict[tuple[str, str], str] = {}
    standing = []
    for vote in state.standing_votes.values():
        if vote.annotator_id not in counting:
            continue
        is_model = counting[vote.annotator_id].kind is AnnotatorKind.MODEL
        if is_model or sides.setdefault((vote.annotator_id, vote.pair_id), vote.item_id) == vote.item_id:
            standing.append(vote)
    return {
        item_id: {name: ballot for name, ballot in found.items() if ballot.is_complete}
        for item_id, found in ballots_of(standing).items()
    }


def tally_of(ballots: Sequence[Ballot]) -> Tally:
    """Count complete ballots; those that find a sentence incoherent say nothing about its pronoun."""
    coherent = [ballot for ballot in ballots if ballot.coherent]
    return Tally(
        Count(len(coherent), len(ballots)),
        Count(sum(ballot.first is True for ballot in coherent), len(coherent)),
        Count(sum(ballot.second is True for ballot in coherent), len(coherent)),
    )


def decide(annotated: Annotated, state: State, policy: Policy) -> list[PairDecision]:
    """Decide about every pair of a dataset, in the order of the dataset."""
    ballots = counting_ballots(state, policy)
    return [decide_pair(pair, ballots, policy) for pair in annotated.pairs.values()]


def decide_pair(pair: Pair, ballots: Mapping[str, Mapping[str, Ballot]], policy: Policy) -> PairDecision:
    """Decide about a pair.

    Args:
        pair: The pair.
        ballots: Complete ballots that count, by item and annotator.
        policy: Policy by which to decide.
    """
    first, second = (
        decide_item(item, tally_of(list(ballots.get(item.item_id, {}).values())), policy) for item in pair.sides
    )
    return _both(pair.pair_id, (first, second))


def decide_item(item: CoreferenceItem, tally: Tally, policy: Policy) -> ItemDecision:
    """Decide about one item by the votes on it."""
    expected = expected_reading(item)
    reading = reading_of(tally)
    n_to_ask = votes_to_ask(tally, expected, policy.stop_rule, relabel=policy.relabel)
    if not is_enough(tally, expected, policy.stop_rule, relabel=policy.relabel):
        reason = f"{_words(tally)}: {n_to_ask} more votes needed at least"
        return ItemDecision(item, tally, "undecided", UNDECIDED, reason, reading, n_to_ask)
    if is_accepted(tally, expected, relabel=policy.relabel):
        return ItemDecision(item, tally, "accepted", None, _words(tally), reading, 0)
    return ItemDecision(item, tally, "rejected", _broken(reading, expected), _words(tally), reading, 0)


def _broken(reading: Reading, expected: Expected) -> Rule:
    if reading == "incoherent":
        return INCOHERENT
    if expected == "open":
        return NOT_OPEN
    if reading == "unclear":
        return NOT_SETTLED
    return BOTH_POSSIBLE if reading == "open" else OTHER_REFERENT


def _words(tally: Tally) -> str:
    (coherent, first, second) = tally
    return (
        f"{coherent.yes} of {coherent.n} find it coherent, {first.yes} of {first.n} say that the first occupation can "
        f"be meant, {second.yes} of {second.n} the second"
    )


def _both(pair_id: str, sides: tuple[ItemDecision, ItemDecision]) -> PairDecision:
    verdicts = {side.verdict for side in sides}
    if "rejected" in verdicts:
        broken = tuple(
            (side.rule, side.reason)
            if side.verdict == "rejected" and side.rule is not None
            else (OTHER_SIDE, f"the other side is rejected; {side.reason}")
            for side in sides
        )
        return PairDecision(pair_id, sides, "rejected", broken)
    if "undecided" in verdicts:
        waiting = ((UNDECIDED, side.reason) for side in sides)
        return PairDecision(pair_id, sides, "undecided", tuple(waiting))
    understood = [referent_of(side) for side in sides]
    if understood[0] != understood[1]:
        reason = f"one side means {understood[0] or 'either'}, the other {understood[1] or 'either'}"
        return PairDecision(pair_id, sides, "rejected", ((SIDES_DISAGREE, reason),) * 2)
    return PairDecision(pair_id, sides, "accepted", ())


def referent_of(decision: ItemDecision) -> str | None:
    """Return the occupation on which the votes settle; None if both can be meant, or nothing is clear."""
    if decision.reading not in ("first", "second"):
        return None
    return decision.item.occupations[decision.reading == "second"]


def are_decided_by_people(accepted: Sequence[PairDecision], annotated: Annotated, state: State, policy: Policy) -> bool:
    """Return True if the votes of people alone accept every one of these pairs, in the same way."""
    if not policy.count_models:
        return True
    alone = {pair.pair_id: pair for pair in decide(annotated, state, replace(policy, count_models=False))}
    return all(
        alone[pair.pair_id].verdict == "accepted" and alone[pair.pair_id].is_relabelled == pair.is_relabelled
        for pair in accepted
    )


def rule_counts(decisions: Sequence[PairDecision]) -> Mapping[str, int]:
    """Count the items that each rule keeps out."""
    return dict(Counter(rule.name for pair in decisions for rule, _ in pair.rules))


def undecided_items(decisions: Sequence[PairDecision]) -> Iterator[ItemDecision]:
    """Yield the items that need more votes; not those whose other side is rejected, which decides about the pair."""
    for pair in decisions:
        if pair.verdict == "undecided":
            yield from (side for side in pair.sides if side.verdict == "undecided")
