"""Draws points with their names in a plane: two metrics against each other, or one over the size of models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.charts import DASHED, DOTTED, FIRST, MUTED, SECOND, THIRD, Chart, Dot, Drawing, Plane, width_of
from leaderboard.charts.rows import interval_of, span
from schemas.documents.result import Metric

# Leave room around the values, so that marks and labels at the ends are not cut off.
_ROOM = 0.06
_UNIT = {share: f"{share:.2f}" for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
_WIDTH, _HEIGHT = 370, 320
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
    plane = Plane(drawing, _WIDTH * scale, _HEIGHT * scale, x=ends, y=ends)
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
