"""What the pages show of a table: title, facts, files and chart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark import BenchmarkPages, Column, load_pages
from leaderboard.ranking.boards import Board, ResultTable, Row, table_title
from leaderboard.site import plots
from leaderboard.site.markup import slug
from schemas.result import Metric

SUMMARY_ROWS = 5
"""How many models the front page shows of each table."""


class Files(NamedTuple):
    """The two exports of a table, relative to the root of the site."""

    json: str
    csv: str


class Picture(NamedTuple):
    """A chart and where its two drawings lie, relative to the root of the site."""

    chart: plots.Chart
    light: str
    dark: str
    caption: str
    width: int
    height: int

    @property
    def alt(self) -> str:
        """What the chart shows, in words."""
        return self.chart.alt


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table with its place on a page."""

    table: ResultTable
    title: str
    anchor: str
    page: str
    files: Files
    comparisons: Files
    picture: Picture | None

    @property
    def pages(self) -> BenchmarkPages:
        """The description of the benchmark's pages."""
        return load_pages(self.table.signature.benchmark)

    @property
    def n_baselines(self) -> int:
        """How many rows are baselines."""
        return sum(row.entry.is_baseline for row in self.table.rows)

    @property
    def n_separable(self) -> int:
        """How many pairs of ranked models can be told apart."""
        return sum(comparison.separable for comparison in self.table.comparisons)

    @property
    def primary_label(self) -> str:
        """The metric that ranks, as the column is headed."""
        labels = {column.key: column.heading for column in self.table.columns}
        return labels.get(self.table.primary or "", self.table.primary or "none")

    @property
    def facts(self) -> tuple[str, ...]:
        """What a reader should know before the table, one sentence each."""
        signature = self.table.signature
        n_ranked, n_models = len(self.table.ranked), len(self.table.rows) - self.n_baselines
        models = "1 model" if n_models == 1 else f"{n_models} models"
        sentences = [f"{signature.n_items:,} items, {models} ({n_ranked} ranked) and {self.n_baselines} baselines."]
        if self.table.primary is None:
            ranks = (
                "no config by itself ranks models, its index does"
                if load_benchmark(signature.benchmark).indices
                else "nothing ranks"
            )
            sentences.append(f"In {signature.benchmark} {ranks}; the rows are in order of their names.")
        elif n_ranked == 1:
            sentences.append("Only one model is ranked, so its rank says nothing yet.")
        elif n_ranked > 1:
            n_pairs = len(self.table.comparisons)
            sentences.append(
                f"{self.n_separable} of {n_pairs} pairs of ranked models can be told apart by {self.primary_label}."
            )
        return tuple(sentences)

    @property
    def ranking_note(self) -> str:
        """What a summary of the ranking leaves out, in one line."""
        n_ranked = len(self.table.ranked)
        if n_ranked == 0:
            n_rows = len(self.table.rows)
            rows = "1 row" if n_rows == 1 else f"{n_rows} rows"
            return f"No ranked model yet; {rows} without a rank, baselines among them: {self.n_baselines}."
        shown = (
            f"the {SUMMARY_ROWS} nearest to the ideal of {n_ranked} models" if n_ranked > SUMMARY_ROWS else "all models"
        )
        told_apart = "; none can be told apart from another" if n_ranked > 1 and self.n_separable == 0 else ""
        return f"By {self.primary_label}, {shown}{told_apart}; {self.n_baselines} baselines are in the full table."

    def example(self, column: Column) -> Metric | None:
        """A metric of the column, for what all its cells share: version and ideal value."""
        return next((metric for row in self.table.rows if (metric := column.of(row.entry))), None)

    def description(self, column: Column) -> str:
        """What the column shows."""
        return column.description(self.table.signature.task)

    def model_page(self, row: Row) -> str:
        """The page of a row's model."""
        return model_page(row.entry.result.model.id)

    def detail(self, row: Row) -> str:
        """What tells a row from others of the same model: precision, short revision, backend."""
        model = row.entry.result.model
        if row.entry.is_baseline:
            return ""
        parts = [model.backend, model.precision, _short_revision(model.revision)]
        return ", ".join(part for part in parts if part)


def _short_revision(revision: str | None) -> str | None:
    return None if revision is None else revision.removeprefix("sha256:")[:10]


def model_page(model_id: str) -> str:
    """The page of a model, relative to the root of the site."""
    return f"models/{slug(model_id)}.html"


def make_sections(board: Board) -> tuple[Section, ...]:
    """A section for each table of the board."""
    return tuple(_section(table, board.tables) for table in board.tables)


def _section(table: ResultTable, all_tables: Sequence[ResultTable]) -> Section:
    signature = table.signature
    anchor = "-".join(
        _plain(part) for part in (signature.dataset, signature.config, signature.prompt, table.signature_sha256[:8])
    )
    stem = f"files/{_plain(signature.benchmark)}-{anchor}"
    chart = _scatter(table)
    return Section(
        table=table,
        title=table_title(table, all_tables),
        anchor=anchor,
        page=f"benchmarks/{slug(signature.benchmark)}.html",
        files=Files(f"{stem}.json", f"{stem}.csv"),
        comparisons=Files(f"{stem}-comparisons.json", f"{stem}-comparisons.csv"),
        picture=None if chart is None else make_picture(chart, f"charts/{anchor}", ""),
    )


def _plain(part: str) -> str:
    return re.sub(r"[^a-z0-9.-]+", "-", part.lower())


def _scatter(table: ResultTable) -> plots.Chart | None:
    """The second column against the first: how often it is right, or what it prefers, against how alike it behaves."""
    if len(table.columns) < 2:
        return None
    y_column, x_column = table.columns[:2]
    points = []
    for row in table.rows:
        x, y = x_column.of(row.entry), y_column.of(row.entry)
        if x is not None and y is not None:
            label = row.entry.result.model.id.rpartition("/")[2]
            points.append(plots.ScatterPoint(label=label, x=x, y=y, is_baseline=row.entry.is_baseline))
    return plots.scatter(points, x_title=x_column.heading, y_title=y_column.heading)


def make_picture(chart: plots.Chart, stem: str, caption: str) -> Picture:
    """A chart with its place in the site and its size in pixels."""
    size = re.search(r'width="(\d+)" height="(\d+)"', chart.light)
    width, height = (int(size[1]), int(size[2])) if size else (0, 0)
    return Picture(chart, f"{stem}.svg", f"{stem}-dark.svg", caption, width, height)
