"""Draws strips of dots: a row for each model, and side by side a panel for each question that is asked of all."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.charts import FONT_SIZE, LABEL_PADDING, MUTED, TEXT, room_for, shortened
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.plots import SERIES, Chart, distinct, draw, ends_of
from schemas.documents.result import Metric

# Four panels and the names of models fit a phone at three quarters of their size.
_WIDTH, _ROW, _LINE = 96, 8, 5
_KEY = 18
"""Number of characters of a line that fit over a panel."""
_SHAPES = {
    "circle": "●",
    "diamond": "◆",
    "triangle-up": "▲",
    "square": "■",
    "triangle-down": "▼",
    "triangle-right": "▶",
    "cross": "✚",
}
"""Signs by which the heading of a panel names its shapes."""
_HEADING: dict[str, JsonValue] = {
    "anchor": "start",
    "frame": "group",
    "fontSize": FONT_SIZE,
    "color": TEXT,
    "subtitleFontSize": FONT_SIZE - 1,
    "subtitleColor": MUTED,
    "offset": 4,
}


class Panel(NamedTuple):
    """One or several values of each row on one axis."""

    title: str
    names: tuple[str, ...]
    """Names of the values."""
    rows: Sequence[Sequence[Metric | None]]
    """Values of each row, in the order of the names."""


def strips(rows: Sequence[str], panels: Sequence[Panel], *, alt: str) -> Chart:
    """Draw a dot with its interval for each value, with a dashed line at what would be ideal.

    Args:
        rows: Names of the rows, from the top.
        panels: Panels from the left, each with at least one value.
        alt: Description of the chart.
    """
    names = distinct([shortened(row) for row in rows])
    widest = max((panel.names for panel in panels), key=len)
    spec: dict[str, JsonValue] = {
        "hconcat": [_panel(panel, names, widest=widest, has_names=number == 0) for number, panel in enumerate(panels)],
        "spacing": 14,
        "resolve": {"scale": {"yOffset": "independent"}},
    }
    return draw(spec, alt)


def _panel(panel: Panel, names: list[str], *, widest: tuple[str, ...], has_names: bool) -> JsonValue:
    metrics = [metric for of_row in panel.rows for metric in of_row if metric is not None and metric.value is not None]
    top = max(metric.drawn_maximum for metric in metrics)
    bottom, ideal = min(metric.minimum for metric in metrics), metrics[0].ideal
    scale: JsonValue = {"domain": [bottom, top], "nice": False, "zero": False}
    # A panel that lacks one of the values of another keeps the colours and shapes of the rest.
    known = widest if {*panel.names} <= {*widest} else panel.names
    kinds = [kind for kind in zip(known, SERIES, _SHAPES, strict=False) if kind[0] in panel.names]
    values: list[JsonValue] = [
        {
            "row": name,
            "series": series,
            "colour": colour,
            "shape": shape,
            "value": metric.value,
            **ends_of(metric, "value"),
        }
        for name, of_row in zip(names, panel.rows, strict=True)
        for (series, colour, shape), metric in zip(kinds, of_row, strict=True)
        if metric is not None and metric.value is not None
    ]
    key = textwrap.wrap("  ".join(f"{_SHAPES[shape]}\N{NO-BREAK SPACE}{series}" for series, _, shape in kinds), _KEY)
    y: dict[str, JsonValue] = {
        "field": "row",
        "type": "nominal",
        "sort": [*names],
        "scale": {"domain": [*names]},
        "title": None,
        "axis": {
            "labels": has_names,
            "grid": True,
            "ticks": False,
            "domain": False,
            "labelLimit": 0,
            "labelOverlap": False,
            "labelColor": TEXT,
            "labelPadding": LABEL_PADDING,
            "minExtent": room_for(names) + LABEL_PADDING if has_names else 0,
        },
    }
    ticks: dict[str, JsonValue] = {"values": [0, 0.5, 1]} if (bottom, top) == (0.0, 1.0) else {"tickCount": 3}
    x: dict[str, JsonValue] = {
        "type": "quantitative",
        "title": None,
        "scale": scale,
        "axis": {**ticks, "format": ".1~f", "labelFontSize": FONT_SIZE - 1},
    }
    colour: JsonValue = {"field": "colour", "type": "nominal", "scale": None}
    shape: JsonValue = {"field": "shape", "type": "nominal", "scale": None}
    offset: JsonValue = {"field": "series", "type": "nominal", "sort": [*panel.names]}
    shared: dict[str, JsonValue] = {"y": y, "color": colour, **({"yOffset": offset} if len(kinds) > 1 else {})}
    layers: list[JsonValue] = [
        {
            "mark": {"type": "rule", "strokeWidth": 1.6, "opacity": 0.5},
            "encoding": {**shared, "x": {**x, "field": "value_low"}, "x2": {"field": "value_high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
            "encoding": {**shared, "x": {**x, "field": "value"}, "shape": shape},
        },
    ]
    if ideal is not None:
        rule: JsonValue = {
            "data": {"values": [{}]},
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": MUTED},
            "encoding": {"x": {"datum": ideal, "type": "quantitative", "scale": scale}},
        }
        layers.insert(0, rule)
    return {
        "title": {"text": panel.title, "subtitle": [*key], **_HEADING},
        "width": _WIDTH,
        "height": len(names) * (_ROW + _LINE * len(widest)),
        "data": {"values": values},
        "layer": layers,
    }
