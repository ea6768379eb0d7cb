"""Draws lines in panels: how values change over a few positions, and clouds of points with the line nearest to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from biasboard.ground.charts.drawing import DASHED, FIRST, MUTED, SERIES, Chart, Drawing, width_of
from biasboard.ground.charts.labels import row_names, shortened, spread
from biasboard.ground.charts.planes import LINE_HEIGHT, Dot, Plane, number_text, ticks
from leaderboard.charts.values import Panel, interval_of
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
    named = named_rows([panel.rows for _, panels in columns for panel in panels], decisive)
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


def named_rows(panels: Sequence[Sequence[Sequence[Metric | None]]], decisive: int = -1) -> list[int]:
    """Return the numbers of the rows that get names: the ends of each panel, then the first ones.

    Args:
        panels: Values by panel, row and position.
        decisive: Index of the position whose values order the rows, or those before it where there are none.
    """
    chosen: list[int] = []
    for rows in panels:
        known = {number: value for number, row in enumerate(rows) if (value := _value(row, decisive)) is not None}
        if known:
            chosen += [max(known, key=known.__getitem__), min(known, key=known.__getitem__)]
    order = dict.fromkeys([*chosen, *range(len(panels[0]) if panels else 0)])
    return sorted([*order][: len(SERIES)])


def _value(row: Sequence[Metric | None], position: int = -1) -> float | None:
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
