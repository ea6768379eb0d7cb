"""Draws strips of dots: a row for each model, and side by side a panel for each question that is asked of all."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from biasboard.ground.charts import FONT_SIZE, MUTED, TEXT, shortened
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.drawing import (
    SERIES,
    Channel,
    Chart,
    Panel,
    distinct,
    draw,
    ends_of,
    heading,
    intervals,
    line_at,
    literal,
    numbers,
    row_names,
)

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
    "triangle-left": "◀",
}
"""Signs by which the heading of a panel names its shapes."""


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
    y = row_names("row", names, are_shown=has_names, domain=False, labelColor=TEXT)
    ticks: dict[str, JsonValue] = {"values": [0, 0.5, 1]} if (bottom, top) == (0.0, 1.0) else {"tickCount": 3}
    x = numbers("value", bottom, top, axis={**ticks, "format": ".1~f", "labelFontSize": FONT_SIZE - 1})
    series: JsonValue = {"field": "series", "type": "nominal", "sort": [*panel.names]}
    shared: Channel = {"color": literal("colour"), **({"yOffset": series} if len(kinds) > 1 else {})}
    layers = [] if ideal is None else [line_at("x", ideal, x)]
    layers += [
        intervals(x, y, along="x", look={"strokeWidth": 1.6, "opacity": 0.5}, **shared),
        {
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
            "encoding": {"x": x, "y": y, "shape": literal("shape"), **shared},
        },
    ]
    look: Channel = {"subtitleFontSize": FONT_SIZE - 1, "subtitleColor": MUTED, "offset": 4}
    return {
        "title": heading(panel.title, subtitle=[*key], **look),
        "width": _WIDTH,
        "height": len(names) * (_ROW + _LINE * len(widest)),
        "data": {"values": values},
        "layer": layers,
    }
