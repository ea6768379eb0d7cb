"""Draws the chart of a table: two columns against each other, or one value of each row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from biasboard.ground.charts import LEAST_SHOWN, Chart
from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import Column, load_pages
from leaderboard.charts.rows import RowValue, dots
from leaderboard.charts.scatter import BaselineLine, ScatterPoint, SizedModel, scatter, size_chart
from leaderboard.model_facts import display_name, facts_of
from leaderboard.pages.markup import slug
from leaderboard.ranking.boards import Board
from leaderboard.ranking.gates import best_baselines
from leaderboard.ranking.profiles import profile_of
from leaderboard.ranking.rows import Row, Table, newest_versions

_AXES: tuple[Literal["y", "x"], ...] = ("y", "x")
"""Axes in the order in which a benchmark names the columns of a plane."""


class PageChart(NamedTuple):
    """A chart and the path of its drawing, relative to the root of the site."""

    chart: Chart
    path: str
    caption: str

    @property
    def alt(self) -> str:
        """The description of the chart in words."""
        return self.chart.alt

    @property
    def least_width(self) -> int:
        """Width in pixels below which it is not shown, so that its letters can be read on a phone."""
        return math.ceil(self.chart.width * LEAST_SHOWN)


def make_picture(chart: Chart, stem: str, caption: str) -> PageChart:
    """Return a chart with the path of its drawing.

    Args:
        chart: Chart to place.
        stem: Path of the drawing without the ending.
        caption: Caption below the chart, which the note of the chart follows.
    """
    return PageChart(chart, f"{stem}.svg", f"{caption} {chart.note}".strip())


def _marks(rows: Sequence[Row]) -> str:
    """Return what the marks of a chart say."""
    useless = ", hollow diamonds are useless predictors," if any(row.is_baseline for row in rows) else ""
    return f"Filled circles are models{useless} and lines are 95 % intervals."


def results_pictures(table: Table, stem: str) -> tuple[PageChart, ...]:
    """Return the chart of a table of results: the plane that its benchmark names, or else its first column."""
    pages = load_pages(table.signature.benchmark)
    layout = pages.layout(lambda name: any(column.metric == name for column in table.columns))
    columns = {column.key: column for column in table.columns}
    axes = [columns[key] for key in layout.plane or () if key in columns]
    chart: Chart | None = None
    lines: list[BaselineLine] = []
    if len(axes) == len(_AXES):
        y, x = axes
        points = [
            ScatterPoint(display_name(row.model.id), across, upwards, row.is_baseline)
            for row in table.rows
            if (across := x.of(row.entry)) is not None and (upwards := y.of(row.entry)) is not None
        ]
        lines = list(_baseline_lines(table, axes))
        chart = scatter(points, x_title=x.heading, y_title=y.heading, lines=lines)
    first = next((column for column in table.columns if column.metric not in pages.variants), None)
    if chart is None and first is not None and len(table.rows) > 1:
        found = ((row, first.of(row.entry)) for row in table.rows)
        rows = [RowValue(display_name(row.model.id), one, row.is_baseline) for row, one in found if one is not None]
        chart = dots(rows, title=first.heading)
    caption = " ".join(filter(None, [layout.plane_note, _marks(table.rows), *(line.caption for line in lines)]))
    return () if chart is None else (make_picture(chart, stem, caption),)


def index_pictures(table: Table, stem: str) -> tuple[PageChart, ...]:
    """Return the chart of the table of an index: the index of each model."""
    rows = [RowValue(display_name(row.model.id), row.primary, row.is_baseline) for row in table.rows]
    chart = dots(rows, title=load_pages(table.signature.benchmark).label(table.rows[0].primary.name))
    return () if chart is None else (make_picture(chart, stem, f"The index of each model. {_marks(table.rows)}"),)


def _baseline_lines(table: Table, axes: Sequence[Column]) -> Iterator[BaselineLine]:
    """Yield the lines of the best baselines if an axis shows what a model must achieve before it is ranked.

    One is that of the best baseline that models must lead, another that of the best one that solves the items.
    """
    gate = load_benchmark(table.signature.benchmark).gate(table.signature.task)
    for axis, column in zip(_AXES, axes, strict=True):
        if gate is None or column.metric != gate.metric or column.group:
            continue
        baselines = best_baselines(row.entry for row in table.rows)
        if rival := next((lead for lead in baselines if not lead.solves), None):
            caption = (
                f"Only models beyond the dashed line can have a rank: {rival.baseline} gets so far knowing nothing."
            )
            yield BaselineLine(axis, rival.value, caption)
        if solver := next((lead for lead in baselines if lead.solves), None):
            caption = f"The dotted line is {solver.baseline}, which solves these items, so that they cannot show skill."
            yield BaselineLine(axis, solver.value, caption, is_solver=True)


def size_pictures(board: Board) -> tuple[PageChart, ...]:
    """Return the first two headline measures of each benchmark over size, where enough models have a known size."""
    pictures = []
    for benchmark in board.benchmarks:
        profile = profile_of(board, benchmark)
        for number, column in enumerate(profile.columns[:2] if profile else ()):
            # The newest version of each model in this column.
            newest = {*newest_versions([row.entry for row in column.rows.values()]).values()}
            models = {
                column.rows[identity].model.id: metric
                for identity, metric in column.metrics.items()
                if identity in newest and not column.rows[identity].is_baseline
            }
            sized = [
                SizedModel(
                    facts.short_name,
                    facts.parameters,
                    "kind unknown" if facts.kind is None else "base" if facts.kind == "base" else "tuned",
                    metric,
                )
                for model, metric in models.items()
                if (facts := facts_of(model)) is not None and facts.parameters is not None
            ]
            if chart := size_chart(sized, title=column.headline.label):
                caption = (
                    f"{load_pages(benchmark).heading}: {column.headline.label}. "
                    f"Models whose size is known: {len(sized)} of {len(models)}."
                )
                pictures.append(make_picture(chart, f"charts/size-{slug(benchmark)}-{number + 1}", caption))
    return tuple(pictures)
