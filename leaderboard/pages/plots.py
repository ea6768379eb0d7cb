"""Draws the charts of tables: two metrics against each other, and one metric of each row."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from biasboard.ground.charts import FIRST, FONT_SIZE, SECOND, Point, place_labels, shortened
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.drawing import (
    Channel,
    Chart,
    distinct,
    draw,
    ends_of,
    interval_of,
    intervals,
    kinds,
    label_fields,
    line_at,
    names_of_points,
    numbers,
    row_names,
    span,
)
from schemas.documents.result import Metric

# Leave room around [0, 1], so that marks and labels at the ends are not cut off.
_PLANE_LOW, _PLANE_HIGH = -0.06, 1.06
_PLANE_AXIS: Channel = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2f"}
_COLOUR = kinds("kind", {"model": FIRST, "baseline": SECOND})


class ScatterPoint(NamedTuple):
    """A row of a table, as a point in the plane of two metrics."""

    label: str
    x: Metric
    y: Metric
    is_baseline: bool


class Dot(NamedTuple):
    """A dot of a chart: a metric and its label."""

    label: str
    metric: Metric
    is_baseline: bool = False


class BaselineLine(NamedTuple):
    """What a baseline achieves, as a line across the plane of two metrics."""

    axis: Literal["x", "y"]
    value: float
    caption: str
    """Sentence that says what the line means."""
    is_solver: bool = False
    """True if the baseline solves the items; False if it is the one that a model must exceed before it is ranked."""


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
    # Room for the names of many models, at the cost of smaller print on a phone.
    width, height = (440, 340) if len(points) <= 16 else (540, 420)
    drawn = _ends_first([point for point in points if point.x.value is not None and point.y.value is not None])
    if not drawn:
        return None
    places = place_labels(
        [
            Point(
                text=point.label,
                x=point.x.value or 0.0,
                y=point.y.value or 0.0,
                x_interval=interval_of(point.x),
                y_interval=interval_of(point.y),
            )
            for point in drawn
        ],
        width=width,
        height=height,
        low=_PLANE_LOW,
        high=_PLANE_HIGH,
        font_size=FONT_SIZE - 1,
    )
    values: list[JsonValue] = [
        {
            "x": point.x.value,
            "y": point.y.value,
            **ends_of(point.x, "x"),
            **ends_of(point.y, "y"),
            "kind": "baseline" if point.is_baseline else "model",
            **label_fields(place),
        }
        for point, place in zip(drawn, places, strict=True)
    ]
    x = numbers("x", _PLANE_LOW, _PLANE_HIGH, title=x_title, axis=_PLANE_AXIS)
    y = numbers("y", _PLANE_LOW, _PLANE_HIGH, title=y_title, axis=_PLANE_AXIS)
    width_of_line: Channel = {"strokeWidth": 1.4}
    leads, names = names_of_points(x, y, _COLOUR)
    layers = [
        *(_baseline_line(line, x if line.axis == "x" else y) for line in lines),
        leads,
        intervals(x, y, along="x", look=width_of_line, color=_COLOUR),
        intervals(x, y, along="y", look=width_of_line, color=_COLOUR),
        _marks(x, y, size=52, width=1.8),
        names,
    ]
    n_baselines = sum(point.is_baseline for point in drawn)
    axes = ((y_title, attrgetter("y")), (x_title, attrgetter("x")))
    models = [point for point in drawn if not point.is_baseline] or drawn
    spans = (span(title, [(one.label, value(one)) for one in models]) for title, value in axes)
    alt = f"Scatter plot of {len(drawn) - n_baselines} models and {n_baselines} useless predictors: {'; '.join(spans)}."
    for line in lines:
        title, dashes = x_title if line.axis == "x" else y_title, "dotted" if line.is_solver else "dashed"
        alt += f" A {dashes} line marks {line.value:.3f} on the axis of {title}. {line.caption}"
    return draw({"width": width, "height": height, "data": {"values": values}, "layer": layers}, alt)


def _ends_first(points: list[ScatterPoint]) -> list[ScatterPoint]:
    """Return the points in the order in which they get names: models at the ends of each axis first, baselines last."""
    models = [point for point in points if not point.is_baseline]
    axes = ([point.x.value or 0.0 for point in models], [point.y.value or 0.0 for point in models])
    ends = [models[values.index(end(values))] for values in axes for end in (min, max) if values]
    return sorted(points, key=lambda point: (point.is_baseline, not any(point is end for end in ends)))


def _baseline_line(line: BaselineLine, channel: Channel) -> JsonValue:
    if line.is_solver:
        return line_at(line.axis, line.value, channel, strokeDash=[1.5, 2.5], strokeWidth=1.2, color=SECOND)
    return line_at(line.axis, line.value, channel, strokeWidth=1.2)


def _marks(x: Channel, y: Channel, *, size: int, width: float) -> JsonValue:
    """Return filled circles for models and hollow diamonds for baselines."""
    encoding: JsonValue = {
        "x": x,
        "y": y,
        "color": _COLOUR,
        "fill": _COLOUR,
        "fillOpacity": {"condition": {"test": "datum.kind == 'model'", "value": 1}, "value": 0},
        "shape": kinds("kind", {"model": "circle", "baseline": "diamond"}),
    }
    return {"mark": {"type": "point", "size": size, "strokeWidth": width, "opacity": 1}, "encoding": encoding}


def dots(rows: Sequence[Dot], *, title: str) -> Chart | None:
    """Draw a dot and its interval for each row, in the given order.

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
    names = distinct([shortened(row.label) for row in drawn])
    values: list[JsonValue] = [
        {
            "label": name,
            "value": row.metric.value,
            "kind": "baseline" if row.is_baseline else "model",
            **ends_of(row.metric, "value"),
        }
        for name, row in zip(names, drawn, strict=True)
    ]
    x = numbers("value", metric.minimum, max(row.metric.drawn_maximum for row in drawn), title=title)
    y = row_names("label", names)
    layers = [] if metric.ideal is None else [line_at("x", metric.ideal, x)]
    layers += [
        intervals(x, y, along="x", look={"strokeWidth": 2, "opacity": 0.55}, color=_COLOUR),
        _marks(x, y, size=44, width=1.6),
    ]
    n_baselines = sum(row.is_baseline for row in drawn)
    models = [(row.label, row.metric) for row in drawn if not row.is_baseline or n_baselines == len(drawn)]
    alt = f"Dot plot of {len(drawn) - n_baselines} models and {n_baselines} useless predictors: {span(title, models)}."
    return draw({"width": 230, "height": {"step": 16}, "data": {"values": values}, "layer": layers}, alt)
