"""The parts that all charts are made of: colours, channels, marks, and the drawing in both colour schemes.

A chart is a Vega-Lite specification. A channel says which field of the data stands on an axis or decides a colour, and
on which scale; a layer is a kind of mark with its channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.charts import (
    FIRST,
    FONT_SIZE,
    GRID,
    LABEL_PADDING,
    MUTED,
    SECOND,
    TEXT,
    THIRD,
    LabelPlace,
    room_for,
    shortened,
    svg_of,
    with_style,
)
from biasboard.ground.memory import machine_memory
from biasboard.ground.strict_json import JsonValue
from schemas.documents.result import Metric

Channel: TypeAlias = dict[str, JsonValue]
DASHED: JsonValue = [4, 3]
"""Dashes of lines at what is ideal or even."""
_CHART = "chart"

# Dark colours by light colours. Every colour of a chart is a key, so that one drawing can serve both schemes.
SERIES = {
    "#2457a6": "#86b4ff",
    "#b3541e": "#f0a070",
    "#3c7d3f": "#86d089",
    "#7a4fa3": "#c9a4ef",
    "#a8324a": "#f28ba0",
    "#30343b": "#d9dee6",
    "#0f7c84": "#6fd0d8",
    "#8a6d1d": "#dcc06a",
}
"""Dark colours of series by light ones."""
# One hue, whose steps colour-blind readers and grey prints keep apart: more is farther from the page in both schemes.
STEPS = {
    "#eef3f9": "#18202c",
    "#d9e5f2": "#1d2c42",
    "#c0d5ea": "#22395a",
    "#a0c0e0": "#2a4a78",
    "#79a6d3": "#3a659f",
    "#3b6ea8": "#6d9bd4",
    "#2a62a0": "#98bdea",
    "#123f73": "#cfe1f8",
}
"""Dark colours of the steps of a scale by light ones, from least to most."""
N_INKED = 5
"""Number of the first steps, on which numbers are written in ``INK``; on the others in ``PAPER``."""
INK, PAPER = "#14181f", "#ffffff"
"""Colours of numbers on the steps of a scale."""
DARK = (
    SERIES
    | STEPS
    | {
        INK: "#f2f5fa",
        PAPER: "#0b0f15",
        TEXT: "#e7eaf0",
        MUTED: "#a9b1bf",
        GRID: "#3a4150",
        FIRST: "#7fb2ff",
        SECOND: "#f0b45c",
        THIRD: "#79d398",
    }
)


class Chart(NamedTuple):
    """A chart, with a description in words."""

    svg: str
    """Text of the SVG file. It is dark where its address ends in ``#only-dark``, and light everywhere else."""
    alt: str
    """Description of the chart for readers who cannot see it."""
    note: str = ""
    """Sentences for its caption that depend on the values, such as which rows are left out."""


class Panel(NamedTuple):
    """One or several values of each row on one axis."""

    title: str
    names: tuple[str, ...]
    """Names of the values."""
    rows: Sequence[Sequence[Metric | None]]
    """Values of each row, in the order of the names; None, or one without a value, leaves a gap."""


def draw(spec: Mapping[str, JsonValue], alt: str, note: str = "") -> Chart:
    """Draw a Vega-Lite specification in both colour schemes; its colours are among those of this file."""
    return Chart(svg=_in_both_schemes(_svg(spec)), alt=alt, note=note)


def numbers(
    field: str, low: float, high: float, *, title: str | None = None, axis: Mapping[str, JsonValue] | None = None
) -> Channel:
    """Return a channel of numbers on a scale with exactly these ends."""
    scale: JsonValue = {"domain": [low, high], "nice": False, "zero": False}
    channel: Channel = {"field": field, "type": "quantitative", "title": title, "scale": scale}
    return channel if axis is None else {**channel, "axis": dict(axis)}


def literal(field: str) -> Channel:
    """Return a channel of colours or shapes that stand in the data themselves."""
    return {"field": field, "type": "nominal", "scale": None}


def kinds(field: str, looks: Mapping[str, str], **more: JsonValue) -> Channel:
    """Return a channel that gives each kind of thing its colour or shape, without a legend unless one is given."""
    scale: JsonValue = {"domain": [*looks], "range": [*looks.values()]}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None, **more}


def row_names(field: str, names: Sequence[str], *, are_shown: bool = True, **axis: JsonValue) -> Channel:
    """Return a channel of rows from the top, whose names are never cut nor left out."""
    whole: dict[str, JsonValue] = {
        "grid": True,
        "ticks": False,
        "labels": are_shown,
        "labelLimit": 0,
        "labelOverlap": False,
        "labelPadding": LABEL_PADDING,
        "minExtent": room_for(names) + LABEL_PADDING if are_shown else 0,
    }
    scale: JsonValue = {"domain": [*names]}
    return {
        "field": field,
        "type": "nominal",
        "sort": [*names],
        "scale": scale,
        "title": None,
        "axis": {**whole, **axis},
    }


def heading(text: str, **more: JsonValue) -> JsonValue:
    """Return the heading of a panel."""
    return {"text": text, "anchor": "start", "frame": "group", "fontSize": FONT_SIZE, "color": TEXT, **more}


def intervals(x: Channel, y: Channel, *, along: Literal["x", "y"], look: Channel, **more: JsonValue) -> Channel:
    """Return lines between the fields ``FIELD_low`` and ``FIELD_high`` of the channel along which they lie.

    Args:
        x: Channel of the values on the horizontal axis.
        y: Channel of the values on the vertical axis.
        along: Axis of the intervals.
        look: Width and opacity of the lines.
        more: Further channels.
    """
    channel = x if along == "x" else y
    low, high = f"{channel['field']}_low", f"{channel['field']}_high"
    encoding: JsonValue = {"x": x, "y": y, along: {**channel, "field": low}, f"{along}2": {"field": high}, **more}
    return {"mark": {"type": "rule", **look}, "encoding": encoding}


def line_at(axis: Literal["x", "y"], value: float, channel: Channel, **look: JsonValue) -> JsonValue:
    """Return a line across the whole plane at a value of one axis, dashed unless another look is given."""
    at: JsonValue = {"datum": value, "type": "quantitative", "scale": channel["scale"]}
    mark: JsonValue = {"type": "rule", "strokeDash": DASHED, "color": MUTED, **look}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {axis: at}}


def names_of_points(x: Channel, y: Channel, colour: Channel) -> tuple[JsonValue, JsonValue]:
    """Return the lines that lead from points to their names, and the names, from :func:`label_fields`."""
    leads: JsonValue = {
        "transform": [{"filter": "isValid(datum.lead_x)"}],
        "mark": {"type": "rule", "strokeWidth": 0.7, "color": MUTED},
        "encoding": {"x": x, "y": y, "x2": {"field": "lead_x"}, "y2": {"field": "lead_y"}},
    }
    names: JsonValue = {
        "transform": [{"filter": "datum.label"}],
        "mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": FONT_SIZE - 1},
        "encoding": {
            "x": {**x, "field": "label_x"},
            "y": {**y, "field": "label_y"},
            "text": {"field": "label"},
            "color": colour,
        },
    }
    return leads, names


def label_fields(place: LabelPlace | None) -> dict[str, JsonValue]:
    """Return the text, the position and the lead of a label as fields of its row; none if there is no room for it."""
    if place is None:
        return {}
    fields: dict[str, JsonValue] = {"label": place.text, "label_x": place.x, "label_y": place.y}
    return fields if place.lead is None else {**fields, "lead_x": place.lead[0], "lead_y": place.lead[1]}


def span(title: str, values: Sequence[tuple[str, Metric]]) -> str:
    """Return the smallest and the largest value in words, for readers who cannot see a chart."""
    known = [(metric.value, shortened(name)) for name, metric in values if metric.value is not None]
    if not known:
        return ""
    (low, lowest), (high, highest) = min(known), max(known)
    return f"{title} {low:.2f} ({lowest})" + (f" to {high:.2f} ({highest})" if len(known) > 1 else "")


def interval_of(metric: Metric) -> tuple[float, float]:
    """Return the ends of the interval, or the value twice if there is no interval."""
    value = metric.value or 0.0
    return (value, value) if metric.interval is None else (metric.interval.low, metric.interval.high)


def ends_of(metric: Metric, axis: str) -> dict[str, JsonValue]:
    """Return the ends of an interval as the fields ``AXIS_low`` and ``AXIS_high``."""
    low, high = interval_of(metric)
    return {f"{axis}_low": low, f"{axis}_high": high}


def distinct(labels: Sequence[str]) -> list[str]:
    """Return labels with numbers behind repeated ones, because a chart has one row for each label."""
    names: list[str] = []
    for label in labels:
        n = 1
        while (name := label if n == 1 else f"{label} ({n})") in names:
            n += 1
        names.append(name)
    return names


def _svg(spec: Mapping[str, JsonValue]) -> str:
    whole = with_style(spec)
    memory = machine_memory()
    drawn = memory.get(_CHART, whole)
    if isinstance(drawn, str):
        return drawn
    svg = svg_of(whole)
    memory.put(_CHART, whole, svg)
    return svg


def _in_both_schemes(svg: str) -> str:
    """Return a drawing with rules that recolour it if its address names its id, as that of a dark page does.

    A picture in a page sees neither the page's rules nor its switch of the scheme, but it does see its own address.
    """
    rules = "".join(
        f':target [{paint}="{light}"]{{{paint}:{dark}}}'
        for light, dark in DARK.items()
        for paint in ("fill", "stroke")
        if f'{paint}="{light}"' in svg
    )
    head, end, rest = svg.partition(">")
    return f'{head} id="only-dark"{end}<style>{rules}</style>{rest}'
