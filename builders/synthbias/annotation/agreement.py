"""What ``annotate report`` says: agreement among annotators, and the cost and yield of an annotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from biasboard.ground.errors import MissingExtraError, import_extra
from builders.build_command import aligned
from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import (
    Count,
    PairDecision,
    Policy,
    counting_ballots,
    decide_pairs,
    rule_counts,
)
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import Ballot, VoteQuestion, ballots_of
from builders.synthbias.minimal_pairs import CONFIGS

Ballots: TypeAlias = Mapping[str, Mapping[str, Ballot]]
"""Complete ballots by item and annotator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement on one question."""

    question: VoteQuestion
    n_votes: int
    n_items: int
    """Number of items with at least two votes on the question."""
    yes_rate: float | None
    percent_agreement: float | None
    """Share of agreeing pairs of votes on an item, averaged over the items; None if no item has two votes."""
    krippendorff_alpha: float | None
    alpha_reason: str | None
    """Reason why there is no alpha."""


def agreement_on(question: VoteQuestion, ballots: Ballots) -> Agreement:
    """Measure the agreement on one question.

    References:
        Krippendorff 2004, Content Analysis, chapter 11. The observed agreement is that of Fleiss 1971.
    """
    counts = [Count.of(of_item.values(), question) for of_item in ballots.values()]
    shared = [count for count in counts if count.n >= 2]
    n_votes = sum(count.n for count in counts)
    # The share of the pairs of votes on an item that agree.
    agreeing = [(yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1)) for yes, n in shared]
    alpha = _alpha(shared)
    return Agreement(
        question=question,
        n_votes=n_votes,
        n_items=len(shared),
        yes_rate=sum(count.yes for count in counts) / n_votes if n_votes else None,
        percent_agreement=sum(agreeing) / len(shared) if shared else None,
        krippendorff_alpha=alpha if isinstance(alpha, float) else None,
        alpha_reason=alpha if isinstance(alpha, str) else None,
    )


def _alpha(shared: Sequence[Count]) -> float | str:
    """Return Krippendorff's alpha, or the reason why there is none."""
    if not shared:
        return "no item has two votes"
    if sum(count.yes for count in shared) in (0, sum(count.n for count in shared)):
        return "all votes are the same, so that chance alone would agree as well"
    # Gwet's AC1 is not reported: the only library that has it pins an old scipy.
    try:
        # An extra, because of its licence, the GPL: only this number needs it.
        krippendorff = import_extra("krippendorff", "agreement")
    except MissingExtraError as error:
        return str(error)
    counts = [[count.yes, count.n - count.yes] for count in shared]
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def report_lines(annotated: AnnotatedDataset, state: State, policy: Policy) -> Iterator[str]:
    """Yield the agreement, cost and yield of an annotation as tables, without the entrance test."""
    decisions = decide_pairs(annotated, state, policy)
    counting = counting_ballots(state, policy)
    ballots = {item_id: counting.get(item_id, {}) for item_id in annotated.items}
    agreement = [agreement_on(question, ballots) for question in VoteQuestion]
    rows = [
        (
            entry.question.value,
            str(entry.n_votes),
            str(entry.n_items),
            _share(entry.yes_rate),
            _share(entry.percent_agreement),
            "-" if entry.krippendorff_alpha is None else f"{entry.krippendorff_alpha:.3f}",
        )
        for entry in agreement
    ]
    yield from aligned(("question", "votes", "items", "yes", "agreement", "alpha"), rows)
    yield from (f"no alpha for {entry.question}: {entry.alpha_reason}" for entry in agreement if entry.alpha_reason)
    yield ""
    n_items = Counter(side.tally.coherent.n for pair in decisions for side in pair.sides)
    yield from aligned(("votes", "items"), [(str(n), str(n_items[n])) for n in sorted(n_items)])
    yield ""
    heading = ("type", "items", "accepted", "rejected", "undecided", "pairs", "accepted", "rejected", "votes/item")
    yield from aligned(heading, list(_yields(decisions)))
    yield from (f"  {rule}: {n} items" for rule, n in sorted(rule_counts(decisions).items()))
    yield ""
    columns = ("annotator", "kind", "status", "entrance", "counts", "items", "with majority")
    yield from aligned(columns, list(_annotators(annotated, state, policy, ballots)))


def _yields(decisions: Sequence[PairDecision]) -> Iterator[tuple[str, ...]]:
    """Yield for each type: verdicts on items, verdicts on pairs, and the mean number of votes on decided items."""
    for kind in CONFIGS:
        pairs = [pair for pair in decisions if (pair.sides[0].item.referent is None) == (kind == "type1")]
        sides = [side for pair in pairs for side in pair.sides]
        of_items, of_pairs = (Counter(one.verdict for one in ones) for ones in (sides, pairs))
        decided = [side.tally.coherent.n for side in sides if side.verdict != "undecided"]
        counts = (
            *(len(sides), of_items["accepted"], of_items["rejected"], of_items["undecided"]),
            *(len(pairs), of_pairs["accepted"], of_pairs["rejected"]),
        )
        if pairs:
            yield kind, *map(str, counts), f"{sum(decided) / len(decided):.2f}" if decided else "-"


def _annotators(
    annotated: AnnotatedDataset, state: State, policy: Policy, counting: Ballots
) -> Iterator[tuple[str, ...]]:
    """Yield each annotator with the share of answers that agree with the majority of the others whose votes count.

    Questions on which the others are tied are skipped.
    """
    everybody = ballots_of(vote for vote in state.standing_votes.values() if vote.item_id in annotated.items)
    n_items, n_compared, n_agreed = Counter[str](), Counter[str](), Counter[str]()
    for item_id, ballots in everybody.items():
        for name, ballot in ballots.items():
            n_items[name] += 1
            others = [other for other_name, other in counting[item_id].items() if other_name != name]
            for question in VoteQuestion:
                answer, count = getattr(ballot, question), Count.of(others, question)
                if answer is not None and 2 * count.yes != count.n:
                    n_compared[name] += 1
                    n_agreed[name] += answer == (2 * count.yes > count.n)
    for name, annotator in sorted(state.annotators.items()):
        yield (
            *(name, annotator.kind, annotator.status, annotator.entrance or "-"),
            *("yes" if policy.counts(annotator) else "no", str(n_items[name])),
            _share(n_agreed[name] / n_compared[name] if n_compared[name] else None),
        )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
