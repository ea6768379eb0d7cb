"""The interface of a benchmark's pages: columns, charts, slices and notes.

A file in ``leaderboard/benchmarks`` describes the pages of one benchmark. It holds ``PAGES``, a
:class:`BenchmarkPages`, and has the name that manifests give in their field ``benchmark``. A benchmark without a file
has pages too, with every metric under its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from evaluators.runs.measuring import metric_definitions
from leaderboard.checking.entries import Entry
from schemas import plugins
from schemas.errors import ConfigError
from schemas.result import Metric

_PACKAGE = "leaderboard.benchmarks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One metric of one slice."""

    key: str
    """Name in JSON and CSV."""
    label: str
    metric: str
    group: dict[str, str] = field(default_factory=dict)
    """The slice that the column shows; empty for all items."""
    version: str | None = None
    """The one version that the column shows if rows have several; values of two never share a column."""

    @property
    def heading(self) -> str:
        """The label, with the version where a table has a column for each."""
        return self.label if self.version is None else f"{self.label}, {self.version}"

    def of(self, entry: Entry) -> Metric | None:
        """Return the metric of a result; None if the scoring of its task does not know it."""
        metric = entry.metric(self.metric, self.group)
        if metric is None or self.version is None or metric.value is None or metric.version == self.version:
            return metric
        reason = f"scored as {metric.version}, this column shows {self.version}"
        return replace(metric, value=None, reason=reason, interval=None, interval_reason=reason, version=self.version)

    def description(self, task: str) -> str:
        """Describe the metric in the words of its definition, with the slice after it."""
        found = {definition.name: definition.description for definition in metric_definitions(task)}.get(
            self.metric, ""
        )
        if not self.group:
            return found
        return f"{found} Only {', '.join(f'{key} = {value}' for key, value in self.group.items())}."


class Layout(NamedTuple):
    """The columns of a kind of table."""

    deciders: tuple[str, ...]
    """Names of metrics: the layout fits a table if one of them has a value in any of its rows."""
    columns: tuple[Column, ...]
    without_column: frozenset[str] = frozenset()
    """Metrics that no column shows. Any other metric that the columns lack comes after them, under its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFact:
    """A fact about each slice of one group, shown as a column of the table of slices, which it sorts."""

    group: str
    heading: str
    unit: str
    note: str
    """Where the fact comes from, as the caption of the table says it."""
    value: Callable[[str], float | None]
    """The fact of a value of the group; None if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceChart:
    """A chart of a metric over the slices of one group, on the page of a model."""

    group: str
    name: str
    """Ending of the file's name."""
    caption: str
    """Words after the name of the metric."""
    choose: Callable[[Sequence[Column]], Sequence[Column]]
    """The metrics that are drawn, out of those that have such slices: columns of the table in their order."""
    applies: Callable[[str], bool] = bool
    """True for the values of the group that are drawn."""
    label: Callable[[str], str] = str
    """The name of a value in the chart."""
    order: Callable[[str], Any] | None = None
    """Sort key of a value; None for the order of the table of slices."""


class ShareChart(NamedTuple):
    """A chart of several metrics of all items side by side, on the page of a model that has them all."""

    name: str
    """Ending of the file's name."""
    title: str
    caption: str
    metrics: Mapping[str, str]
    """Names in the chart by the names of the metrics."""


class BaselinePanel(NamedTuple):
    """A table of the baselines for a hand-written page, where a line ``<!-- generated: NAME -->`` asks for it."""

    name: str
    decider: str
    """Key of a column; the panel shows the first table that has it and has baselines."""
    columns: tuple[str, ...]
    """Keys of the columns that the panel shows."""


def first(n: int) -> Callable[[Sequence[Column]], Sequence[Column]]:
    """Return a function that takes the first columns, for :attr:`SliceChart.choose`."""
    return lambda columns: columns[:n]


@dataclass(frozen=True, kw_only=True)
class BenchmarkPages:
    """The pages of a benchmark, as far as they are its own."""

    name: str
    layouts: tuple[Layout, ...] = ()
    """The first one that fits a table is taken."""
    group_names: Mapping[str, str] = field(default_factory=dict)
    """Words for groups in captions, for those whose names are no words."""
    slice_fact: SliceFact | None = None
    slice_charts: tuple[SliceChart, ...] = ()
    """Charts of their own for some groups; all other groups share one chart per metric."""
    share_charts: tuple[ShareChart, ...] = ()
    baseline_note: str | None = None
    """Sentences under each table that holds baselines: how to read a score beside theirs."""
    baseline_panel: BaselinePanel | None = None


@cache
def pages_of_benchmarks() -> tuple[BenchmarkPages, ...]:
    """Return the pages of every benchmark that has a file, by name."""
    found = []
    for name in plugins.names(_PACKAGE):
        pages: BenchmarkPages = plugins.load(_PACKAGE, name, kind="benchmark").PAGES
        if pages.name != name:
            raise ConfigError(f"pages of benchmark '{pages.name}' lie in a file called '{name}'; give both one name")
        found.append(pages)
    return tuple(found)


def load_pages(name: str) -> BenchmarkPages:
    """Return the pages of a benchmark, plain ones if it has no file."""
    return next((pages for pages in pages_of_benchmarks() if pages.name == name), BenchmarkPages(name=name))
