"""Draws charts of series as SVG: several values of each model side by side, such as after 0, 2, 4 and 8 examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.plots import SERIES, Chart, draw
from schemas.documents.result import Metric

_MOST_SERIES = len(SERIES)
_BASELINE_DASH = [2, 3]


class Series(NamedTuple):
    """The values of one model, one for each position on the horizontal axis."""

    label: str
    metrics: Sequence[Metric | None]
    """Metric at each position; None, or a metric without a value, leaves the position empty."""
    is_baseline: bool


def series_chart(
    series: Sequence[Series], places: Sequence[str], *, x_title: str, y_title: str, has_lines: bool
) -> Chart | None:
    """Draw series with their intervals, each in a colour of its own.

    Args:
        series: The series; of many, the first ones are drawn, models before baselines.
        places: Names of the positions on the horizontal axis.
        x_title: Title of the horizontal axis.
        y_title: Title of the vertical axis.
        has_lines: True to connect the values of a series, if the positions have an order.

    Returns:
        The chart, or None if no series has two values.
    """
    ordered = sorted((one for one in series if _n_values(one) > 1), key=lambda one: one.is_baseline)
    drawn = ordered[:_MOST_SERIES]
    if not drawn:
        return None
    values: list[JsonValue] = [
        {
            "series": _name(number, one, drawn),
            "place": place,
            "value": metric.value,
            "low": metric.value if metric.interval is None else metric.interval.low,
            "high": metric.value if metric.interval is None else metric.interval.high,
            "kind": "baseline" if one.is_baseline else "model",
        }
        for number, one in enumerate(drawn)
        for place, metric in zip(places, one.metrics, strict=True)
        if metric is not None and metric.value is not None
    ]
    names: list[JsonValue] = [_name(number, one, drawn) for number, one in enumerate(drawn)]
    shared = {"x": _x(places, x_title), "color": _colour(names)}
    if not has_lines:
        shared["xOffset"] = _offset(names)
    y: dict[str, JsonValue] = {"type": "quantitative", "title": y_title, "scale": {"zero": True}}
    layers: list[JsonValue] = [
        {
            "mark": {"type": "rule", "strokeWidth": 1.4, "opacity": 0.5},
            "encoding": {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1},
            "encoding": {**shared, "y": {**y, "field": "value"}, "shape": _shape()},
        },
    ]
    if has_lines:
        dash: JsonValue = {
            "condition": {"test": "datum.kind == 'baseline'", "value": [*_BASELINE_DASH]},
            "value": [1, 0],
        }
        line: JsonValue = {
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {**shared, "y": {**y, "field": "value"}, "strokeDash": dash},
        }
        layers.insert(0, line)
    left_out = len(ordered) - len(drawn)
    more = f" {left_out} more are left out." if left_out else ""
    alt = f"Chart of {y_title} by {x_title} for {len(drawn)} rows, with intervals; the numbers are in the table.{more}"
    return draw({"width": max(360, 90 * len(places)), "height": 210, "data": {"values": values}, "layer": layers}, alt)


def _n_values(series: Series) -> int:
    return sum(metric is not None and metric.value is not None for metric in series.metrics)


def _name(number: int, series: Series, drawn: Sequence[Series]) -> str:
    """Return the label of a series, with its number if an earlier one has the same."""
    n_before = sum(other.label == series.label for other in drawn[:number])
    return series.label if n_before == 0 else f"{series.label} ({n_before + 1})"


def _x(places: Sequence[str], title: str) -> JsonValue:
    return {
        "field": "place",
        "type": "ordinal",
        "sort": list[JsonValue](places),
        "title": title,
        "axis": {"labelAngle": 0, "labelLimit": 0},
    }


def _offset(names: list[JsonValue]) -> JsonValue:
    return {"field": "series", "type": "nominal", "sort": names}


def _colour(names: list[JsonValue]) -> JsonValue:
    return {
        "field": "series",
        "type": "nominal",
        "sort": names,
        "scale": {"domain": names, "range": list[JsonValue](SERIES)[: len(names)]},
        "legend": {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 260, "symbolOpacity": 1},
    }


def _shape() -> JsonValue:
    return {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": ["model", "baseline"], "range": ["circle", "diamond"]},
        "legend": None,
    }
