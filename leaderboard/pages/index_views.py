"""Prepares an index for its pages: title, facts, exports and charts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.measuring import metric_definitions
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages import plots
from leaderboard.pages.addresses import model_page
from leaderboard.pages.definitions import Definition, define
from leaderboard.pages.markup import slug
from leaderboard.pages.sections import Files, Picture, make_picture
from leaderboard.pages.series import Series, series_chart
from leaderboard.pages.table_rows import (
    Columns,
    Line,
    metric_columns,
    metric_fields,
    placed,
    placed_columns,
)
from leaderboard.ranking.boards import Board
from leaderboard.ranking.bounds import bounds_note, detectable_note
from leaderboard.ranking.gates import solved_note
from leaderboard.ranking.index_tables import IndexRow, IndexTable
from schemas.documents.result import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexView:
    """A table of an index and its address on a page."""

    table: IndexTable
    title: str
    anchor: str
    page: str
    files: Files
    comparisons: Files
    picture: Picture | None
    charts: tuple[Picture, ...]
    """Charts of several indices of each model."""

    @property
    def facts(self) -> tuple[str, ...]:
        """The sentences above the table."""
        n_ranked, n_models = len(self.table.ranked), len(self.table.rows) - self.n_baselines
        models = "1 model" if n_models == 1 else f"{n_models} models"
        baselines = "1 baseline" if self.n_baselines == 1 else f"{self.n_baselines} baselines"
        n_configs = len(self.table.signatures)
        configs = {entry.result.signature.config for entry in self.table.rows[0].entries}
        each = "configs" if len(configs) == n_configs else "prompts"
        sentences = [f"{models} ({n_ranked} ranked) and {baselines} with a result on each of {n_configs} {each}."]
        if self.table.scorers:
            named = ", ".join(f"{scorer.kind} by {scorer.label}" for scorer in self.table.scorers)
            sentences.append(f"Texts were scored for {named}.")
        if n_ranked == 1:
            sentences.append("Only one model is ranked, so its rank says nothing yet.")
        elif n_ranked > 1:
            n_separable = sum(comparison.separable for comparison in self.table.comparisons)
            sentences.append(
                f"{n_separable} of {len(self.table.comparisons)} pairs of ranked models can be told apart by the index."
            )
            n_pairs = len(self.table.comparisons)
            sentences += filter(None, [detectable_note(self.table.detectable, "the index", n_pairs)])
        return (*sentences, *filter(None, [self.solved_note]))

    @property
    def solved_note(self) -> str:
        """Sentences on the baselines that solve the items of a config by themselves; empty if none does."""
        of_configs = zip(*(row.entries for row in self.table.rows), strict=True)
        noted = ((entries[0].result.signature.config, solved_note(entries)) for entries in of_configs)
        return " ".join(f"{config}: {note}" for config, note in noted if note)

    @property
    def n_baselines(self) -> int:
        """The number of rows that are baselines."""
        return sum(row.is_baseline for row in self.table.rows)

    def gap_note(self, row: IndexRow) -> str:
        """Return words on what missing answers could change; empty if none are missing."""
        return bounds_note(row.bounds)

    @property
    def part_labels(self) -> tuple[str, ...]:
        """The headings of the parts of the index that ranks, in their order."""
        parts = load_benchmark(self.table.benchmark).indices[0].parts
        return tuple(part.label or part.key.replace("_", " ") for part in parts)

    @property
    def part_keys(self) -> tuple[str, ...]:
        """The keys of the parts of the index that ranks, in their order."""
        return tuple(part.key for part in load_benchmark(self.table.benchmark).indices[0].parts)

    def description(self, name: str) -> str:
        """Return the description of the index with the given name."""
        return next(index.description for index in load_benchmark(self.table.benchmark).indices if index.name == name)

    @property
    def heading(self) -> str:
        """The name of the index that ranks, for readers."""
        return self.label(self.table.rows[0].primary.name)

    def set_name(self, name: str) -> str:
        """Return the name of a way to choose sets of examples, with the metric in it as readers know it."""
        word, _, metric = name.partition(" ")
        is_metric = metric in load_benchmark(self.table.benchmark).compared_over_sets
        return f"{word.capitalize()} {self.label(metric) if is_metric else metric}"

    def others(self, row: IndexRow) -> tuple[Metric, ...]:
        """Return the indices that the table shows next to the one that ranks."""
        names = load_pages(self.table.benchmark).index_columns
        found = {metric.name: metric for metric in row.others}
        return tuple(found[name] for name in names) or row.others

    def label(self, name: str) -> str:
        """Return the name of an index or of one of its parts for readers."""
        return load_pages(self.table.benchmark).label(name)

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions of the index that ranks, of its parts and of its variants."""
        first = self.table.rows[0]
        indices = [
            define(self.label(metric.name), metric, self.description(metric.name))
            for metric in (first.primary, *self.others(first))
        ]
        by_name = {part.name: part for part in first.parts}
        parts = [define(self.label(name), part, self.part_text(part)) for name, part in by_name.items()]
        return (indices[0], *parts, *indices[1:])

    def part_text(self, metric: Metric) -> str:
        """Return the description of a metric that the index averages."""
        parts = load_benchmark(self.table.benchmark).indices[0].parts
        task = next(part.task for part in parts if part.metric == metric.name)
        return next(known.description for known in metric_definitions(task) if known.name == metric.name)

    def model_page(self, row: IndexRow) -> str:
        """Return the path of the page of a row's model."""
        return model_page(row.model.id)


class IndexPlacement(NamedTuple):
    """A row of an index table, for the page of its model."""

    view: IndexView
    row: IndexRow

    @property
    def rows(self) -> tuple[tuple[Metric, tuple[Metric, ...]], ...]:
        """The index and each variant, with the metrics that each averages."""
        return tuple((index.metric, index.parts) for index in self.row.indices)

    @property
    def anchor(self) -> str:
        """The anchor of the row on the page of its model."""
        return f"{self.view.anchor}-{self.row.model.identity_sha256[:8]}"


def index_views(board: Board) -> tuple[IndexView, ...]:
    """Return a view of each index table of a board."""
    tables = board.indices.tables
    return tuple(_view(table, _title(table, tables)) for table in tables)


def _title(table: IndexTable, tables: Sequence[IndexTable]) -> str:
    """Return the title of a table: dataset and protocol, and more if another table would have the same title."""
    title = _short_title(table)
    same = [other for other in tables if _short_title(other) == title]
    if len({_n_items(other) for other in same}) > 1:
        title += f", {' + '.join(f'{n:,}' for n in _n_items(table))} items"
    if len({_prompts(other) for other in same}) > 1:
        title += f", {' + '.join(dict.fromkeys(_prompts(table)))}"
    if len({_normalisations(other) for other in same}) > 1:
        title += f", {' + '.join(dict.fromkeys(_normalisations(table)))}"
    if len({other.version for other in same}) > 1:
        title += f", {table.version}"
    return title


def _short_title(table: IndexTable) -> str:
    return f"{table.dataset} {table.dataset_version}, index, {table.protocol}"


def _n_items(table: IndexTable) -> tuple[int, ...]:
    return tuple(entry.result.signature.n_items for entry in table.rows[0].entries)


def _prompts(table: IndexTable) -> tuple[str, ...]:
    return tuple(entry.result.signature.prompt for entry in table.rows[0].entries)


def _normalisations(table: IndexTable) -> tuple[str, ...]:
    return tuple(entry.result.signature.normalisation or "none" for entry in table.rows[0].entries)


def _view(table: IndexTable, title: str) -> IndexView:
    digest = hashlib.sha256("\n".join((table.version, *table.signatures)).encode()).hexdigest()[:8]
    anchor = re.sub(r"[^a-z0-9.-]+", "-", f"{table.dataset}-index-{table.protocol}-{digest}".lower())
    stem = f"files/{slug(table.benchmark)}-{anchor}"
    dots = [plots.Dot(row.model.id.rpartition("/")[2], row.primary, row.is_baseline) for row in table.rows]
    chart = plots.dots(dots, title=load_pages(table.benchmark).label(table.rows[0].primary.name))
    return IndexView(
        table=table,
        title=title,
        anchor=anchor,
        page=f"benchmarks/{slug(table.benchmark)}.html",
        files=Files(stem),
        comparisons=Files(f"{stem}-comparisons"),
        picture=None if chart is None else make_picture(chart, f"charts/{anchor}", "Index by model."),
        charts=tuple(_charts(table, f"charts/{anchor}")),
    )


def _charts(table: IndexTable, stem: str) -> Iterator[Picture]:
    """Yield the charts of several indices that the benchmark describes."""
    for described in load_pages(table.benchmark).index_charts:
        series = []
        for row in table.rows:
            by_name = {index.metric.name: index.metric for index in row.indices}
            metrics = [by_name.get(name) for name in described.places.values()]
            series.append(Series(row.model.id.rpartition("/")[2], metrics, row.is_baseline))
        chart = series_chart(
            series,
            list(described.places),
            x_title=described.x_title,
            y_title=described.y_title,
            has_lines=described.is_ordered,
        )
        if chart is not None:
            yield make_picture(chart, f"{stem}-{described.name}", described.caption)


def index_placements(views: Sequence[IndexView], model_id: str) -> tuple[IndexPlacement, ...]:
    """Return the rows of a model in the tables of all indices."""
    return tuple(IndexPlacement(view, row) for view in views for row in view.table.rows if row.model.id == model_id)


def index_columns(table: IndexTable) -> Columns:
    """Return the columns of the export of an index table."""
    columns = placed_columns()
    first = table.rows[0]
    for index in first.indices:
        columns |= metric_columns(index.metric.name)
        for part in index.definition.parts:
            columns |= metric_columns(part.key)
    for name in _config_names(first):
        columns |= {f"{name}_signature": str, f"{name}_place": str}
    return columns | {"identity_sha256": str}


def _config_names(row: IndexRow) -> list[str]:
    """Return a name for each result of a row: its config, with the prompt if several have the same config."""
    signatures = [entry.result.signature for entry in row.entries]
    configs = [signature.config for signature in signatures]
    return [one.config if configs.count(one.config) == 1 else f"{one.config}_{one.prompt}" for one in signatures]


def index_lines(table: IndexTable) -> list[Line]:
    """Return the export rows of an index table."""
    lines: list[Line] = []
    for row in table.rows:
        line = placed(row.model, row)
        for index in row.indices:
            line |= metric_fields(index.metric, prefix=index.metric.name)
            for metric, part in zip(index.parts, index.definition.parts, strict=True):
                line |= metric_fields(metric, prefix=part.key)
        for name, entry in zip(_config_names(row), row.entries, strict=True):
            line |= {f"{name}_signature": str(entry.result.signature), f"{name}_place": entry.place}
        lines.append(line | {"identity_sha256": row.model.identity_sha256})
    return lines
