"""Compares what a model achieves with what the baselines of its benchmark achieve on the same items.

Trivial predictors are ideal by most measures of equality, so a rank requires more than they achieve. The baselines come
from no runs: they answer the requests in the records, so that every result can be compared with all of them, whoever
made it and whatever else was run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.strict_json import JsonValue
from evaluators.benchmark import Benchmark, Gate, load_benchmark
from evaluators.metric import NO_INPUTS, MetricDefinition, StatisticsSource, TableSource
from evaluators.runs.measure.baseline_answers import BaselineAnswers
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.statistics.jackknife import Deviations, deviations_of, half_width_of
from evaluators.statistics.unread_samples import settled
from evaluators.task import Task, load_task, prompt_of
from evaluators.task_abilities import table_of
from schemas.documents.base import as_row, from_values
from schemas.documents.result import Metric, Result, Signature
from schemas.files import contract
from schemas.files.record_columns import RecordColumns
from schemas.files.record_hashes import items_sha256, joined_sha256, requests_sha256
from schemas.folders.run_folder import StoredParts

# The order of floating-point sums can make smaller differences, and a model that answers like a baseline must not rank
# above it.
_NEGLIGIBLE = 1e-12
_SHOWN = 0.0005
"""Smallest difference that is visible with three decimals."""
LEAST_LEAD = 0.05
"""Smallest lead over a predictor that knows nothing.

A cue that is right in .53 of ten thousand items is separably above chance, and no sign of reading.
"""
SOLVES = 0.9
"""Accuracy from which a baseline is said to solve the items: nobody can lead it, and it shows that the set cannot show
skill. On WinoBias position alone is right in .995."""
_REFERENCES = "references"
_KNOWN: dict[str, tuple[Reference, ...]] = {}
"""References computed in this process, by the hash of what they depend on."""


class Reference(NamedTuple):
    """The value of a baseline in the metric of a gate."""

    baseline: str
    metric: Metric
    sums: FloatArray
    """Sum and number of the answers' values in each cluster or cell, shape (n_clusters, 2)."""

    @property
    def as_json(self) -> JsonValue:
        """The form in which the memory of this machine holds it."""
        return {"baseline": self.baseline, "metric": contract.plain(as_row(self.metric)), "sums": self.sums.tolist()}

    @classmethod
    def from_json(cls, stored: Any) -> Reference:
        """Return what the memory holds in that form."""
        metric = from_values(stored["metric"], Metric)
        return cls(stored["baseline"], metric, np.array(stored["sums"], dtype=np.float64))


class LeadOverBaseline(NamedTuple):
    """The difference between a model and a baseline on the same items."""

    baseline: str
    value: float
    """Value of the baseline."""
    difference: float
    """Value of the model, with missing answers counted as wrong, minus that of the baseline."""
    low: float | None
    """Lower end of the interval of the difference at 95 %; None if there are too few clusters."""
    high: float | None

    @property
    def is_above(self) -> bool:
        """True if the model is separably above the baseline, by ``LEAST_LEAD`` or more."""
        return self.low is not None and self.low > _NEGLIGIBLE and self.difference >= LEAST_LEAD - _NEGLIGIBLE

    @property
    def solves(self) -> bool:
        """True if the baseline solves the items, which thereby cannot show skill, so that nobody has to lead it."""
        return self.value > SOLVES


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStanding:
    """How a model compares with the baselines in the metric of a gate."""

    metric: Metric
    """The model's value over the answers that were scored."""
    worst: float | None
    """The same with every missing answer counted as wrong, by which the model is judged; None if there is no value."""
    leads: tuple[LeadOverBaseline, ...]
    """The differences from all baselines that can answer such items, the smallest first."""

    @property
    def judged(self) -> tuple[LeadOverBaseline, ...]:
        """The differences from the baselines that do not solve the items."""
        return tuple(lead for lead in self.leads if not lead.solves)

    @property
    def passes(self) -> bool:
        """True if the model is far enough above every baseline that does not solve the items."""
        return self.metric.value is not None and bool(self.judged) and all(lead.is_above for lead in self.judged)

    @property
    def reason(self) -> str | None:
        """The reason why the model does not pass; None if it does."""
        name = self.metric.name.replace("_", " ")
        if self.metric.value is None:
            return f"{name} has no value: {self.metric.reason}"
        if self.leads and not self.judged:
            return (
                f"{name} cannot show skill here: {self.leads[0].baseline} alone is right in {self.leads[0].value:.3f}"
            )
        if not self.leads:
            return f"no baseline of the benchmark can answer such items, so {name} has nothing to be compared with"
        if self.passes:
            return None
        lead = next(lead for lead in self.judged if not lead.is_above)
        judgement = f"{name} {self.metric.value:.3f}"
        if self.worst is not None and self.metric.value - self.worst >= _SHOWN:
            judgement += f", or {self.worst:.3f} with missing answers as wrong ones,"
        baseline = f"the baseline {lead.baseline} ({lead.value:.3f})"
        if lead.low is None or lead.high is None:
            return f"{judgement} cannot be compared with {baseline}: there are too few clusters for an interval"
        if lead.high < 0:
            return f"{judgement} is worse than {baseline}"
        if lead.difference < _SHOWN:
            return f"{judgement} is no better than {baseline}"
        better = f"is only {lead.difference:.3f} better than {baseline}"
        if lead.low > _NEGLIGIBLE:
            return f"{judgement} {better}; a rank needs {LEAST_LEAD:g}"
        return f"{judgement} {better}, which may be chance (95 % interval {lead.low:.3f} to {lead.high:.3f})"


@dataclass(frozen=True)
class GateCheck:
    """The gate of a task, applied to the records of one result."""

    benchmark: Benchmark
    gate: Gate
    signature: Signature
    parts: Iterable[RecordColumns]
    """The records of each part; the iterable can be read several times."""
    known_source: StatisticsSource | None = None
    """The statistics of the records under the gate's task; None to compute them."""
    known_items: str | None = None
    """Hash of the records' facts about their items; None to compute it."""

    @cached_property
    def _task(self) -> Task:
        return load_task(self.gate.task)

    @cached_property
    def _definition(self) -> MetricDefinition[Any]:
        return next(metric for metric in metric_definitions(self.gate.task) if metric.name == self.gate.metric)

    @cached_property
    def _source(self) -> StatisticsSource:
        return self._source_of(self.parts) if self.known_source is None else self.known_source

    def _source_of(self, parts: Iterable[RecordColumns]) -> StatisticsSource:
        is_suite = bool(self.signature.parts)
        metrics = frozenset({self.gate.metric})
        # A vote that missing answers could turn is a missing answer.
        parts = (settled(part, self._task.unread_answers) for part in parts)
        table = table_of(self._task, parts, NO_INPUTS, is_suite=is_suite, metrics=metrics)
        return TableSource(table, is_suite=is_suite)

    @property
    def applies(self) -> bool:
        """True if the items have what the metric of the gate needs, such as right answers."""
        return self._source.facts(self._definition).undefined is None

    def references(self, memory: Memory) -> tuple[Reference, ...]:
        """Return the value of each baseline on these items, without those that cannot answer them.

        The values depend on the items, the prompt and the normalisation, not on the model. They are cached in this
        process and in the memory of this machine.
        """
        parts: dict[str, JsonValue] = {
            "signature": self.signature.sha256(),
            "items": self.known_items or joined_sha256([items_sha256(records) for records in self.parts]),
            "requests": joined_sha256([requests_sha256(records) for records in self.parts]),
            # A baseline that reads texts answers otherwise where they are withheld.
            "has_texts": all(bool(records.exchanges["prompt"].known.all()) for records in self.parts),
        }
        key = strict_json.sha256(parts)
        if key not in _KNOWN:
            # The key includes the requests, so that a result with other prompts cannot change another's baselines.
            stored = memory.get(_REFERENCES, parts)
            if isinstance(stored, list):
                answered = [*map(Reference.from_json, stored)]
            else:
                prompt = prompt_of(self._task, self.signature.prompt)
                answers = BaselineAnswers(self._task, prompt, self.signature.normalisation, self.parts)
                answers.check_facts()
                answered = [
                    self.reference(baseline.name, self._source_of(answers.of(baseline)))
                    for baseline in answers.answering(self.benchmark.baselines)
                ]
                memory.put(_REFERENCES, parts, [reference.as_json for reference in answered])
            _KNOWN[key] = tuple(answered)
        return _KNOWN[key]

    def reference(self, baseline: str, source: StatisticsSource) -> Reference:
        """Return the value of a baseline, given its name and the statistics of its answers to these items."""
        sums = source.statistics(self._definition, {}).cluster_sums
        return Reference(baseline, self._definition.compute(source, {}), sums)

    def standing(self, references: Sequence[Reference]) -> GateStanding:
        """Compare the model of these records with baselines."""
        metric = self._definition.compute(self._source, {})
        defined = [reference for reference in references if reference.metric.value is not None]
        if metric.value is None or not defined:
            return GateStanding(metric=metric, worst=metric.value, leads=())
        # A model must not pass by leaving out what it would get wrong. Baselines answer everything, so each cluster has
        # as many answers as the baseline with most in it, and the model's missing ones count as wrong.
        sums = self._source.statistics(self._definition, {}).cluster_sums
        sums = sums * self._answered_shares(len(sums))
        n_asked = np.max([reference.sums[:, 1] for reference in defined], axis=0)
        counted = np.column_stack([sums[:, 0], np.maximum(n_asked, sums[:, 1])])
        value = float(self._definition.aggregate(counted.sum(axis=0)))
        deviations = deviations_of(counted, self._definition.aggregate, self._source.crossing)
        leads = [self._lead(reference, value, deviations) for reference in defined]
        order = sorted(leads, key=lambda lead: (lead.is_above, lead.difference if lead.low is None else lead.low))
        return GateStanding(metric=metric, worst=value, leads=tuple(order))

    def _lead(self, reference: Reference, value: float, deviations: Deviations | str) -> LeadOverBaseline:
        baseline_value = reference.metric.value
        assert baseline_value is not None, "baselines without a value are left out before"
        of_baseline = deviations_of(reference.sums, self._definition.aggregate, self._source.crossing)
        lead = LeadOverBaseline(reference.baseline, baseline_value, value - baseline_value, None, None)
        if isinstance(deviations, str) or isinstance(of_baseline, str):
            return lead
        half_width = half_width_of(deviations - of_baseline)
        return lead._replace(low=lead.difference - half_width, high=lead.difference + half_width)

    def _answered_shares(self, n_clusters: int) -> FloatArray:
        """Return factors for the sums of clusters that make missing answers count as wrong, shape (n, 1).

        In a config they are 1: missing answers show in the number of answers. In a suite each part counts as one,
        however few its answers, so its factor is the smallest share of answers in any of its splits with right answers.
        """
        if not self.signature.parts:
            return np.ones((1, 1))
        shares = np.array([_smallest_answered_share(settled(part, self._task.unread_answers)) for part in self.parts])
        # If the rows of the table are not parts, use the worst part's share for all.
        is_by_part = n_clusters == len(shares)
        return shares[:, None] if is_by_part else np.full((1, 1), shares.min())


def _smallest_answered_share(part: RecordColumns) -> float:
    """Return the smallest share, over the splits of a part, of the records with a right answer that have a reading."""
    splits, has_target = part.columns["split"].coded, part.columns["target"].known
    shares = [
        float(part.has_reading[rows].mean())
        for code in range(len(splits.texts))
        if (rows := has_target & (splits.codes == code)).any()
    ]
    return min(shares, default=1.0)


def applying_gate(
    signature: Signature,
    parts: Iterable[RecordColumns],
    known_source: StatisticsSource | None = None,
    known_items: str | None = None,
) -> GateCheck | None:
    """Return the gate of the task of some records; None if it has none, or the items lack what the gate needs.

    Args:
        signature: Signature of the result.
        parts: Its records, as :class:`GateCheck` describes them and what may be known of them.
        known_source: The statistics of the records under the gate's task; None to compute them.
        known_items: Hash of the records' facts about their items; None to compute it.
    """
    benchmark = load_benchmark(signature.benchmark)
    gate = benchmark.gate(signature.task)
    check = None if gate is None else GateCheck(benchmark, gate, signature, parts, known_source, known_items)
    return check if check is not None and check.applies else None


def why_no_rank(result: Result, folder: Path) -> str | None:
    """Return why the gate refuses a finished run a rank; None if the run passes, or if its task has no gate."""
    check = applying_gate(result.signature, StoredParts(folder, result)) if result.counts.scored else None
    return None if check is None else check.standing(check.references(machine_memory())).reason
