"""The interface of a metric: sufficient statistics per cluster, and their aggregation to a value.

A :class:`StatisticsSource` provides the statistics of a slice: from a table, by the function
``MetricDefinition.statistics``, or from stored sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from biasboard.ground.errors import ConfigError
from evaluators.scorer import default_of
from evaluators.statistics.jackknife import (
    SMALLEST,
    WILSON,
    Crossing,
    Deviations,
    deviations_of,
    interval_of,
    interval_of_smallest,
)
from evaluators.statistics.record_tables import GroupedTable, Statistics, mean
from evaluators.text_scores import NO_SCORES, TextScores
from schemas.documents.result import TOLERANCE, Interval, Metric, within
from schemas.documents.run_files import FittedCorrection, ScorerKind


class MetricInputs(NamedTuple):
    """What the metrics of a run need besides its records."""

    scores: TextScores = NO_SCORES
    """Scores of the texts; metrics that need a missing kind of score are null."""
    corrections: Sequence[FittedCorrection] = ()
    """Earlier corrections, applied unchanged."""
    trained: Mapping[str, frozenset[str]] = {}
    """Ids of the items that an adapter of the model was trained on, by config; nothing is fitted on them."""
    may_fit: bool = True
    """True to fit missing corrections; False to leave out the metrics that need them."""


NO_INPUTS = MetricInputs()


class RecordTable(Protocol):
    """Records as arrays; one class per task."""

    @property
    def corrections(self) -> tuple[FittedCorrection, ...]:
        """The corrections, fitted or earlier, that its metrics apply and a run stores; mostly none."""

    @property
    def crossing(self) -> Crossing | None:
        """The clusters of each cell if two factors are crossed; mostly None."""

    @property
    def sizes(self) -> FloatArray | None:
        """Number of rows in each cluster, or in each cell if two factors are crossed; None if it is one."""

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the sorted values that occur in a group; none if the table has no such group."""


T = TypeVar("T", bound=RecordTable)


class MetricFacts(NamedTuple):
    """Facts about a metric that are the same on every slice of a table."""

    version: str
    """Version of the values, which includes the label of the scorer."""
    undefined: str | None
    """Reason why the metric has no value; None if it has one."""
    ideal: float | None
    """Ideal value; None if there is none."""
    unit: str
    """Unit that ``n`` counts."""


class StatisticsSource(Protocol):
    """The origin of the statistics that metrics are computed from."""

    @property
    def crossing(self) -> Crossing | None:
        """The clusters of each row of the statistics if two factors are crossed."""

    @property
    def sizes(self) -> FloatArray | None:
        """Number of units in each row of the statistics; None if each row is one unit."""

    def facts(self, definition: MetricDefinition[Any]) -> MetricFacts:
        """Return the facts about a metric."""

    def groups(self, definition: MetricDefinition[Any]) -> Sequence[Mapping[str, str]]:
        """Return the slices of a metric, all items first; only these if the metric is undefined."""

    def statistics(self, definition: MetricDefinition[Any], group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a metric on a slice."""


class Value(NamedTuple):
    """The value of a metric on a slice."""

    value: float | None
    reason: str | None
    """Reason why the value is None; None if it is a number."""
    statistics: Statistics


class MetricName(NamedTuple):
    """The name of a metric, and the version of its values."""

    name: str
    version: str


class Derivation(NamedTuple):
    """How the statistics of a metric follow from those of another metric of the same task, on all items."""

    base: MetricDefinition[Any]
    statistics: Callable[[Statistics], Statistics]


@dataclass(frozen=True, kw_only=True)
class MetricDefinition(Generic[T]):
    """A metric that is computed from the records of one task."""

    name: str
    task: str
    description: str
    statistics: Callable[[T, Mapping[str, str]], Statistics]
    """Function that returns the sufficient statistics of a slice of a table."""
    aggregate: Callable[[FloatArray], FloatArray] = mean
    """Function from sums of shape (..., n_columns) to values of shape (...,); nan if undefined."""
    version: str = "1.0"
    """Version of the metric; raised by each change that can alter a value."""
    formerly: MetricName | None = None
    """Name and version of the same values in earlier results, which are read as if they had the present ones; None if
    there are none. A stored metric of that name and another version is one of an earlier version."""
    scorer: ScorerKind | None = None
    """Kind of the :class:`TextScores` that it reads from ``table.scores``; None for metrics that need none.

    Without such scores it has no value, and the label of their scorer is part of its version.
    """
    unit: str = "items"
    """Unit that ``n`` counts on a config, such as items or pairs."""
    minimum: float = 0.0
    maximum: float | None = 1.0
    """Largest value that is possible; None if there is none."""
    ideal: float | Callable[[T], float | None] | None = None
    """Ideal value, or function that returns it for a table; None if there is none."""
    overshoots: bool = False
    """True if ``aggregate`` can exceed the range by chance, as an unbiased estimate of a value at its end must.

    The value is then the end, so that none is punished for lying beyond an ideal. Without each cluster it is not
    clipped, since a clipped estimate would seem certain.
    """
    slices: tuple[str | tuple[str, ...], ...] = ()
    """Names of the groups by which the value is also computed: one slice per value of a group, or per combination of
    the values of several groups."""
    undefined: Callable[[T], str | None] = lambda table: None
    """Function that returns why the metric has no value on a table; None if it has one."""
    why_nan: Callable[[FloatArray], str | None] = lambda sums: None
    """Function from the sums of a slice to the reason why ``aggregate`` gives nan; None if the slice has no units."""
    unit_of_suite: str | None = None
    """Unit that ``n`` counts on a suite; None if the same as on a config."""
    interval_method: str = WILSON
    no_interval: str | None = None
    """Reason why the metric never has an interval; None if it can have one."""
    derivation: Derivation | None = None
    """Other statistics that those of this metric follow from, for results that store only the others since their texts
    are kept elsewhere; None if there are none. Such a metric has no slices, and one ideal value on all tables."""
    floor: str | None = None
    """Name of the metric that estimates this metric's value under chance alone; None if there is none."""

    @property
    def slice_keys(self) -> tuple[tuple[str, ...], ...]:
        """The names of the groups that a slice has, for each kind of slice; the first has none, which is all items."""
        return (), *((names,) if isinstance(names, str) else names for names in self.slices)

    def facts_on(self, table: T, *, is_suite: bool) -> MetricFacts:
        """Return the facts about the metric on the table of a suite, or of a config."""
        version, undefined = self.version, None
        if self.scorer is not None:
            scores: TextScores = cast(Any, table).scores
            if (label := scores.label(self.scorer)) is not None:
                # Values from different scorers are not comparable, so the label makes them different versions.
                version += f"{'.' if '+' in version else '+'}{label}"
            if label is not None and not scores.values.get(self.scorer):
                undefined = f"{label} gave none of the texts a score"
            elif label is None:
                # Results without texts store this reason beside their sums, and verify --texts compares it: with
                # another wording they have to be submitted again.
                remedy = f"biasboard rescore RUN --scorer {default_of(self.scorer)}"
                undefined = f"no {self.scorer} scores: {remedy}"
        ideal = self.ideal(table) if callable(self.ideal) else self.ideal
        return MetricFacts(version, undefined or self.undefined(table), ideal, self.unit_on(is_suite=is_suite))

    def unit_on(self, *, is_suite: bool) -> str:
        """Return the unit that ``n`` counts on a suite, or on a config."""
        return self.unit_of_suite or self.unit if is_suite else self.unit

    def deviations(self, source: StatisticsSource, group: Mapping[str, str]) -> Deviations | str:
        """Return how far the value moves without each cluster, or the reason why that is undefined."""
        facts = source.facts(self)
        if facts.undefined is not None:
            return facts.undefined
        sums = source.statistics(self, group).cluster_sums
        return deviations_of(sums, self.aggregate, source.crossing, sizes=source.sizes)

    def compute(self, source: StatisticsSource, group: Mapping[str, str]) -> Metric:
        """Return the value on a slice with its interval, or null with the reason."""
        value = self.value_of(source, group)
        interval, interval_reason = self._interval(value, source, group)
        facts = source.facts(self)
        return Metric(
            name=self.name,
            version=facts.version,
            value=value.value,
            reason=value.reason,
            interval=interval,
            interval_reason=interval_reason,
            n=value.statistics.n,
            n_excluded=value.statistics.n_excluded,
            unit=facts.unit,
            ideal=facts.ideal,
            minimum=self.minimum,
            maximum=self.maximum,
            group=dict(group),
        )

    def value_of(self, source: StatisticsSource, group: Mapping[str, str]) -> Value:
        """Return the value on a slice without its interval, or the reason why there is none.

        Raises:
            ConfigError: the value is outside the range of the metric by more than rounding, so the metric is wrong.
        """
        facts = source.facts(self)
        if facts.undefined is not None:
            return Value(None, facts.undefined, Statistics(np.zeros((0, 0)), 0, 0))
        statistics = source.statistics(self, group)
        value = float(self.aggregate(statistics.cluster_sums.sum(axis=0)))
        if np.isnan(value):
            reason = self.why_nan(statistics.cluster_sums.sum(axis=0)) or f"no {facts.unit} to compute it from"
            return Value(None, reason, statistics)
        inside = within(value, self.minimum, self.maximum)
        if abs(value - inside) > TOLERANCE and not self.overshoots:
            limits = f"[{self.minimum}, {self.maximum}]"
            raise ConfigError(
                f"metric '{self.name}' is {value}, outside {limits}; correct it, or its minimum and maximum"
            )
        return Value(inside, None, statistics)

    def _interval(
        self, value: Value, source: StatisticsSource, group: Mapping[str, str]
    ) -> tuple[Interval | None, str | None]:
        if value.value is None:
            return None, "there is no value"
        if self.no_interval is not None:
            return None, self.no_interval
        if self.interval_method == SMALLEST:
            return interval_of_smallest(source.statistics(self, group).cluster_sums, source.crossing)
        deviations = self.deviations(source, group)
        return interval_of(
            value.value, deviations, minimum=self.minimum, maximum=self.maximum, method=self.interval_method
        )


G = TypeVar("G", bound=GroupedTable)


def mean_metric(
    name: str,
    values: Callable[[G], FloatArray | BoolArray],
    *,
    where: Callable[[G], BoolArray] | None = None,
    undefined: Callable[[G], str | None] = lambda table: None,
    **fields: Any,
) -> MetricDefinition[G]:
    """Define a metric that is a mean over the rows of a table, such as the share of items answered right.

    Args:
        name: Name of the metric.
        values: Function that returns the value of each row, shape (n,); True counts as 1.
        where: Function that returns the mask of the rows that have a value, shape (n,); None for the rows whose value
            is not nan. Other rows count as excluded.
        undefined: Function that returns why the metric has no value on a table; None if it has one.
        fields: Other fields of :class:`MetricDefinition`, of which ``task`` and ``description`` are required.
    """

    def statistics_of_mean(table: G, group: Mapping[str, str]) -> Statistics:
        of_rows = np.asarray(values(table), dtype=np.float64)
        return table.mean_statistics(group, of_rows, None if where is None else where(table))

    return MetricDefinition(name=name, statistics=statistics_of_mean, undefined=undefined, **fields)


class TableSource:
    """The statistics of a table, each computed once: several metrics share some of them."""

    def __init__(self, table: RecordTable, *, is_suite: bool = False) -> None:
        """Wrap the table of a suite, or of a config."""
        self._table = table
        self.crossing, self.sizes = table.crossing, table.sizes
        self._is_suite = is_suite
        self._facts: dict[str, MetricFacts] = {}
        self._computed: dict[Any, Statistics] = {}

    def facts(self, definition: MetricDefinition[Any]) -> MetricFacts:
        """Return the facts about a metric on this table."""
        if definition.name not in self._facts:
            self._facts[definition.name] = definition.facts_on(self._table, is_suite=self._is_suite)
        return self._facts[definition.name]

    def groups(self, definition: MetricDefinition[Any]) -> Sequence[Mapping[str, str]]:
        """Return the slices of a metric, all items first; only these if the metric is undefined."""
        # A metric that is undefined on the whole table is undefined on each slice: a single null is enough.
        if self.facts(definition).undefined is not None:
            return [{}]
        return [
            dict(zip(names, values, strict=True))
            for names in definition.slice_keys
            for values in product(*map(self._table.group_values, names))
        ]

    def statistics(self, definition: MetricDefinition[Any], group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a metric on a slice of this table."""
        # Keyed by the function, not by name: equalised odds and its largest gap, for example, share their sums.
        key = (definition.statistics, *sorted(group.items()))
        if key not in self._computed:
            self._computed[key] = definition.statistics(self._table, group)
        return self._computed[key]
