"""Agreement among annotators, and the cost and yield of an annotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import MissingExtraError, import_extra
from builders.build_command import aligned
from builders.synthbias.annotation.annotate_commands import (
    CountModels,
    CountUntested,
    DatasetFolder,
    Relabel,
    StateFolder,
    Stop,
    fitting_state,
)
from builders.synthbias.annotation.annotated import AnnotatedDataset, read_annotated
from builders.synthbias.annotation.deciding import (
    Count,
    PairDecision,
    Policy,
    StopRule,
    counting_ballots,
    decide_pairs,
    rule_counts,
)
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import Ballot, VoteQuestion, ballots_of
from builders.synthbias.minimal_pairs import Config

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Yield:
    """Verdicts on the sentences of one type."""

    type: Config
    n_items: int
    n_accepted: int
    n_rejected: int
    n_undecided: int
    n_pairs: int
    n_pairs_accepted: int
    n_pairs_rejected: int
    votes_per_item: float | None
    """Mean number of votes on decided items; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorAgreement:
    """Agreement of an annotator with the majority of the others whose votes count."""

    annotator_id: str
    kind: str
    status: str
    entrance: str
    counts: bool
    """True if the votes of the annotator count."""
    n_items: int
    n_compared: int
    """Number of answers to questions on which the other annotators have a majority."""
    n_agreed: int

    @property
    def agreement_rate(self) -> float | None:
        """The share of compared answers that agree; None if there are none."""
        return self.n_agreed / self.n_compared if self.n_compared else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationReport:
    """The state of an annotation in numbers."""

    agreement: tuple[Agreement, ...]
    votes_per_item: Mapping[int, int]
    """Number of items by their number of counting votes."""
    yields: tuple[Yield, ...]
    rejects: Mapping[str, int]
    """Number of items that each rule excludes."""
    annotators: tuple[AnnotatorAgreement, ...]


def make_report(
    annotated: AnnotatedDataset, state: State, policy: Policy, decisions: Sequence[PairDecision]
) -> AnnotationReport:
    """Measure the agreement, cost and yield of an annotation, without the entrance test."""
    counting = counting_ballots(state, policy)
    ballots = {item_id: counting.get(item_id, {}) for item_id in annotated.items}
    sides = [side for pair in decisions for side in pair.sides]
    pairs_by_type: dict[Config, list[PairDecision]] = {"type1": [], "type2": []}
    for pair in decisions:
        pairs_by_type["type1" if pair.sides[0].item.referent is None else "type2"].append(pair)
    return AnnotationReport(
        agreement=tuple(agreement_on(question, ballots) for question in VoteQuestion),
        votes_per_item=dict(sorted(Counter(side.tally.coherent.n for side in sides).items())),
        yields=tuple(_yield(kind, pairs) for kind, pairs in pairs_by_type.items() if pairs),
        rejects=rule_counts(decisions),
        annotators=tuple(_compare_with_majority(annotated, state, policy, ballots)),
    )


def agreement_on(question: VoteQuestion, ballots: Ballots) -> Agreement:
    """Measure the agreement on one question.

    References:
        Krippendorff 2004, Content Analysis, chapter 11. The observed agreement is that of Fleiss 1971.
    """
    counts = [Count.of(of_item.values(), question) for of_item in ballots.values()]
    shared = [count for count in counts if count.n >= 2]
    n_votes = sum(count.n for count in counts)
    alpha = _alpha(shared)
    return Agreement(
        question=question,
        n_votes=n_votes,
        n_items=len(shared),
        yes_rate=sum(count.yes for count in counts) / n_votes if n_votes else None,
        percent_agreement=sum(map(_agreeing, shared)) / len(shared) if shared else None,
        krippendorff_alpha=alpha if isinstance(alpha, float) else None,
        alpha_reason=alpha if isinstance(alpha, str) else None,
    )


def _agreeing(count: Count) -> float:
    """Return the share of the pairs of votes on an item that agree."""
    no = count.n - count.yes
    return (count.yes * (count.yes - 1) + no * (no - 1)) / (count.n * (count.n - 1))


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


def _compare_with_majority(
    annotated: AnnotatedDataset, state: State, policy: Policy, counting: Ballots
) -> list[AnnotatorAgreement]:
    """Compare each annotator with the majority of the others whose votes count; ties are skipped."""
    everybody = ballots_of(vote for vote in state.standing_votes.values() if vote.item_id in annotated.items)
    n_items: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    agreed: Counter[str] = Counter()
    for item_id, ballots in everybody.items():
        for name, ballot in ballots.items():
            n_items[name] += 1
            others = [other for other_name, other in counting[item_id].items() if other_name != name]
            for question in VoteQuestion:
                answer, count = getattr(ballot, question), Count.of(others, question)
                if answer is None or 2 * count.yes == count.n:
                    continue
                compared[name] += 1
                agreed[name] += answer == (2 * count.yes > count.n)
    return [
        AnnotatorAgreement(
            annotator_id=name,
            kind=annotator.kind,
            status=annotator.status,
            entrance=annotator.entrance,
            counts=policy.counts(annotator),
            n_items=n_items[name],
            n_compared=compared[name],
            n_agreed=agreed[name],
        )
        for name, annotator in sorted(state.annotators.items())
    ]


def _yield(kind: Config, pairs: Sequence[PairDecision]) -> Yield:
    verdicts = Counter(side.verdict for pair in pairs for side in pair.sides)
    of_pairs = Counter(pair.verdict for pair in pairs)
    decided = [side.tally.coherent.n for pair in pairs for side in pair.sides if side.verdict != "undecided"]
    return Yield(
        type=kind,
        n_items=sum(verdicts.values()),
        n_accepted=verdicts["accepted"],
        n_rejected=verdicts["rejected"],
        n_undecided=verdicts["undecided"],
        n_pairs=len(pairs),
        n_pairs_accepted=of_pairs["accepted"],
        n_pairs_rejected=of_pairs["rejected"],
        votes_per_item=sum(decided) / len(decided) if decided else None,
    )


@one_line_errors()
def report(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    stop_rule: Stop = StopRule.PAPER,
    relabel: Relabel = False,
    count_models: CountModels = False,
    count_untested: CountUntested = False,
) -> None:
    """Show agreement, votes per item, yield, and how each annotator agrees."""
    annotated = read_annotated(dataset)
    state = fitting_state(annotated, state_folder)
    policy = Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    made = make_report(annotated, state, policy, decide_pairs(annotated, state, policy))
    for line in _lines(made):
        typer.echo(line)


def _lines(report: AnnotationReport) -> Iterator[str]:
    rows = [
        (
            entry.question.value,
            str(entry.n_votes),
            str(entry.n_items),
            _share(entry.yes_rate),
            _share(entry.percent_agreement),
            "-" if entry.krippendorff_alpha is None else f"{entry.krippendorff_alpha:.3f}",
        )
        for entry in report.agreement
    ]
    yield from aligned(("question", "votes", "items", "yes", "agreement", "alpha"), rows)
    yield from (
        f"no alpha for {entry.question}: {entry.alpha_reason}" for entry in report.agreement if entry.alpha_reason
    )
    yield ""
    votes = [(str(n), str(n_items)) for n, n_items in report.votes_per_item.items()]
    yield from aligned(("votes", "items"), votes)
    yield ""
    yields = [
        (
            entry.type,
            *(str(n) for n in (entry.n_items, entry.n_accepted, entry.n_rejected, entry.n_undecided)),
            *(str(n) for n in (entry.n_pairs, entry.n_pairs_accepted, entry.n_pairs_rejected)),
            "-" if entry.votes_per_item is None else f"{entry.votes_per_item:.2f}",
        )
        for entry in report.yields
    ]
    heading = ("type", "items", "accepted", "rejected", "undecided", "pairs", "accepted", "rejected", "votes/item")
    yield from aligned(heading, yields)
    yield from (f"  {rule}: {n} items" for rule, n in sorted(report.rejects.items()))
    yield ""
    annotators = [
        (
            annotator.annotator_id,
            annotator.kind,
            annotator.status,
            annotator.entrance or "-",
            "yes" if annotator.counts else "no",
            str(annotator.n_items),
            _share(annotator.agreement_rate),
        )
        for annotator in report.annotators
    ]
    yield from aligned(("annotator", "kind", "status", "entrance", "counts", "items", "with majority"), annotators)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
