"""Draws curves: how values of each model change over a few positions, such as after 0, 2, 4 and 8 examples."""

from __future__ import annotations

from collections.abc import Sequence

from biasboard.ground.charts import FONT_SIZE, MUTED, shortened
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.drawing import (
    DASHED,
    SERIES,
    Channel,
    Chart,
    Panel,
    distinct,
    draw,
    ends_of,
    heading,
    interval_of,
    intervals,
    literal,
    numbers,
)
from schemas.documents.result import Metric

_WIDTH, _HEIGHT, _LINE = 270, 135, FONT_SIZE + 2
_NARROW = 150
"""Width of a panel beside those of other models."""


def curves(
    names: Sequence[str],
    panels: Sequence[Panel],
    *,
    x_title: str,
    alt: str,
    even: Sequence[float] = (),
    decisive: int = -1,
) -> Chart:
    """Draw a line for each model and a panel below the other for each value.

    Up to eight models have colours, names and intervals: those at the ends of each panel, then the first ones. All
    others are thin and grey, to show what is usual.

    Args:
        names: Names of the models.
        panels: Panels from the top; the names of their values are the positions on the horizontal axis.
        x_title: Title of the horizontal axis.
        alt: Description of the chart.
        even: Values at each position that are even, for a dashed line; empty for none.
        decisive: Index of the position that orders the models.
    """
    labels = distinct([shortened(name) for name in names])
    named = named_rows([panel.rows for panel in panels], decisive)
    spec: dict[str, JsonValue] = {
        "vconcat": [
            _panel(
                panel,
                labels,
                named,
                x_title=x_title if panel is panels[-1] else None,
                even=even,
                decisive=decisive,
            )
            for panel in panels
        ],
        "spacing": 14,
        # The fonts of readers may be wider than the one that the names are measured with.
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 24},
    }
    n_grey = sum(number not in named for number in range(len(names)))
    more = f" {n_grey} more are grey." if n_grey else ""
    return draw(spec, f"{alt} Named are {', '.join(labels[number] for number in named)}.{more}")


def curves_of_each(
    models: Sequence[tuple[str, Sequence[Panel]]], lines: Sequence[str], *, x_title: str, alt: str
) -> Chart:
    """Draw a column of panels for each model, with a line for each of several ways to change it.

    Args:
        models: Name of each model and its panels from the top; all models have the same ones, on the same scales.
        lines: Names of the lines, at most as many as there are colours.
        x_title: Title of the horizontal axes.
        alt: Description of the chart.
    """
    alike = [*zip(*(panels for _, panels in models), strict=True)]
    columns: list[JsonValue] = []
    names = distinct([shortened(name) for name, _ in models])
    for name, (_, panels) in zip(names, models, strict=True):
        stack: list[JsonValue] = [
            _panel(
                panel,
                lines,
                range(len(lines)),
                x_title=x_title if panel is panels[-1] else None,
                even=(),
                decisive=-1,
                width=_NARROW if len(models) > 1 else _WIDTH,
                same_scale=same,
            )
            for panel, same in zip(panels, alike, strict=True)
        ]
        columns.append({"title": heading(name, fontWeight="normal"), "vconcat": stack, "spacing": 14})
    spec: dict[str, JsonValue] = {
        "hconcat": columns,
        "spacing": 20,
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 12},
    }
    return draw(spec, alt)


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


def _panel(
    panel: Panel,
    labels: Sequence[str],
    named: Sequence[int],
    *,
    x_title: str | None,
    even: Sequence[float],
    decisive: int,
    width: int = _WIDTH,
    same_scale: Sequence[Panel] = (),
) -> JsonValue:
    colours = dict(zip(named, SERIES, strict=False))
    places = panel.names
    values: list[JsonValue] = [
        {
            "series": labels[number],
            "place": place,
            "value": metric.value,
            **ends_of(metric, "value"),
            "colour": colours.get(number, MUTED),
            "named": number in colours,
        }
        for number, row in enumerate(panel.rows)
        for place, metric in zip(places, row, strict=True)
        if metric is not None and metric.value is not None
    ]
    scaled = [row for each in same_scale or (panel,) for row in each.rows]
    known = [metric for row in scaled for metric in row if metric is not None and metric.value is not None]
    ends = [end for metric in known for end in (metric.value or 0.0, *interval_of(metric))]
    low, high = min(0.0, *ends), max(*ends, 0.001) * 1.03
    # Lines that end in the same point have their names in the order of the decisive position.
    order = sorted(named, key=lambda number: _value(panel.rows[number], decisive) or 0.0)
    last = {number: value for number in order if (value := _value(panel.rows[number])) is not None}
    spots = _apart(last, (high - low) / _HEIGHT * _LINE, low, high)
    names: list[JsonValue] = [
        {"text": labels[number], "y": spots[number], "colour": colours[number]} for number in last
    ]
    x: Channel = {
        "field": "place",
        "type": "ordinal",
        "sort": [*places],
        "title": x_title,
        "scale": {"type": "point", "padding": 0.3, "domain": [*places]},
        "axis": {"labelAngle": 0, "labelLimit": 0, "grid": False},
    }
    y = numbers("value", low, high, axis={"tickCount": 4, "domain": False, "minExtent": 30})
    at: Channel = {"x": x, "y": y, "detail": {"field": "series", "type": "nominal"}}
    colour = literal("colour")
    only_named: Channel = {"transform": [{"filter": "datum.named"}]}
    layers: list[JsonValue] = [
        {
            "data": {"values": [{"place": place, "value": value} for place, value in zip(places, even, strict=False)]},
            "mark": {"type": "line", "strokeWidth": 1, "strokeDash": DASHED, "color": MUTED},
            "encoding": {"x": x, "y": y},
        },
        {
            "transform": [{"filter": "!datum.named"}],
            "mark": {"type": "line", "strokeWidth": 0.8, "opacity": 0.45, "color": MUTED},
            "encoding": at,
        },
        {**intervals(x, y, along="y", look={"strokeWidth": 1.4, "opacity": 0.4}, color=colour), **only_named},
        {**only_named, "mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {**at, "color": colour}},
        {
            **only_named,
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "data": {"values": names},
            "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 6, "fontSize": FONT_SIZE - 1},
            "encoding": {
                "x": {"value": width},
                "y": {"field": "y", "type": "quantitative", "scale": y["scale"]},
                "text": {"field": "text"},
                "color": colour,
            },
        },
    ]
    return {
        "title": heading(panel.title),
        "width": width,
        "height": _HEIGHT,
        "data": {"values": values},
        "layer": layers,
    }


def _apart(values: dict[int, float], gap: float, low: float, high: float) -> dict[int, float]:
    """Return where to write the name of each value, so that no two are closer than a gap."""
    order = sorted(values, key=values.__getitem__)
    spots: dict[int, float] = {}
    floor = low
    for number in order:
        floor = spots[number] = max(values[number], floor)
        floor += gap
    ceiling = high
    for number in reversed(order):
        ceiling = spots[number] = min(spots[number], ceiling)
        ceiling -= gap
    return spots
