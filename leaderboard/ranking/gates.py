"""Decides which results may be ranked: those about which nothing forbids it, of models that beat every baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from biasboard.ground.plain_text import listed
from evaluators.benchmark import Benchmark, Gate, load_benchmark
from evaluators.runs.measure.baseline_gate import LeadOverBaseline
from evaluators.runs.measure.index_values import protocol_of
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric

MIN_ANSWERED = 0.5
"""Smallest share of items, and of the units of the primary metric, that must be scored for a model to be ranked.

What is missing widens its rank range; of less than half, a range would say nothing.
"""
BY_INDEX = "models are ranked by the index of all configs, not by one config"
"""Reason of every row of a table that stands in an index."""


def is_settled(entry: Entry) -> bool:
    """Return True if a maintainer has registered a result and has not withdrawn it."""
    return entry.acceptance is not None and entry.acceptance.decision != "withdrawn"


def why_unranked(entry: Entry) -> str | None:
    """Return why a result cannot be ranked, regardless of its metrics; None if it can be."""
    if entry.is_baseline:
        return "baselines are shown for comparison and never ranked"
    if entry.match.reason is not None:
        return entry.match.reason
    if entry.acceptance is not None and entry.acceptance.decision == "withdrawn":
        when = f" on {entry.acceptance.decided}" if entry.acceptance.decided else ""
        return f"withdrawn{when}: {entry.acceptance.reason}"
    if entry.is_replayed and not entry.is_imported:
        return "replayed: its answers come from an earlier run or a file and may repeat another row"
    if entry.claim is not None:
        return f"reported only: {entry.claim}"
    if entry.double is not None:
        return entry.double
    counts = entry.result.counts
    if counts.scored < MIN_ANSWERED * counts.items:
        return f"{counts.scored} of {counts.items} items scored; a rank needs at least half"
    parts = entry.result.signature.parts
    for split_name in entry.result.signature.splits if parts else ():
        having = {counts.part for counts in entry.coverage if counts.split == split_name}
        # A part of a suite that lacks a split which most of its parts have.
        if len(parts) / 2 < len(having) < len(parts):
            lost = next(part for part in parts if part not in having)
            return f"part {lost} has no items of split {split_name}, which most parts have; a rank needs every part"
    # By split, not over all items: the few that support a measurement are a small share of all.
    lacking = [split for split in entry.coverage if split.counts.scored < MIN_ANSWERED * split.counts.items]
    if lacking:
        first = lacking[0]
        more = f", and {len(lacking) - 1} more splits like it" if len(lacking) > 1 else ""
        return (
            f"{first.counts.scored} of {first.counts.items} items of {first.part}/{first.split} scored{more}; a rank "
            "needs at least half of each split"
        )
    return None


_Model: TypeAlias = tuple[object, ...]
"""What names a model under one protocol on one dataset: results of these may decide about one another."""


class Gates:
    """The gates of all results: a result without right answers of its own is judged by the model's other results."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        """Collect the results that can decide."""
        self._deciding: dict[_Model, dict[Gate, list[Entry]]] = {}
        self._limited: set[tuple[_Model, Gate]] = set()
        # What a maintainer has registered comes first, and then decides alone.
        for entry in sorted(
            entries, key=lambda entry: (not is_settled(entry), -entry.result.signature.n_items, entry.place)
        ):
            signature = entry.result.signature
            gate = load_benchmark(signature.benchmark).gate(signature.task)
            if gate is None or entry.standing is None:
                continue
            if entry.match.extent == "whole":
                deciding = self._deciding.setdefault(_model_of(entry), {}).setdefault(gate, [])
                if is_settled(entry) or not any(map(is_settled, deciding)):
                    deciding.append(entry)
            else:  # It decides about nothing else: a short trial run must not shut the gate of a whole one.
                self._limited.add((_model_of(entry), gate))

    def why_shut(self, entry: Entry) -> str | None:
        """Return why a result does not pass the gates of its benchmark; None if it passes or there are none.

        A baseline needs to pass none: it is what models are compared with.
        """
        if entry.is_baseline:
            return None
        signature, own = entry.result.signature, why_own_shut(entry)
        gate = load_benchmark(signature.benchmark).gate(signature.task)
        if own is not None or (entry.standing is not None and gate is not None and not gate.only_reading):
            return own
        gates = load_benchmark(signature.benchmark).gates_for(signature.task)
        deciding = self._deciding.get(_model_of(entry), {})
        for gate in gates:
            if gate not in deciding:
                name = gate.metric.replace("_", " ")
                lacks = f"these items have no right answers, and the model has no result with {name} under this prompt"
                is_limited = (_model_of(entry), gate) in self._limited
                return f"{lacks} but a limited run; repeat that one without --limit" if is_limited else lacks
        for other in (entry for gate in gates for entry in deciding[gate]):
            # A result that could not be ranked itself, for example because much of it was refused, opens no gate.
            reason = None if other.standing is None else other.standing.reason or why_unranked(other)
            if reason is not None:
                return in_config(other, reason)
        return None


def why_own_shut(entry: Entry) -> str | None:
    """Return why a result does not pass the gate of its own task; None if it does, or if other results decide."""
    if entry.is_baseline or entry.standing is not None:
        return None if entry.is_baseline or entry.standing is None else entry.standing.reason
    signature = entry.result.signature
    gate = load_benchmark(signature.benchmark).gate(signature.task)
    metric = None if gate is None or not gate.only_reading else entry.metric(gate.metric)
    # Right answers are a fact of the items, but that answers depend on prompts has to be shown of each result.
    return None if metric is None else f"{metric.name.replace('_', ' ')} has no value: {metric.reason}"


def best_baselines(entries: Iterable[Entry]) -> tuple[LeadOverBaseline, ...]:
    """Return the differences of some results from each baseline of their gate, one for each, the best baseline first.

    The baselines answer the same items, so that the value of each is the same for all results of a table.
    """
    leads = {lead.baseline: lead for entry in entries if entry.standing is not None for lead in entry.standing.leads}
    return tuple(sorted(leads.values(), key=lambda lead: (-lead.value, lead.baseline)))


class Named(NamedTuple):
    """A value of another model or of a useless predictor."""

    name: str
    metric: Metric


def best_useless(benchmark: Benchmark, values: Iterable[Named]) -> Named | None:
    """Return the value nearest to the ideal, if there is one; of equal ones, that of the baseline listed first.

    Benchmarks list the simplest first. Values that only the order of a sum tells apart are equal.
    """
    order = {baseline.name: place for place, baseline in enumerate(benchmark.baselines)}

    def key(useless: Named) -> tuple[float, int, str]:
        distance = abs((useless.metric.value or 0.0) - (useless.metric.ideal or 0.0))
        return round(distance, 9), order.get(useless.name, len(order)), useless.name

    known = (one for one in values if one.metric.value is not None and one.metric.ideal is not None)
    return min(known, key=key, default=None)


def solved_note(entries: Iterable[Entry]) -> str:
    """Return a sentence on the baselines that solve the items of some results by themselves; empty if none does."""
    solvers = [f"{lead.baseline} alone is right in {lead.value:.3f}" for lead in best_baselines(entries) if lead.solves]
    if not solvers:
        return ""
    shown = listed(solvers, most=3)
    return f"These items cannot show skill: {shown}. For a rank, models have to lead the other baselines."


def in_config(entry: Entry, reason: str) -> str:
    """Return a reason with the config of its result in front, unless it begins with that word anyway."""
    config = entry.result.signature.config
    return reason if reason.startswith(config) else f"{config}: {reason}"


def _model_of(entry: Entry) -> _Model:
    signature = entry.result.signature
    data = (signature.benchmark, signature.dataset, signature.dataset_version, signature.splits)
    protocol = protocol_of(signature.task, signature.prompt)
    return entry.result.model.identity_sha256, *data, protocol, signature.normalisation
