"""Combines several results of one model: indices of a benchmark, and sets of examples.

An index is computed from results when needed and never stored. Its version is a hash of the versions of all its parts,
including their scorers, and of the items if those are its own. Values of different versions are never shown in one
table.

Compares results that differ only in the set of examples that their prompts show, part by part.

A mean over sets hides how much depends on the choice of examples. Oracles show it: for each part they choose the best,
median or worst set by one metric, and all metrics are averaged over the chosen sets (Reif & Schwartz 2024,
arXiv:2405.02743, tables 1 and 5 to 9).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError
from evaluators.benchmark import IndexDefinition, Part, PartSource, load_benchmark
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.statistics.jackknife import STUDENT, Deviations, deviations_of, interval_of, joined, ratio
from evaluators.statistics.record_tables import mean
from evaluators.task import load_task
from schemas.documents.result import Interval, Metric, Result

_VERSION = "1.0"


class ScoredResult(NamedTuple):
    """A result with the metrics and deviations that an index needs."""

    result: Result
    metrics: Mapping[str, Metric]
    """Metrics over all items, by name."""
    deviations: Mapping[str, Deviations]
    """Deviations of the metrics of the index by name, without those that have none."""
    by_part: Mapping[str, FloatArray] = MappingProxyType({})
    """Values in each part of a suite, by metric name, shape (n_parts,); nan where a part has none. Filled only for
    metrics that are compared over sets of examples."""
    place: tuple[bool, ...] = ()
    """Place among several results of a model that fit an index, the lowest first; all alike if nobody decided."""


class Index(NamedTuple):
    """An index with its value and parts."""

    metric: Metric
    parts: tuple[Metric, ...]
    definition: IndexDefinition
    deviations: Deviations | None
    """Deviations of the index; None if a part has none."""
    missing: tuple[PartSource, ...]
    """Results that the model lacks for it."""


def protocol_of(task: str, prompt: str) -> str:
    """Return the protocol of a prompt; its id if it has none or the task no longer has the prompt."""
    of_task = load_task(task).prompts.get(prompt)
    return prompt if of_task is None else of_task.protocol or prompt


class ModelResults(NamedTuple):
    """The results of one model on one dataset under one protocol."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str
    normalisation: str
    """Normalisation of the log-probabilities; empty for generated texts."""
    scored: Mapping[PartSource, ScoredResult]
    """Result of each task under any prompt, and under each prompt that an index needs.

    Of several results of a task, one with values comes first, then the one with the lowest place, then the one with
    the most items, then the one whose prompt names the protocol. Results that an index pairs are of the same items if
    possible.
    """

    @property
    def results(self) -> tuple[Result, ...]:
        """The distinct results."""
        return tuple({id(scored.result): scored.result for scored in self.scored.values()}.values())

    @property
    def asked(self) -> str:
        """The protocol, plus ``CONFIG with PROMPT`` where the prompt has another name."""
        # The protocol stands for all results of an index that differ only in their examples.
        named = {id(scored.result) for source, scored in self.scored.items() if source.context is not None}
        results = [result for result in self.results if id(result) not in named]
        prompts = [(result.signature.config, result.signature.prompt) for result in results]
        others = [f"{config} with {prompt}" for config, prompt in sorted(prompts) if prompt != self.protocol]
        return ", ".join([self.protocol, *others])

    @property
    def definitions(self) -> tuple[IndexDefinition, ...]:
        """The indices of the benchmark; the first one ranks the models."""
        return load_benchmark(self.benchmark).indices

    @property
    def missing(self) -> tuple[PartSource, ...]:
        """The results missing for the ranking index; other indices are null if theirs are missing."""
        return tuple(source for source in self.definitions[0].sources if source not in self.scored)


def results_by_model(results: Iterable[ScoredResult]) -> list[ModelResults]:
    """Group the results of benchmarks that have an index by dataset, protocol and model, in that order."""
    grouped: dict[tuple[str, ...], dict[PartSource, list[ScoredResult]]] = defaultdict(lambda: defaultdict(list))
    for scored in sorted(results, key=_preference):
        signature, model = scored.result.signature, scored.result.model
        indices = load_benchmark(signature.benchmark).indices
        if indices:
            key = (
                signature.benchmark,
                signature.dataset,
                signature.dataset_version,
                protocol_of(signature.task, signature.prompt),
                model.id,
                model.identity_sha256,
                signature.normalisation or "",
            )
            sources = dict.fromkeys(source for definition in indices for source in definition.sources)
            fitting = [source for source in sources if source.fits(signature)]
            for source in (PartSource(signature.task), *fitting) if fitting else ():
                grouped[key][source].append(scored)
    return [
        ModelResults(
            benchmark, dataset, version, protocol, norm, _chosen(load_benchmark(benchmark).indices, of_sources)
        )
        for (benchmark, dataset, version, protocol, _, _, norm), of_sources in sorted(
            grouped.items(), key=lambda entry: entry[0]
        )
    ]


def _chosen(
    indices: Sequence[IndexDefinition], candidates: Mapping[PartSource, Sequence[ScoredResult]]
) -> dict[PartSource, ScoredResult]:
    """Return one result for each source: the preferred one, or one of the same items where an index pairs them.

    The candidates of each source are in the order of preference.
    """
    chosen = {source: results[0] for source, results in candidates.items()}
    items_of: dict[bool, str] = {}
    for definition in indices:
        if not definition.paired or not all(source in candidates for source in definition.sources):
            continue
        by_items = [
            {scored.result.signature.items_sha256: scored for scored in reversed(candidates[source])}
            for source in definition.sources
        ]
        # The first source's preferred items that all sources have.
        common = (scored.result.signature.items_sha256 for scored in candidates[definition.sources[0]])
        items = next((items for items in common if all(items in of_source for of_source in by_items)), None)
        first_items = items_of.get(definition.own_items)
        if first_items is not None and all(first_items in of_source for of_source in by_items):
            items = first_items
        elif first_items is not None:
            # Never show an index on other items beside the ranking index, or beside others with items of their own.
            for source in {*definition.sources} - {*indices[0].sources}:
                chosen.pop(source, None)
            continue
        if items is not None:
            items_of.setdefault(definition.own_items, items)
            chosen |= {source: of[items] for source, of in zip(definition.sources, by_items, strict=True)}
    return chosen


def _preference(scored: ScoredResult) -> tuple[bool, tuple[bool, ...], int, bool, str, str]:
    """Return a sort key: results with values, by place, most items, then the prompt that names the protocol."""
    # A config without right answers has the same task as one with them, but no values for an index to average.
    is_empty = all(metric.value is None for metric in scored.metrics.values())
    signature = scored.result.signature
    is_variant = protocol_of(signature.task, signature.prompt) != signature.prompt
    return is_empty, scored.place, -signature.n_items, is_variant, signature.prompt, scored.result.signature_sha256


def index_of(definition: IndexDefinition, scored: Mapping[PartSource, ScoredResult]) -> Index:
    """Compute an index of one model.

    Returns:
        The mean of the parts; null with a reason if a result is missing, a part has no value, or paired results are of
        different items. Its interval keeps the correlation between metrics of one result and between paired results;
        other results are treated as independent.

    Raises:
        ConfigError: a part lies outside the range of the index, or has another ideal.
    """
    parts = tuple(
        scored[part.source].metrics[part.metric] if part.source in scored else _missing(part, definition, scored)
        for part in definition.parts
    )
    for part in parts:
        is_bounded = definition.maximum is None or (part.maximum is not None and part.maximum <= definition.maximum)
        is_inside = part.minimum >= definition.minimum and is_bounded
        if part.ideal not in (None, definition.ideal) or not is_inside:
            raise ConfigError(
                f"index '{definition.name}': its part {part.name} lies in {_range(part.minimum, part.maximum)} and has "
                f"the ideal {part.ideal}; the index is a mean of metrics in "
                f"{_range(definition.minimum, definition.maximum)} whose ideal is {definition.ideal:g}"
            )
    # With another part version or scorer it is another index, which no table shows beside this one.
    versions = "\n".join(f"{part.name} {part.version}" for part in parts)
    if definition.own_items:
        # The results that rank do not tell which items these are.
        items = dict.fromkeys(scored[one].result.signature.items_sha256 for one in definition.sources if one in scored)
        versions = "\n".join([versions, *items])
    version = f"{_VERSION}+{hashlib.sha256(versions.encode()).hexdigest()[:8]}"
    reason = next((f"{part.name}: {part.reason}" for part in parts if part.value is None), None)
    reason = reason or _why_unpaired(definition, scored)
    missing = tuple(source for source in definition.sources if source not in scored)
    values = [part.value for part in parts if part.value is not None]
    value = float(np.mean(values)) if reason is None else None
    deviations = _deviations(definition, scored) if reason is None else None
    interval: Interval | None = None
    interval_reason: str | None = "there is no value"
    if value is not None and deviations is None:
        interval_reason = next(f"{part.name}: {part.interval_reason}" for part in parts if part.interval is None)
    elif value is not None and deviations is not None:
        interval, interval_reason = interval_of(
            value, deviations, minimum=definition.minimum, maximum=definition.maximum, method=STUDENT
        )
    metric = Metric(
        name=definition.name,
        version=version,
        value=value,
        reason=reason,
        interval=interval,
        interval_reason=interval_reason,
        n=len(values),
        n_excluded=len(parts) - len(values),
        unit="metrics",
        ideal=definition.ideal,
        minimum=definition.minimum,
        maximum=definition.maximum,
        group={},
    )
    return Index(metric, parts, definition, deviations, missing)


def _deviations(definition: IndexDefinition, scored: Mapping[PartSource, ScoredResult]) -> Deviations | None:
    """Return the deviations of an index; None if a part has none."""
    of_sources: dict[PartSource, Deviations] = {}
    for part in definition.parts:
        of_part = scored[part.source].deviations.get(part.metric)
        if of_part is None:
            return None
        of_part *= 1 / len(definition.parts)
        # Metrics of one result share its items, and so do all results if they are paired.
        source = definition.parts[0].source if definition.paired else part.source
        of_sources[source] = of_sources[source] + of_part if source in of_sources else of_part
    return joined(list(of_sources.values()))


def _missing(part: Part, definition: IndexDefinition, scored: Mapping[PartSource, ScoredResult]) -> Metric:
    """Return the metric of a part whose result is missing: null, with the reason."""
    is_suite = any(scored_result.result.signature.parts for scored_result in scored.values())
    metric = next(metric for metric in metric_definitions(part.task) if metric.name == part.metric)
    reason = f"there is no result of {part.source} on the same items"
    return Metric(
        name=part.metric,
        version=metric.version,
        value=None,
        reason=reason,
        interval=None,
        interval_reason="there is no value",
        n=0,
        n_excluded=0,
        unit=metric.unit_on(is_suite=is_suite),
        ideal=definition.ideal,
        minimum=metric.minimum,
        maximum=metric.maximum,
        group={},
    )


def _range(minimum: float, maximum: float | None) -> str:
    return f"[{minimum:g}, {'infinity' if maximum is None else f'{maximum:g}'}]"


def _why_unpaired(definition: IndexDefinition, scored: Mapping[PartSource, ScoredResult]) -> str | None:
    """Return why an index cannot pair its results; None if it can, or need not."""
    if not definition.paired or not all(source in scored for source in definition.sources):
        return None
    first, *others = (scored[source].result.signature for source in definition.sources)
    for other in others:
        if (other.items_sha256, other.parts, other.splits) != (first.items_sha256, first.parts, first.splits):
            return f"the results under {first.prompt} and {other.prompt} are of different items"
    return None


_LEAST_SETS = 2
_MEAN, _DEVIATION = "mean of the sets", "standard deviation over the sets"


class SetMean(NamedTuple):
    """The mean of a metric over parts, each with the set chosen for it."""

    value: float | None
    interval: Interval | None
    n: int
    """Number of parts with a value."""


class SetRow(NamedTuple):
    """A rule that chooses a set for each part, with the mean of each metric under it."""

    name: str
    means: Mapping[str, SetMean]


class SetTable(NamedTuple):
    """The comparison of all sets with the same number of examples."""

    n_examples: int
    n_sets: int
    n_defined: int
    """Number of sets that the indices of the benchmark have; more than are compared if the model was asked with few."""
    n_parts: int
    rows: tuple[SetRow, ...]

    @property
    def of_sets(self) -> str:
        """The number of sets in words, as in ``3 of 5 sets``."""
        return f"{self.n_sets} sets" if self.n_sets == self.n_defined else f"{self.n_sets} of {self.n_defined} sets"


def set_tables(of_model: ModelResults, ideals: Mapping[str, float]) -> list[SetTable]:
    """Return a table for each number of examples with several sets; none if the results are not of a suite.

    ``ideals`` has the ideal value of each metric to compare.
    """
    defined = _by_number(dict.fromkeys(source for index in of_model.definitions for source in index.sources))
    tables = []
    for n_examples, of_number in sorted(_by_number(of_model.scored).items()):
        results = [of_model.scored[source] for source in sorted(of_number, key=lambda scored: str(scored.context))]
        signatures = {(scored.result.signature.items_sha256, scored.result.signature.parts) for scored in results}
        are_known = all(scored.by_part.keys() >= ideals.keys() for scored in results)
        if len(results) < _LEAST_SETS or len(signatures) > 1 or not are_known or not results[0].result.signature.parts:
            continue
        values = {name: np.vstack([scored.by_part[name] for scored in results]) for name in ideals}
        n_defined = max(len(defined.get(n_examples, [])), len(results))
        n_parts = len(results[0].result.signature.parts)
        tables.append(SetTable(n_examples, len(results), n_defined, n_parts, tuple(_rows(values, ideals))))
    return tables


def _by_number(sources: Iterable[PartSource]) -> dict[int, list[PartSource]]:
    """Return the sources with a set of examples that no rule chooses, by the number of examples."""
    by_number: dict[int, list[PartSource]] = {}
    for source in sources:
        context = source.context
        if context is not None and context.example_set is not None and context.rule is None:
            by_number.setdefault(context.n_examples, []).append(source)
    return by_number


def set_row_names(ideals: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the rows that the tables of some metrics have.

    >>> set_row_names({"rsd": 0.0})[2:]
    ('least rsd', 'median rsd', 'most rsd')
    """
    return _MEAN, _DEVIATION, *(row for name, ideal in ideals.items() for row in _oracles(name, ideal))


def _oracles(name: str, ideal: float) -> tuple[str, str, str]:
    """Return the names of the rows that choose sets by a metric: the nearest to its ideal, the median, the farthest."""
    first, last = ("least", "most") if ideal == 0.0 else ("best", "worst")
    return f"{first} {name}", f"median {name}", f"{last} {name}"


def _rows(values: Mapping[str, FloatArray], ideals: Mapping[str, float]) -> Iterator[SetRow]:
    """Yield all rows, from the value of each metric by set and part, shape (n_sets, n_parts); nan if it has none."""
    over_sets = {name: _over_sets(of_metric) for name, of_metric in values.items()}
    for place, row in enumerate((_MEAN, _DEVIATION)):
        yield SetRow(row, {name: _mean(of_metric[place]) for name, of_metric in over_sets.items()})
    for name, ideal in ideals.items():
        distances = np.abs(values[name] - ideal)
        # Stable, so that the first of several equal sets is taken.
        order = np.argsort(np.where(np.isnan(distances), np.inf, distances), axis=0, kind="stable")
        n_known = (~np.isnan(distances)).sum(axis=0)
        parts = np.arange(len(n_known))
        for row, ranks in zip(_oracles(name, ideal), (0 * n_known, (n_known - 1) // 2, n_known - 1), strict=True):
            chosen = np.take_along_axis(order, np.maximum(ranks, 0)[None], axis=0)[0]
            under = {one: np.where(n_known > 0, of_one[chosen, parts], np.nan) for one, of_one in values.items()}
            yield SetRow(row, {one: _mean(of_one) for one, of_one in under.items()})


def _over_sets(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation (n - 1) over the sets that have a value, each of shape (n_parts,)."""
    has_value = ~np.isnan(values)
    n = has_value.sum(axis=0).astype(np.float64)
    means = ratio(np.where(has_value, values, 0.0).sum(axis=0), n)
    variances = ratio((np.where(has_value, values - means, 0.0) ** 2).sum(axis=0), n - 1)
    return means, np.sqrt(variances)


def _mean(values: FloatArray) -> SetMean:
    """Return the mean over the parts that have a value, with an interval over the parts."""
    has_value = ~np.isnan(values)
    if not has_value.any():
        return SetMean(None, None, 0)
    sums = np.column_stack([np.where(has_value, values, 0.0), has_value.astype(np.float64)])
    value = float(values[has_value].mean())
    interval, _ = interval_of(value, deviations_of(sums, mean), minimum=-np.inf, maximum=None)
    return SetMean(value, interval, int(has_value.sum()))
