"""The charts of the board: values in rows, points with their names in a plane, shades in a grid, and curves."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.charts import (
    DASHED,
    DOTTED,
    FIRST,
    INK,
    LINE_HEIGHT,
    MUTED,
    N_INKED,
    PAPER,
    SECOND,
    SERIES,
    SHAPES,
    STEPS,
    TEXT,
    THIRD,
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
from biasboard.ground.plain_text import printed
from leaderboard.ranking.rank_ranges import rank_correlation
from schemas.documents.result import Metric

_WIDTH, _STEP = 230, 16
_PANEL, _GAP = 104, 22
_LINE = 5
"""Distance of the values of a row in pixels."""
_KEY = 16
"""Number of characters of a line that fit over a panel."""


class RowValue(NamedTuple):
    """A metric and the name of its row."""

    label: str
    metric: Metric
    is_baseline: bool = False


class Panel(NamedTuple):
    """One or several values of each row on one axis."""

    title: str
    names: tuple[str, ...]
    """Names of the values."""
    rows: Sequence[Sequence[Metric | None]]
    """Values of each row, in the order of the names; None, or one without a value, leaves a gap."""

    @property
    def known(self) -> list[Metric]:
        """All metrics with a value."""
        return [metric for row in self.rows for metric in row if metric is not None and metric.value is not None]

    def at(self, places: Sequence[int]) -> Panel:
        """Return the panel with some of its values."""
        names = tuple(self.names[place] for place in places)
        return Panel(self.title, names, [[row[place] for place in places] for row in self.rows])

    def column(self, place: int) -> list[float]:
        """Return the known values at a place."""
        return [metric.value for row in self.rows if (metric := row[place]) is not None and metric.value is not None]


def interval_of(metric: Metric) -> tuple[float, float]:
    """Return the ends of the interval, or the value twice if there is no interval."""
    value = metric.value or 0.0
    return (value, value) if metric.interval is None else (metric.interval.low, metric.interval.high)


def span(title: str, values: Sequence[tuple[str, Metric]]) -> str:
    """Return the smallest and the largest value in words, for readers who cannot see a chart."""
    known = [(metric.value, shortened(name)) for name, metric in values if metric.value is not None]
    if not known:
        return ""
    (low, lowest), (high, highest) = min(known), max(known)
    return f"{title} {low:.2f} ({lowest})" + (f" to {high:.2f} ({highest})" if len(known) > 1 else "")


def dots(rows: Sequence[RowValue], *, title: str) -> Chart | None:
    """Draw a dot and its interval for each row, in the given order; the dots of baselines are hollow.

    The axis covers the range of the first metric; a dashed line marks its ideal value.

    Args:
        rows: Labels and metrics with the same range; those without a value are left out.
        title: Title of the axis.

    Returns:
        The chart, or None if no row has a value.
    """
    drawn = [row for row in rows if row.metric.value is not None]
    if not drawn:
        return None
    metric = drawn[0].metric
    low, high = metric.minimum, max(row.metric.drawn_maximum for row in drawn)
    drawing = Drawing()
    plane = Plane(drawing, _WIDTH, _STEP * len(drawn), x=(low, high), y=(len(drawn), 0.0))
    plane.axis_below(ticks(low, high, 5), title)
    plane.rows(row_names([row.label for row in drawn]))
    if metric.ideal is not None:
        plane.rule(x=metric.ideal)
    plane.dots(
        [
            Dot(
                row.metric.value or 0.0,
                number + 0.5,
                SECOND if row.is_baseline else FIRST,
                across=interval_of(row.metric),
                shape="diamond" if row.is_baseline else "circle",
                is_hollow=row.is_baseline,
            )
            for number, row in enumerate(drawn)
        ]
    )
    n_baselines = sum(row.is_baseline for row in drawn)
    models = [(row.label, row.metric) for row in drawn if not row.is_baseline or n_baselines == len(drawn)]
    return drawing.chart(
        f"Dot plot of {len(drawn) - n_baselines} models and {n_baselines} useless predictors: {span(title, models)}."
    )


def strips(rows: Sequence[str], panels: Sequence[Panel], *, alt: str) -> Chart:
    """Draw a dot with its interval for each value, with a dashed line at what would be ideal.

    Args:
        rows: Names of the rows, from the top.
        panels: Panels from the left, each with at least one value.
        alt: Description of the chart.
    """
    widest = max((panel.names for panel in panels), key=len)
    # A panel that lacks one of the values of another keeps the colours and shapes of the rest.
    looks = [
        [
            look
            for look in zip(widest if {*panel.names} <= {*widest} else panel.names, SERIES, SHAPES, strict=False)
            if look[0] in panel.names
        ]
        for panel in panels
    ]
    keys = [
        textwrap.wrap("  ".join(f"{SHAPES[shape]}\N{NO-BREAK SPACE}{name}" for name, _, shape in of_panel), _KEY)
        for of_panel in looks
    ]
    titles = [textwrap.wrap(panel.title, _KEY) for panel in panels]
    n_title, n_key = max(map(len, titles)), max(map(len, keys))
    step = 10 + _LINE * max(map(len, looks))
    drawing = Drawing()
    for number, (panel, of_panel) in enumerate(zip(panels, looks, strict=True)):
        known = panel.known
        low, high = min(metric.minimum for metric in known), max(metric.drawn_maximum for metric in known)
        left = number * (_PANEL + _GAP)
        plane = Plane(drawing, _PANEL, step * len(rows), x=(low, high), y=(len(rows), 0.0), left=left)
        for line, words in enumerate([*titles[number], *[""] * (n_title - len(titles[number])), *keys[number]]):
            is_title = line < n_title
            y = (line - n_title - n_key) * LINE_HEIGHT + 2
            drawing.text(left, y, words, bold=is_title, colour=TEXT if is_title else MUTED)
        plane.axis_below({0.0: "0", 0.5: "0.5", 1.0: "1"} if (low, high) == (0.0, 1.0) else ticks(low, high, 3))
        plane.rows(row_names(rows) if number == 0 else [""] * len(rows), colour=TEXT)
        if known[0].ideal is not None:
            plane.rule(x=known[0].ideal)
        plane.dots(
            [
                Dot(
                    metric.value,
                    row + 0.5 + (place - (len(of_panel) - 1) / 2) * _LINE / step,
                    colour,
                    across=interval_of(metric),
                    shape=shape,
                )
                for row, of_row in enumerate(panel.rows)
                for place, ((_, colour, shape), metric) in enumerate(zip(of_panel, of_row, strict=True))
                if metric is not None and metric.value is not None
            ],
            size=3,
        )
    return drawing.chart(alt)


# Leave room around the values, so that marks and labels at the ends are not cut off.
_ROOM = 0.06
_UNIT = {share: f"{share:.2f}" for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
_PLANE_WIDTH, _HEIGHT = 370, 320
_OVER_SIZE = (500, 300)
"""Size of the plane of models over their size, most of which have one of a few sizes."""
_MANY, _LARGER = 16, 1.55
"""Number of points above which the plane is larger, for their names, so that a phone shows a part of it at once."""
LEAST = 3
"""Smallest number of models for a chart over their size: two points always lie on a line."""
Training: TypeAlias = Literal["base", "tuned", "kind unknown"]
_LOOKS: dict[Training, tuple[str, str]] = {
    "base": (THIRD, "square"),
    "tuned": (FIRST, "circle"),
    "kind unknown": (MUTED, "triangle-up"),
}
"""Colour and shape of the models of each kind."""
_NEAR = 0.35


class ScatterPoint(NamedTuple):
    """A row of a table, as a point in the plane of two metrics."""

    label: str
    x: Metric
    y: Metric
    is_baseline: bool


class BaselineLine(NamedTuple):
    """What a baseline achieves, as a line across the plane of two metrics."""

    axis: Literal["x", "y"]
    value: float
    caption: str
    """Sentence that says what the line means."""
    is_solver: bool = False
    """True if the baseline solves the items; False if it is the one that a model must exceed before it is ranked."""


class SizedModel(NamedTuple):
    """A model of known size and its value."""

    label: str
    parameters: int
    kind: Training
    metric: Metric


def scatter(
    points: Sequence[ScatterPoint], *, x_title: str, y_title: str, lines: Sequence[BaselineLine] = ()
) -> Chart | None:
    """Draw two metrics of each row against each other, with their intervals; the marks of baselines are hollow.

    Args:
        points: Rows to draw; rows that lack one of the two values are left out.
        x_title: Title of the horizontal axis.
        y_title: Title of the vertical axis.
        lines: Lines of baselines, such as the one that separates models with a rank from those without.

    Returns:
        The chart, or None if no row has both values.
    """
    drawn = _ends_first([point for point in points if point.x.value is not None and point.y.value is not None])
    if not drawn:
        return None
    ends, scale = (-_ROOM, 1 + _ROOM), 1.0 if len(points) <= _MANY else _LARGER
    drawing = Drawing()
    plane = Plane(drawing, _PLANE_WIDTH * scale, _HEIGHT * scale, x=ends, y=ends)
    plane.axis_below(_UNIT, x_title)
    plane.axis_beside(_UNIT, y_title)
    for line in lines:
        colour, dash = (SECOND, DOTTED) if line.is_solver else (MUTED, DASHED)
        place = {line.axis: line.value}
        plane.rule(x=place.get("x"), y=place.get("y"), colour=colour, dash=dash)
    plane.dots(
        [
            Dot(
                point.x.value or 0.0,
                point.y.value or 0.0,
                SECOND if point.is_baseline else FIRST,
                across=interval_of(point.x),
                upwards=interval_of(point.y),
                shape="diamond" if point.is_baseline else "circle",
                is_hollow=point.is_baseline,
                label=point.label,
            )
            for point in drawn
        ]
    )
    n_baselines = sum(point.is_baseline for point in drawn)
    axes = ((y_title, attrgetter("y")), (x_title, attrgetter("x")))
    models = [point for point in drawn if not point.is_baseline] or drawn
    spans = (span(title, [(one.label, value(one)) for one in models]) for title, value in axes)
    alt = f"Scatter plot of {len(drawn) - n_baselines} models and {n_baselines} useless predictors: {'; '.join(spans)}."
    for line in lines:
        title, dashes = x_title if line.axis == "x" else y_title, "dotted" if line.is_solver else "dashed"
        alt += f" A {dashes} line marks {line.value:.3f} on the axis of {title}. {line.caption}"
    return drawing.chart(alt)


def _ends_first(points: list[ScatterPoint]) -> list[ScatterPoint]:
    """Return the points in the order in which they get names: models at the ends of each axis first, baselines last."""
    models = [point for point in points if not point.is_baseline]
    axes = ([point.x.value or 0.0 for point in models], [point.y.value or 0.0 for point in models])
    ends = [models[values.index(end(values))] for values in axes for end in (min, max) if values]
    return sorted(points, key=lambda point: (point.is_baseline, not any(point is end for end in ends)))


def size_chart(models: Sequence[SizedModel], *, title: str) -> Chart | None:
    """Draw a metric over the number of parameters, on a logarithmic axis.

    Args:
        models: Models whose metrics lie between 0 and 1; those without a value are left out.
        title: Title of the vertical axis.

    Returns:
        The chart, or None if fewer than three models have a value.
    """
    drawn = [model for model in models if model.metric.value is not None]
    if len(drawn) < LEAST:
        return None
    logs = [math.log10(model.parameters) for model in drawn]
    ends = [interval_of(model.metric) for model in drawn]
    # Powers of ten near the ends are drawn too, since an axis with one number says little.
    low, high = min(logs), max(logs)
    left = math.floor(low) if low - math.floor(low) < _NEAR or high - low < 1 else low
    right = math.floor(high) + 1 if math.floor(high) + 1 - high < _NEAR or high - low < 1 else high
    # Models lie close together, and a chart of points need not begin at 0.
    bottom, top = math.floor(10 * min(ends)[0]), math.ceil(10 * max(high for _, high in ends))
    drawing = Drawing()
    plane = Plane(drawing, *_OVER_SIZE, x=_wider(left, right), y=_wider(bottom / 10, top / 10))
    plane.axis_below(
        {power: _power_text(power) for power in range(math.ceil(left), math.floor(right) + 1)}, "parameters"
    )
    plane.axis_beside({tenth / 10: f"{tenth / 10:.1f}" for tenth in range(bottom, top + 1)}, title)
    right_of = 0.0
    for kind in [kind for kind in _LOOKS if any(model.kind == kind for model in drawn)]:
        colour, shape = _LOOKS[kind]
        drawing.shape(right_of + 4, -16, colour, name=shape, size=4)
        drawing.text(right_of + 13, -16, kind)
        right_of += 13 + width_of(kind) + 12
    plane.dots(
        [
            Dot(
                log,
                model.metric.value or 0.0,
                _LOOKS[model.kind][0],
                upwards=interval,
                shape=_LOOKS[model.kind][1],
                label=model.label,
            )
            for model, log, interval in zip(drawn, logs, ends, strict=True)
        ],
        size=4,
    )
    values = span(title, [(model.label, model.metric) for model in drawn])
    return drawing.chart(f"Points of {len(drawn)} models over the number of parameters: {values}.")


def _wider(low: float, high: float) -> tuple[float, float]:
    room = _ROOM * (high - low) or 0.5
    return low - room, high + room


def _power_text(power: int) -> str:
    """Return a power of ten as people say it.

    >>> _power_text(5), _power_text(6), _power_text(10)
    ('100 K', '1 M', '10 B')
    """
    unit = {0: "", 1: " K", 2: " M", 3: " B", 4: " T"}[min(power // 3, 4)]
    return f"{10 ** (power - 3 * min(power // 3, 4))}{unit}"


# A number such as .45 fits a column, and twelve columns with names of models a phone.
_CELL_WIDTH, _CELL_HEIGHT, _BETWEEN_CELLS = 32, 21, 2
_ABOVE = 10
"""Distance of the names of the columns from the grid."""


class GridCell(NamedTuple):
    """A cell of a grid."""

    value: float | None
    """Number in [0, 1]; None if unknown."""
    is_pale: bool = False
    """True if it says nothing, such as a number that chance explains."""
    is_framed: bool = False


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[GridCell | None]],
    *,
    column_title: str,
    alt: str,
    row_title: str | None = None,
    sets_first_apart: bool = False,
    palest: float = 0.0,
) -> Chart:
    """Draw a grid with a number in each cell.

    Args:
        rows: Names of the rows, from the top.
        columns: Names of the columns, each different from the others.
        cells: The cells of each row; None for one that stays empty.
        column_title: Words over the columns.
        alt: Description of the chart.
        row_title: Words beside the rows; None for none.
        sets_first_apart: True to draw a line behind the first column, if it sums up the others.
        palest: Value of the palest colour; 1 has the strongest.
    """
    names = row_names(rows)
    drawing = Drawing()
    drawing.text(0, -_ABOVE - LINE_HEIGHT - 3, column_title, bold=True)
    for number, column in enumerate(columns):
        drawing.text((number + 0.5) * _CELL_WIDTH, -_ABOVE, column, anchor="middle")
    for number, name in enumerate(names):
        drawing.text(-6, (number + 0.5) * _CELL_HEIGHT, name, anchor="end")
    if row_title is not None:
        left = -6 - max(map(width_of, names)) - LINE_HEIGHT
        drawing.text(left, len(rows) * _CELL_HEIGHT / 2, row_title, anchor="middle", bold=True, upwards=True)
    placed = [
        (place * _CELL_WIDTH, row * _CELL_HEIGHT, cell, _shade(cell, palest))
        for row, of_row in enumerate(cells)
        for place, cell in enumerate(of_row)
        if cell is not None
    ]
    size = _CELL_WIDTH - _BETWEEN_CELLS, _CELL_HEIGHT - _BETWEEN_CELLS
    # Boxes of one colour are drawn together, then what is written on those of one ink.
    for step, fill in enumerate(STEPS):
        for x, y, _, of_cell in placed:
            if of_cell == step:
                drawing.box(x + 1, y + 1, *size, fill=fill)
    for x, y, cell, _ in placed:
        if cell.is_pale:
            drawing.box(x + 1, y + 1, *size, frame=MUTED, dash=DOTTED)
    for x, y, cell, _ in placed:
        if cell.is_framed:
            drawing.box(x + 1, y + 1, *size, frame=TEXT)
    for ink in (MUTED, INK, PAPER):
        for x, y, cell, of_cell in placed:
            text = "?" if cell.value is None else short_number(cell.value)
            if text and ink == (MUTED if of_cell is None else INK if of_cell < N_INKED else PAPER):
                drawing.text(x + _CELL_WIDTH / 2, y + _CELL_HEIGHT / 2, text, anchor="middle", colour=ink)
    if sets_first_apart:
        drawing.line([(_CELL_WIDTH, 0), (_CELL_WIDTH, len(rows) * _CELL_HEIGHT)], TEXT, width=1.2)
    return drawing.chart(alt)


def _shade(cell: GridCell, palest: float) -> int | None:
    """Return the number of the colour of a cell; None for none."""
    if cell.value is None or cell.is_pale:
        return None
    # By the number that the cell shows: what reads alike has one colour.
    share = (float(printed(cell.value, 2)) - palest) / (1 - palest) if palest < 1 else 1.0
    return min(int(share * len(STEPS)), len(STEPS) - 1)


def short_number(value: float) -> str:
    """Return a number with two decimals, without the zero before the point; nothing if it rounds to 0.

    >>> short_number(0.457), short_number(1.0), short_number(0.001)
    ('.46', '1', '')
    """
    text = f"{printed(value, 2)}"
    return {"0.00": "", "1.00": "1"}.get(text, text.removeprefix("0"))


_CURVE_WIDTH, _NARROW, _CURVE_HEIGHT = 215, 130, 135
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
    width, left = (_NARROW if len(columns) > 1 else _CURVE_WIDTH), 0.0
    for name, (_, panels) in zip(row_names([name for name, _ in columns]), columns, strict=True):
        drawing.text(left, -LINE_HEIGHT - 14, name)
        for number, panel in enumerate(panels):
            known = [metric for _, alike in columns for metric in alike[number].known]
            ends = [end for metric in known for end in (metric.value or 0.0, *interval_of(metric))]
            low, high = min(0.0, *ends), max(*ends, 0.001) * 1.03
            top = number * (_CURVE_HEIGHT + 24 + LINE_HEIGHT + 8)
            edges = (-0.3, len(panel.names) - 0.7)
            plane = Plane(drawing, width, _CURVE_HEIGHT, x=edges, y=(low, high), left=left, top=top)
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
