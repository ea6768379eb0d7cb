"""Draws lines: how values change over a few positions or slices, and how the order of models does between measures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from biasboard.ground.charts import (
    DASHED,
    FIRST,
    LINE_HEIGHT,
    MUTED,
    SERIES,
    TEXT,
    Chart,
    Dot,
    Drawing,
    Plane,
    number_text,
    row_names,
    shortened,
    spread,
    ticks,
    width_of,
)
from leaderboard.charts.rows import Panel, interval_of
from leaderboard.ranking.rank_ranges import rank_correlation
from schemas.documents.result import Metric

_WIDTH, _NARROW, _HEIGHT = 215, 130, 135
"""Size of a panel, and its width beside those of other models."""
_NUMBERS = 36
"""Room for the numbers beside a panel."""
MOST_PANELS = 12
"""Number of clouds above which only the models with the steepest and the flattest lines are drawn."""
_COLUMNS, _CLOUD, _BETWEEN = 3, 88, 24
_WIDTHS = {1: 340, 2: 190}
"""Width of a cloud by the number of clouds in a row, if these are few."""
_CLOUD_WIDTH = 116
# A number with three decimals fits between the lines of a column, and a tau over it.
_BUMP_STEP, _BUMP_ROW = 76, 19
_HALF_NUMBER = 20
"""Half the width that lines leave free for a number."""
_BUMP_TITLE = 10
"""Number of characters of a line that fit over a column."""
LEAST_ROWS = 3
"""Smallest number of rows whose orders are compared: those of two are the same or reversed, whatever they are worth."""


def curves(
    columns: Sequence[tuple[str, Sequence[Panel]]],
    lines: Sequence[str],
    *,
    x_title: str,
    alt: str,
    even: Sequence[float] = (),
    decisive: int = -1,
) -> Chart:
    """Draw lines in panels below each other: one for each model, or in a column for each model its own.

    Up to eight lines have colours, names and intervals: those at the ends of each panel, then the first ones. All
    others are thin and grey, to show what is usual.

    Args:
        columns: Panels from the top, whose values are the positions on the horizontal axis, with the name of their
            model, or without a name in the only column. All columns have the same panels, on the same scales.
        lines: Names of the lines.
        x_title: Title of the horizontal axes.
        alt: Description of the chart; which lines of a column without a name have one is added.
        even: Values at each position that are even, for a dashed line; empty for none.
        decisive: Index of the position that orders the lines.
    """
    labels = row_names(lines)
    named = _named_rows([panel.rows for _, panels in columns for panel in panels], decisive)
    looks = dict(zip(named, SERIES, strict=False))
    drawing = Drawing()
    width, left = (_NARROW if len(columns) > 1 else _WIDTH), 0.0
    for name, (_, panels) in zip(row_names([name for name, _ in columns]), columns, strict=True):
        drawing.text(left, -LINE_HEIGHT - 14, name)
        for number, panel in enumerate(panels):
            known = [metric for _, alike in columns for metric in alike[number].known]
            ends = [end for metric in known for end in (metric.value or 0.0, *interval_of(metric))]
            low, high = min(0.0, *ends), max(*ends, 0.001) * 1.03
            top = number * (_HEIGHT + 24 + LINE_HEIGHT + 8)
            edges = (-0.3, len(panel.names) - 0.7)
            plane = Plane(drawing, width, _HEIGHT, x=edges, y=(low, high), left=left, top=top)
            drawing.text(left, top - 14, panel.title, bold=True)
            plane.axis_below(dict(enumerate(panel.names)), x_title if number == len(panels) - 1 else "", grid=False)
            plane.axis_beside(ticks(low, high, 4))
            if even:
                plane.line(enumerate(even), MUTED, width=1, dash=DASHED)
            _lines(plane, panel, labels, looks, decisive)
        left += width + max(map(width_of, labels)) + _NUMBERS + 10
    if any(name for name, _ in columns):
        return drawing.chart(alt)
    n_grey = len(labels) - len(looks)
    more = f" {n_grey} more are grey." if n_grey else ""
    return drawing.chart(f"{alt} Named are {', '.join(labels[number] for number in looks)}.{more}")


def _lines(plane: Plane, panel: Panel, labels: Sequence[str], looks: Mapping[int, str], decisive: int) -> None:
    """Draw the rows of a panel, with the names of those that have a colour beside the plane."""
    lines = [
        [(place, metric.value) for place, metric in enumerate(row) if metric is not None and metric.value is not None]
        for row in panel.rows
    ]
    for row, line in enumerate(lines):
        if row not in looks and line:
            plane.line(line, MUTED, width=0.8, opacity=0.45)
    for row, colour in looks.items():
        if lines[row]:
            plane.line(lines[row], colour)
    plane.dots(
        [
            Dot(place, metric.value, colour, upwards=interval_of(metric))
            for row, colour in looks.items()
            for place, metric in enumerate(panel.rows[row])
            if metric is not None and metric.value is not None
        ],
        size=2.8,
    )
    # Lines that end in the same point have their names in the order of the decisive position, the highest on top.
    known = sorted((row for row in looks if lines[row]), key=lambda row: -(_value(panel.rows[row], decisive) or 0.0))
    ends = [plane.down(lines[row][-1][1]) for row in known]
    for row, y in zip(known, spread(ends, LINE_HEIGHT - 1, plane.top, plane.top + plane.height), strict=True):
        plane.drawing.text(plane.left + plane.width + 7, y, labels[row], colour=looks[row])


def _named_rows(panels: Sequence[Sequence[Sequence[Metric | None]]], decisive: int) -> list[int]:
    """Return the numbers of the rows that get names: the ends of each panel at a position, then the first ones."""
    chosen: list[int] = []
    for rows in panels:
        known = {number: value for number, row in enumerate(rows) if (value := _value(row, decisive)) is not None}
        if known:
            chosen += [max(known, key=known.__getitem__), min(known, key=known.__getitem__)]
    order = dict.fromkeys([*chosen, *range(len(panels[0]) if panels else 0)])
    return sorted([*order][: len(SERIES)])


def _value(row: Sequence[Metric | None], position: int) -> float | None:
    """Return the value at a position, or the last one before it."""
    until = row[: position % len(row) + 1]
    return next((metric.value for metric in reversed(until) if metric is not None and metric.value is not None), None)


class Spot(NamedTuple):
    """A slice of a model."""

    x: float
    y: float
    is_separable: bool
    """True if the interval of y leaves out 0."""


class Cloud(NamedTuple):
    """The slices of one model."""

    label: str
    spots: tuple[Spot, ...]

    @property
    def line(self) -> tuple[float, float]:
        """The slope and the intercept of the line nearest to the points; the slope is 0 if all have one x."""
        x, y = (np.array([spot[axis] for spot in self.spots]) for axis in (0, 1))
        around = float(((x - x.mean()) ** 2).sum())
        slope = float(((x - x.mean()) * y).sum()) / around if around else 0.0
        return slope, float(y.mean() - slope * x.mean())


def chosen(clouds: Sequence[Cloud]) -> list[Cloud]:
    """Return the models to draw: all if they fit, or else those with the steepest and the flattest lines."""
    if len(clouds) <= MOST_PANELS:
        return [*clouds]
    steepest_first = sorted(clouds, key=lambda cloud: -abs(cloud.line[0]))
    half = MOST_PANELS // 2
    return [*steepest_first[:half], *steepest_first[-half:]]


def multiples(clouds: Sequence[Cloud], *, x_title: str, y_title: str, x_range: tuple[float, float], alt: str) -> Chart:
    """Draw the slices of each model around a dashed line at 0, with the line nearest to them.

    Args:
        clouds: Models, each with at least one slice.
        x_title: Title of all horizontal axes.
        y_title: Title of all vertical axes.
        x_range: Ends of the horizontal axes.
        alt: Description of the chart.
    """
    highest = max(0.2, *(abs(spot.y) for cloud in clouds for spot in cloud.spots)) * 1.05
    width = _WIDTHS.get(len(clouds), _CLOUD_WIDTH)
    tick = int(highest * 10) / 10
    drawing = Drawing()
    drawing.text(-_NUMBERS, -2 * LINE_HEIGHT - 8, f"{y_title}, by {x_title}", bold=True)
    for number, cloud in enumerate(clouds):
        row, column = divmod(number, _COLUMNS)
        left, top = column * (width + _BETWEEN), row * (_CLOUD + LINE_HEIGHT + _BETWEEN)
        plane = Plane(drawing, width, _CLOUD, x=x_range, y=(-highest, highest), left=left, top=top)
        drawing.text(left, top - 11, shortened(cloud.label, int(width // width_of("x"))))
        places = (x_range[0], sum(x_range) / 2, x_range[1])
        plane.axis_below({x: f"{x:g}" for x in places}, grid=False, words=number >= len(clouds) - _COLUMNS)
        marks = {y: number_text(y, 1, signed=True) for y in (-tick, 0.0, tick)}
        plane.axis_beside(marks, words=column == 0)
        plane.rule(y=0.0)
        slope, intercept = cloud.line
        plane.line([(x, max(-highest, min(highest, intercept + slope * x))) for x in x_range], FIRST)
        plane.dots([Dot(spot.x, spot.y, FIRST, is_hollow=not spot.is_separable) for spot in cloud.spots], size=2.2)
    return drawing.chart(alt)


class BumpColumn(NamedTuple):
    """A column of a bump chart: values whose distance from 1, the best one, orders its rows."""

    title: str
    values: Sequence[float | str]
    """Value of each row, or the reason why it has none."""


def bump_chart(names: Sequence[str], orders: Sequence[BumpColumn], *, subject: str) -> Chart | None:
    """Draw the order of the rows in each column, with a line for each row.

    Rows without a value in every column are left out, since places among different rows cannot be compared. Above each
    column but the first stands its rank correlation with the first. The note of the chart says over how many rows, and
    which ones are left out for which reason.

    Args:
        names: Names of the rows; rows that tie in all columns keep this order.
        orders: Columns from the left, at least two.
        subject: What orders the rows, as in "ordered by evenness with other weights", for the description.

    Returns:
        The chart, or None if fewer than ``LEAST_ROWS`` rows have all values.
    """
    rows: dict[str, list[float]] = {}
    left_out = []
    for label, values in zip(row_names(names), zip(*(order.values for order in orders), strict=True), strict=True):
        reasons = [value for value in values if isinstance(value, str)]
        if reasons:
            left_out.append(f"{label} ({reasons[0]})")
        else:
            rows[label] = [value for value in values if not isinstance(value, str)]
    if len(rows) < LEAST_ROWS:
        return None
    distances = [[abs(value - 1) for value in column] for column in zip(*rows.values(), strict=True)]
    correlations = (rank_correlation(distances[0], column) for column in distances[1:])
    written = ("τ undefined" if tau is None else f"τ {tau:.2f}" for tau in correlations)
    taus = ["", *(text.replace("-", "\N{MINUS SIGN}") for text in written)]
    # The nearest to the ideal first; those that tie keep the order of the first column.
    orderings = [
        [label for *_, label in sorted(zip(column, distances[0], range(len(rows)), rows, strict=True))]
        for column in distances
    ]
    note = (
        f"τ is Kendall's rank correlation (tau-b) with the first column over these {len(rows)} models: 1 is the same "
        "order, 0 no relation, \N{MINUS SIGN}1 the reverse."
    )
    note += f" Left out: {', '.join(left_out)}." if left_out else ""
    words = (
        f"{order.title}: {tau}{', ' if tau else ''}first is {column[0]}, last {column[-1]}"
        for order, tau, column in zip(orders, taus, orderings, strict=True)
    )
    drawing = Drawing()
    plane = Plane(
        drawing, _BUMP_STEP * (len(orders) - 1), _BUMP_ROW * len(rows), x=(0.0, len(orders) - 1), y=(len(rows), 0.0)
    )
    for number, (order, tau) in enumerate(zip(orders, taus, strict=True)):
        lines = [*textwrap.wrap(order.title, _BUMP_TITLE), *([tau] if tau else [])]
        for line, text in enumerate(reversed(lines)):
            is_tau = bool(tau) and line == 0
            down = -8 - line * LINE_HEIGHT
            drawing.text(plane.across(number), down, text, anchor="middle", colour=MUTED if is_tau else TEXT)
    # Colours go round in the order of the first column, so that rows of the same colour start far apart.
    for start, name in enumerate(orderings[0]):
        colour = [*SERIES][start % len(SERIES)]
        ends = [(plane.across(number), plane.down(of.index(name) + 0.5)) for number, of in enumerate(orderings)]
        for (x, y), (next_x, next_y) in pairwise(ends):
            drawing.line([(x + _HALF_NUMBER, y), (next_x - _HALF_NUMBER, next_y)], colour, width=1.6)
        for (x, y), value in zip(ends, rows[name], strict=True):
            drawing.text(x, y, f"{value:.3f}", anchor="middle", colour=colour)
        drawing.text(-_HALF_NUMBER - 5, ends[0][1], name, anchor="end")
        drawing.text(ends[-1][0] + _HALF_NUMBER + 5, ends[-1][1], name, colour=colour)
    return drawing.chart(f"Bump chart of {len(rows)} models, {subject}. {'; '.join(words)}.", note)
