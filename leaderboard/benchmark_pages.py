"""The interface that describes the pages of a benchmark: their columns, charts, slices, notes and findings.

Each file in ``leaderboard/benchmarks`` describes the pages of one benchmark. It contains ``PAGES``, a
:class:`BenchmarkPages`, and has the name in the field ``benchmark`` of manifests. A benchmark without a file gets pages
too, which show every metric under its own name.

What a finding on the front page is, and the words that findings share.

A finding is a sentence that a function computes from the results of a benchmark. It speaks of clear differences
only: the 95 % intervals of two values do not overlap, or that of one leaves out a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, SupportsFloat, TypeAlias

from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import PAGES, TASKS
from biasboard.ground.plain_text import listed, printed
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.runs.measure.measuring import metric_definitions
from leaderboard.benchmark_figures import Figure
from leaderboard.verify.entries import Entry
from schemas.documents.dataset import Manifest, item_shapes
from schemas.documents.result import Metric

_MOST_NAMED = 2
"""Largest number of groups that a cell names."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: one metric on one slice of the items."""

    metric: str
    label: str = ""
    """Heading; empty in a layout for the name of the metric on all other pages."""
    group: dict[str, str] = field(default_factory=dict)
    """Slice that the column shows; empty for all items."""
    version: str | None = None
    """Version of the metric that the column shows, if the rows have several; None if they all have the same."""
    least: tuple[str, str] | None = None
    """Metric and the group of it whose smallest value the column shows; cells name where it is."""
    key: str = ""
    """Name of the column in JSON and CSV; by default the metric and the values of the slice."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or "_".join((self.metric, *self.group.values())))

    @property
    def heading(self) -> str:
        """The label, with the version of the metric if the table has one column for each version."""
        return self.label if self.version is None else f"{self.label}, {self.version}"

    def of(self, entry: Entry) -> Metric | None:
        """Return the column's metric of a result; None if the task has no such metric.

        If the result has another version of the metric than the column, its value is None, with the reason.
        """
        metric = entry.metric(self.metric, self.group)
        if metric is None or self.version is None or metric.value is None or metric.version == self.version:
            return metric
        reason = f"scored with version {metric.version}, this column shows {self.version}"
        return replace(metric, value=None, reason=reason, interval=None, interval_reason=reason, version=self.version)

    def note_on(self, entry: Entry) -> str:
        """Return where the smallest value is, if that is what the column shows."""
        if self.least is None:
            return ""
        name, group = self.least
        values = {
            metric.group[group]: metric.value
            for metric in entry.metrics.values()
            if metric.name == name and [*metric.group] == [group] and metric.value is not None
        }
        least = [of_group for of_group, value in values.items() if value == min(values.values())]
        return f"for {listed(least, most=_MOST_NAMED)}" if least else ""

    def description(self, task: str) -> str:
        """Return the description of the metric, followed by the slice that the column shows."""
        found = next((known.description for known in metric_definitions(task) if known.name == self.metric), "")
        only = ", ".join(f"{key} = {value}" for key, value in self.group.items())
        return f"{found} Only {only}." if only else found


class Layout(NamedTuple):
    """The columns of one kind of table."""

    deciders: tuple[str, ...]
    """Names of metrics; the layout applies to a table if at least one of them has a value in at least one row."""
    columns: tuple[Column, ...]
    without_column: frozenset[str] = frozenset()
    """Metrics that get no column. Metrics named neither here nor in ``columns`` follow, under their labels."""
    plane: tuple[str, str] | None = None
    """Keys of two columns to draw against each other, the vertical one first, because each explains the other; None to
    draw the first column alone."""
    plane_note: str = ""
    """How to read the two columns against each other, in plain words."""


class Paper(NamedTuple):
    """A paper that readers cite with the numbers of a benchmark."""

    key: str
    """Key of its BibTeX entry."""
    title: str
    authors: tuple[str, ...]
    """Names as ``Last, First``."""
    booktitle: str
    year: int
    address: str
    """Address of the paper on the web."""
    arxiv: str | None = None
    """Identifier at arXiv; None if it is not there."""
    doi: str | None = None
    config: str | None = None
    """Config to whose numbers it belongs; None for all of the benchmark."""


class Example(NamedTuple):
    """A real item of the benchmark, for readers who have never seen one."""

    text: str
    """The item as a model reads it."""
    note: str
    """Sentence that says what is measured with it."""


class CountTable(NamedTuple):
    """A table of counts on the page of a dataset."""

    name: str
    """Suffix of its files."""
    caption: str
    columns: tuple[str, ...]
    """Headings; the first column names the rows, and the others count."""
    rows: tuple[tuple[str | int, ...], ...]


class Headline(NamedTuple):
    """A measure that the front page shows of every model, and that findings and summaries speak about."""

    name: str
    """Name of a metric or index."""
    label: str
    """Heading of its column, for laymen."""
    sentence: str
    """What the value says, in one sentence for laymen: what is good, and what a predictor without skill gets."""
    unit: str
    """What is counted, as in ``share of sentences``."""
    config: str | None = None
    """Config whose result has the metric; None for the benchmark's default table, or an index."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkPages:
    """A description of the parts of the pages that are special to one benchmark."""

    name: str
    title: str = ""
    """Name of the benchmark for readers, as in headings; empty for its name."""
    question: str = ""
    """What the benchmark asks of a model, in one sentence for laymen."""
    examples: tuple[Example, ...] = ()
    """Real items, the most telling one first."""
    headlines: tuple[Headline, ...] = ()
    """Measures of the front page, in the order of their columns; the first one ranks."""
    findings: tuple[FindingOf, ...] = ()
    """Functions that compute the sentences of the front page about its results, the most telling one first."""
    hub_task: str = "text-generation"
    """The task of the Hugging Face Hub to which a model that is asked belongs."""
    command: str = ""
    """Command that scores a model on it, as readers may copy it; empty if that is ``biasboard run`` as for any text."""
    is_of_own_data: bool = False
    """True if its questions are those of whoever builds a board, so that a board without results does not miss it."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Names for readers, by config, of data that are known by a name of their own."""
    config_names: Mapping[str, str] = field(default_factory=dict)
    """What each config asks, in a few words for laymen, by name of the config; empty if its prompts say all."""
    prompt_names: Mapping[str, str] = field(default_factory=dict)
    """What sets prompts apart, in a few words for laymen, by id of the prompt; usual prompts need none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names for readers, by name of a metric or index; a headline's own label goes before."""
    variants: frozenset[str] = frozenset()
    """Metrics that repeat another one by other rules, for comparison; pages show them folded away."""
    summarised: tuple[str, ...] = ()
    """Metrics that the summary of a model covers, in this order; empty for the first columns of each table."""
    may_offend: Mapping[str, str] = field(default_factory=dict)
    """Warnings, by name of a task, for tasks whose texts may offend readers."""
    layouts: tuple[Layout, ...] = ()
    """Layouts of the benchmark's tables; the first one that applies to a table is used."""
    group_names: Mapping[str, str] = field(default_factory=dict)
    """Names for readers, by group, and by ``GROUP: VALUE`` for a value of one, where their own would not read well."""
    index_columns: tuple[str, ...] = ()
    """Indices that the table of indices shows next to the one that ranks, in this order; all if empty."""
    figures: tuple[Figure, ...] = ()
    """What the benchmark's paper draws, below its first table."""
    count_tables: Callable[[Path, Manifest], tuple[CountTable, ...]] | None = None
    """Function of a dataset's folder and manifest that counts what it holds, for the page of the dataset; None for no
    such tables."""
    baseline_note: str | None = None
    """Sentences below each table with baselines that say how to compare a score with theirs; None for no note."""
    papers: tuple[Paper, ...] = ()
    """Papers to cite with the benchmark's numbers."""
    recounts: Mapping[str, Callable[[Sequence[float]], SupportsFloat]] = field(default_factory=dict)
    """Functions that compute again what its papers print beside lists of numbers, by a name of their own."""

    @property
    def heading(self) -> str:
        """The name of the benchmark for readers."""
        return self.title or self.name.replace("_", " ")

    def title_of(self, config: str) -> str:
        """Return the name for readers of what a config holds: that of its data, or else that of the benchmark."""
        return self.titles.get(config, self.heading)

    def papers_of(self, config: str | None) -> list[Paper]:
        """Return the papers to cite with the numbers of a config."""
        return [paper for paper in self.papers if paper.config in (None, config)]

    def config_words(self, config: str, prompt: str = "") -> str:
        """Return what a config asks, by a certain prompt, in words for readers."""
        plain = config.replace("_", " ")
        words = (self.config_names.get(config, plain), self.prompt_names.get(prompt, ""))
        return ", ".join(filter(None, words)) or plain

    def label(self, metric: str) -> str:
        """Return the name of a metric or index for readers."""
        columns = (column for layout in self.layouts for column in layout.columns)
        named = {column.metric: column.label for column in columns if column.label and not column.group}
        named |= {**self.labels, **{headline.name: headline.label for headline in self.headlines}}
        plain = metric.replace("_", " ")
        return named.get(metric, plain[:1].upper() + plain[1:])

    def layout(self, has_value: Callable[[str], bool]) -> Layout:
        """Return the first layout that applies to a table, an empty one if none does.

        Args:
            has_value: Function that returns True if a metric has a value in a row of the table.
        """
        return next((layout for layout in self.layouts if any(map(has_value, layout.deciders))), Layout((), ()))


@cache
def pages_of_benchmarks() -> tuple[BenchmarkPages, ...]:
    """Return the page description of every benchmark that has a file, sorted by name.

    Raises:
        ConfigError: the name of a description differs from the name of its file.
    """
    found = []
    for name in PAGES.names():
        pages: BenchmarkPages = PAGES.get(name, BenchmarkPages)
        if pages.name != name:
            raise ConfigError(f"pages of benchmark '{pages.name}' lie in a file called '{name}'; give both one name")
        _check_metrics(pages)
        found.append(pages)
    return tuple(found)


def _check_metrics(pages: BenchmarkPages) -> None:
    """Check that the pages name existing metrics: the column of a misspelt one would just be missing."""
    named = {name for layout in pages.layouts for name in (*layout.deciders, *layout.without_column)}
    named |= {column.metric for layout in pages.layouts for column in layout.columns}
    named |= {*pages.variants, *pages.summarised}
    indices = {index.name for index in load_benchmark(pages.name).indices}
    named |= {headline.name for headline in pages.headlines} - indices
    if unknown := sorted({*pages.index_columns} - indices):
        raise ConfigError(f"pages of benchmark '{pages.name}' name indices that do not exist: {', '.join(unknown)}")
    named |= set(pages.labels) - indices
    if unknown := sorted(named - metric_names()):
        raise ConfigError(f"pages of benchmark '{pages.name}' name metrics that do not exist: {', '.join(unknown)}")


@cache
def metric_names() -> frozenset[str]:
    """Return the names of the metrics of all tasks."""
    return frozenset(metric.name for task in TASKS.names() for metric in metric_definitions(task))


def check_plug_ins() -> None:
    """Check the plug-ins that every result needs, so that their faults are not reported as faults of results.

    Raises:
        ConfigError: a plug-in has a fault, or a benchmark names a metric that does not exist.
    """
    item_shapes()
    for benchmark in benchmarks():
        named = {part.metric for index in benchmark.indices for part in index.parts}
        named |= {name for ranking in benchmark.rankings for name in ranking if name is not None}
        if unknown := sorted(named - metric_names()):
            raise ConfigError(f"benchmark '{benchmark.name}' names metrics that do not exist: {', '.join(unknown)}")
    pages_of_benchmarks()


def load_pages(name: str) -> BenchmarkPages:
    """Return the page description of a benchmark, an empty one if the benchmark has no file."""
    return next((pages for pages in pages_of_benchmarks() if pages.name == name), BenchmarkPages(name=name))


Results: TypeAlias = Mapping[str, Sequence[Entry]]
"""Results of language models behind the columns of the front page, by config; of each model the newest version only."""
LEAST_MODELS = 2
"""Number of models from which a finding is written; of a single one its own page speaks."""


class Finding(NamedTuple):
    """A sentence computed from results."""

    text: str
    entries: tuple[Entry, ...]
    """The results behind it, those that it names first."""


FindingOf: TypeAlias = Callable[[Results], Finding | None]
"""Function that returns a finding; None if the results say nothing separable about it."""


def is_above(first: Metric, second: Metric) -> bool:
    """Return True if a value is clearly above another: their intervals do not overlap."""
    return first.interval is not None and second.interval is not None and first.interval.low > second.interval.high


def measured(
    entries: Sequence[Entry], first: tuple[str, Mapping[str, str]], second: tuple[str, Mapping[str, str]]
) -> list[tuple[Entry, Metric, Metric]]:
    """Return each result with its values of two measures, without results that lack an interval of one.

    Args:
        entries: Results of one config.
        first: Name and slice of the first measure.
        second: Name and slice of the second measure.
    """
    pairs = ((entry, entry.metric(*first), entry.metric(*second)) for entry in entries)
    return [
        (entry, one, other)
        for entry, one, other in pairs
        if one is not None and one.interval is not None and other is not None and other.interval is not None
    ]


def of_models(n: int, total: int, verb: str, singular: str) -> str:
    """Return how many models do something, at the beginning of a sentence.

    >>> of_models(2, 2, "keep", "keeps")
    'Both models keep'
    >>> of_models(3, 3, "keep", "keeps"), of_models(1, 3, "keep", "keeps"), of_models(0, 3, "keep", "keeps")
    ('All 3 models keep', '1 of 3 models keeps', 'None of 3 models keeps')
    """
    if n == total:
        return f"{'Both' if total == 2 else f'All {total}'} models {verb}"
    return f"{n or 'None'} of {total} models {singular if n < 2 else verb}"


def percent(metric: Metric) -> str:
    """Return a share in percent."""
    return f"{printed(100 * (metric.value or 0.0), 0)} %"
