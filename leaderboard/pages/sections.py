"""Prepares a table for its page: title, facts, files and chart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import BenchmarkPages, Column, load_pages
from leaderboard.pages import plots
from leaderboard.pages.addresses import model_page, plain, table_anchor
from leaderboard.pages.definitions import Definition, define
from leaderboard.pages.markup import slug
from leaderboard.ranking.boards import Board, ResultTable, Row, table_title
from leaderboard.ranking.bounds import bounds_note, detectable_note
from leaderboard.ranking.gates import best_baselines, solved_note
from schemas.documents.result import Metric

_MOST_HEADLINES = 4
_LIMITS = re.compile(r" --(?:limit|part|split) \S+")
"""Options of a command that decide which items of a config are asked."""


class Files(NamedTuple):
    """The paths of the exports of a table, relative to the root of the site."""

    stem: str
    """Path without an ending."""

    @property
    def json(self) -> str:
        """The path of the rows as JSON."""
        return f"{self.stem}.json"

    @property
    def csv(self) -> str:
        """The path of the rows as CSV."""
        return f"{self.stem}.csv"

    @property
    def parquet(self) -> str:
        """The path of the rows as Parquet."""
        return f"{self.stem}.parquet"

    @property
    def tex(self) -> str:
        """The path of the table for a paper, as LaTeX; only tables that compare models have one."""
        return f"{self.stem}.tex"

    @property
    def bib(self) -> str:
        """The path of the entries to cite, as BibTeX; only tables that compare models have one."""
        return f"{self.stem}.bib"


class Picture(NamedTuple):
    """A chart and the path of its drawing, relative to the root of the site; sizes are in pixels."""

    chart: plots.Chart
    path: str
    caption: str
    width: int
    height: int

    @property
    def alt(self) -> str:
        """The description of the chart in words."""
        return self.chart.alt


class Placing(NamedTuple):
    """Where a metric places a result in a table."""

    by: str | None
    """Name of the metric; None if none ranks."""
    place: int
    """Number of the row, from 0."""
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table and its address on a page."""

    table: ResultTable
    title: str
    anchor: str
    page: str
    files: Files
    comparisons: Files
    picture: Picture | None
    lines: tuple[plots.BaselineLine, ...]
    """Lines of the chart that say what baselines achieve."""

    @property
    def pages(self) -> BenchmarkPages:
        """The page description of the benchmark."""
        return load_pages(self.table.signature.benchmark)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the table shows: all but the variants of metrics."""
        return tuple(column for column in self.table.columns if column.metric not in self.pages.variants)

    @property
    def variants(self) -> tuple[Column, ...]:
        """The columns with variants of metrics, which the page folds away."""
        return tuple(column for column in self.table.columns if column.metric in self.pages.variants)

    @property
    def choices(self) -> tuple[Section, ...]:
        """This section and the same one ranked by each other metric that readers can choose."""
        return (self, *(replace(self, table=other) for other in self.table.others))

    @property
    def placed_rows(self) -> tuple[tuple[Row, tuple[Placing, ...]], ...]:
        """The rows, each with where every choice of metric places its result."""
        placings: dict[int, list[Placing]] = {}
        for choice in self.choices:
            for place, row in enumerate(choice.table.rows):
                placings.setdefault(id(row.entry), []).append(Placing(choice.table.primary, place, row))
        return tuple((row, tuple(placings[id(row.entry)])) for row in self.table.rows)

    @property
    def summarised(self) -> tuple[Column, ...]:
        """The columns that summaries speak about: those that the benchmark names, or else the first ones."""
        whole = [column for column in self.columns if not column.group]
        order = self.pages.summarised
        if not order:
            return tuple(whole[:_MOST_HEADLINES])
        named = [column for column in whole if column.metric in order]
        return tuple(sorted(named, key=lambda each: order.index(each.metric)))

    @property
    def n_baselines(self) -> int:
        """The number of rows that are baselines."""
        return sum(row.entry.is_baseline for row in self.table.rows)

    @property
    def n_separable(self) -> int:
        """The number of pairs of ranked models that the data can distinguish."""
        return sum(comparison.separable for comparison in self.table.comparisons)

    @property
    def primary_label(self) -> str:
        """The heading of the metric that ranks the rows, or ``none``."""
        labels = {column.key: column.heading for column in self.table.columns}
        primary = self.table.primary
        return "none" if primary is None else labels.get(primary, self.pages.label(primary))

    @property
    def facts(self) -> tuple[str, ...]:
        """The sentences above the table."""
        signature = self.table.signature
        n_ranked, n_models = len(self.table.ranked), len(self.table.rows) - self.n_baselines
        models = "1 model" if n_models == 1 else f"{n_models} models"
        baselines = "1 baseline" if self.n_baselines == 1 else f"{self.n_baselines} baselines"
        parts = f" in {len(signature.parts)} parts" if signature.parts else ""
        sentences = [f"{signature.n_items:,} items{parts}, {models} ({n_ranked} ranked) and {baselines}."]
        if self.table.sorted_by is not None:
            label = self.pages.label(self.table.sorted_by)
            sentences.append(
                f"These items have no right answers, so no model is ranked; rows are sorted by {label}, largest first."
            )
        elif self.table.primary is None:
            ranks = (
                "the index of all configs ranks the models, not this table"
                if load_benchmark(signature.benchmark).indices
                else "no metric ranks the models"
            )
            sentences.append(f"In {signature.benchmark} {ranks}; the rows are sorted by name.")
        elif n_ranked == 1:
            sentences.append("Only one model is ranked, so its rank says nothing yet.")
        elif n_ranked > 1:
            n_pairs = len(self.table.comparisons)
            sentences.append(
                f"{self.n_separable} of {n_pairs} pairs of ranked models can be told apart by {self.primary_label}."
            )
            sentences += filter(None, [detectable_note(self.table.detectable, self.primary_label, n_pairs)])
        sentences += filter(None, [self.solved_note])
        listed = load_benchmark(signature.benchmark).baselines
        if not self.n_baselines and listed and not any(row.entry.is_imported for row in self.table.rows):
            sentences.append(self._without_baselines)
        return tuple(sentences)

    @property
    def _without_baselines(self) -> str:
        """The sentence on a table without baselines, with the command that adds them under its very conditions."""
        signature = self.table.signature
        dataset = f"{signature.dataset} {signature.dataset_version}"
        if f"{signature.dataset}@{signature.dataset_version}" in load_benchmark(signature.benchmark).retired:
            return f"No useless predictor was scored on {dataset}, which is retired."
        commands = (row.entry.command for row in self.table.rows)
        limits = "" if self.table.is_whole else "".join(_LIMITS.findall(next(filter(None, commands), "")))
        return (
            f"No useless predictor was scored under these conditions. With {dataset} in out/datasets, this does it: "
            f"biasboard run --dataset out/datasets/{signature.dataset} --config {signature.config}{limits} "
            f"--prompt {signature.prompt} --backend baseline --model all"
        )

    @property
    def solved_note(self) -> str:
        """The sentence on the baselines that solve the items by themselves; empty if none does."""
        return solved_note(row.entry for row in self.table.rows)

    @property
    def figure_caption(self) -> str:
        """The caption of the chart."""
        marks = "Filled circles are models, hollow diamonds are baselines, and lines are 95 % intervals."
        return " ".join([marks, *(line.caption for line in self.lines)])

    def gap_note(self, placings: Sequence[Placing], column: Column) -> str:
        """Return words on what missing answers could change, for the cell of a metric that ranks; else empty."""
        bounds = (placing.row.bounds for placing in placings if placing.by == column.metric and not column.group)
        return bounds_note(next(bounds, None))

    def example(self, column: Column) -> Metric | None:
        """Return one metric of a column, for the version and ideal value that all its cells share."""
        return next((metric for row in self.table.rows if (metric := column.of(row.entry))), None)

    def description(self, column: Column) -> str:
        """Return the description of a column."""
        return column.description(self.table.signature.task)

    def definitions(self, columns: Sequence[Column]) -> tuple[Definition, ...]:
        """Return what readers need to understand some columns."""
        return tuple(
            define(column.heading, metric, self.description(column))
            for column in columns
            if (metric := self.example(column)) is not None
        )

    def model_page(self, row: Row) -> str:
        """Return the path of the page of a row's model."""
        return model_page(row.entry.result.model.id)

    def detail(self, row: Row) -> str:
        """Return what distinguishes rows with the same model id: backend, precision and short revision.

        The text is empty for a baseline.
        """
        model = row.entry.result.model
        if row.entry.is_baseline:
            return ""
        parts = [model.backend, model.precision, _short_revision(model.revision)]
        return ", ".join(part for part in parts if part)


def _short_revision(revision: str | None) -> str | None:
    return None if revision is None else revision.removeprefix("sha256:")[:10]


def make_sections(board: Board) -> tuple[Section, ...]:
    """Return a section for each table of the board."""
    return tuple(_section(table, board.tables) for table in board.tables)


def _section(table: ResultTable, all_tables: Sequence[ResultTable]) -> Section:
    signature = table.signature
    anchor = table_anchor(signature, table.signature_sha256)
    stem = f"files/{plain(signature.benchmark)}-{anchor}"
    pages = load_pages(signature.benchmark)
    lines = tuple(_baseline_lines(table, pages))
    chart = _scatter(table, pages, lines) or _dots(table, pages)
    return Section(
        table=table,
        title=table_title(table, all_tables),
        anchor=anchor,
        page=f"benchmarks/{slug(signature.benchmark)}.html",
        files=Files(stem),
        comparisons=Files(f"{stem}-comparisons"),
        picture=None if chart is None else make_picture(chart, f"charts/{anchor}", ""),
        lines=lines,
    )


def _plane(table: ResultTable, pages: BenchmarkPages) -> tuple[Column, Column] | None:
    """Return the columns on the vertical and the horizontal axis, if the benchmark names two for a plane."""
    columns = {column.key: column for column in table.columns}
    plane = pages.layout(lambda name: any(column.metric == name for column in table.columns)).plane
    if plane is None or not columns.keys() >= set(plane):
        return None
    y, x = plane
    return columns[y], columns[x]


def _scatter(table: ResultTable, pages: BenchmarkPages, lines: Sequence[plots.BaselineLine]) -> plots.Chart | None:
    """Draw two columns against each other."""
    plane = _plane(table, pages)
    if plane is None:
        return None
    y_column, x_column = plane
    points = []
    for row in table.rows:
        x, y = x_column.of(row.entry), y_column.of(row.entry)
        if x is not None and y is not None:
            points.append(plots.ScatterPoint(label=_short(row), x=x, y=y, is_baseline=row.entry.is_baseline))
    return plots.scatter(points, x_title=x_column.heading, y_title=y_column.heading, lines=lines)


def _baseline_lines(table: ResultTable, pages: BenchmarkPages) -> Iterator[plots.BaselineLine]:
    """Yield the lines of the best baselines if an axis shows what a model must achieve before it is ranked.

    One is that of the best baseline that models must lead, another that of the best one that solves the items.
    """
    gate = load_benchmark(table.signature.benchmark).gate(table.signature.task)
    axes: tuple[Literal["y", "x"], ...] = ("y", "x")
    for axis, column in zip(axes, _plane(table, pages) or (), strict=False):
        if gate is None or column.metric != gate.metric or column.group:
            continue
        baselines = best_baselines(row.entry for row in table.rows)
        if rival := next((lead for lead in baselines if not lead.solves), None):
            caption = (
                f"Only models beyond the dashed line can have a rank: {rival.baseline} gets so far knowing nothing."
            )
            yield plots.BaselineLine(axis, rival.value, caption)
        if solver := next((lead for lead in baselines if lead.solves), None):
            caption = f"The dotted line is {solver.baseline}, which solves these items, so that they cannot show skill."
            yield plots.BaselineLine(axis, solver.value, caption, is_solver=True)


def _dots(table: ResultTable, pages: BenchmarkPages) -> plots.Chart | None:
    """Draw the first column of a table, one dot for each row."""
    column = next((column for column in table.columns if column.metric not in pages.variants), None)
    if column is None or len(table.rows) < 2:
        return None
    dots = [
        plots.Dot(_short(row), metric, row.entry.is_baseline)
        for row in table.rows
        if (metric := column.of(row.entry)) is not None
    ]
    return plots.dots(dots, title=column.heading)


def _short(row: Row) -> str:
    return row.entry.result.model.id.rpartition("/")[2]


def make_picture(chart: plots.Chart, stem: str, caption: str) -> Picture:
    """Return a chart with the path of its drawing and its size, which is read from the SVG.

    Args:
        chart: Chart to place.
        stem: Path of the drawing without the ending.
        caption: Caption below the chart.
    """
    size = re.search(r'width="(\d+)" height="(\d+)"', chart.svg)
    width, height = (int(size[1]), int(size[2])) if size else (0, 0)
    return Picture(chart, f"{stem}.svg", caption, width, height)
