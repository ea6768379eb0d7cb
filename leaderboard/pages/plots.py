"""Draws the charts of the site, each with the colours of both colour schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

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
    Point,
    place_labels,
    room_for,
    shortened,
    svg_of,
    with_style,
)
from biasboard.ground.memory import machine_memory
from biasboard.ground.strict_json import JsonValue
from schemas.documents.result import Metric

_CHART = "chart"

# Dark colours by light colours. Every colour of a chart is a key, so that one drawing can serve both schemes.
_MODEL, _BASELINE = FIRST, SECOND
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
        _MODEL: "#7fb2ff",
        _BASELINE: "#f0b45c",
        THIRD: "#79d398",
    }
)


class Chart(NamedTuple):
    """A chart, with a description in words."""

    svg: str
    """Text of the SVG file. It is dark where its address ends in ``#only-dark``, and light everywhere else."""
    alt: str
    """Description of the chart for readers who cannot see it."""


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


def span(title: str, values: Sequence[tuple[str, Metric]]) -> str:
    """Return the smallest and the largest value in words, for readers who cannot see a chart."""
    known = [(metric.value, shortened(name)) for name, metric in values if metric.value is not None]
    if not known:
        return ""
    (low, lowest), (high, highest) = min(known), max(known)
    return f"{title} {low:.2f} ({lowest})" + (f" to {high:.2f} ({highest})" if len(known) > 1 else "")


def draw(spec: Mapping[str, JsonValue], alt: str) -> Chart:
    """Draw a Vega-Lite specification in both colour schemes; its colours are among those of this file."""
    return Chart(svg=_in_both_schemes(_svg(spec)), alt=alt)


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
                x_interval=_interval(point.x),
                y_interval=_interval(point.y),
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
    layers = [_baseline_layer(line) for line in lines]
    layers += _scatter_layers(x_title, y_title)
    n_baselines = sum(point.is_baseline for point in drawn)
    axes = ((y_title, attrgetter("y")), (x_title, attrgetter("x")))
    models = [point for point in drawn if not point.is_baseline] or drawn
    spans = (span(title, [(one.label, value(one)) for one in models]) for title, value in axes)
    alt = f"Scatter plot of {len(drawn) - n_baselines} models and {n_baselines} useless predictors: {'; '.join(spans)}."
    for line in lines:
        title, dashes = x_title if line.axis == "x" else y_title, "dotted" if line.is_solver else "dashed"
        alt += f" A {dashes} line marks {line.value:.3f} on the axis of {title}. {line.caption}"
    return draw({"width": width, "height": height, "data": {"values": values}, "layer": layers}, alt)


def label_fields(place: LabelPlace | None) -> dict[str, JsonValue]:
    """Return the text, the position and the lead of a label as fields of its row; none if there is no room for it."""
    if place is None:
        return {}
    fields: dict[str, JsonValue] = {"label": place.text, "label_x": place.x, "label_y": place.y}
    return fields if place.lead is None else {**fields, "lead_x": place.lead[0], "lead_y": place.lead[1]}


def _ends_first(points: list[ScatterPoint]) -> list[ScatterPoint]:
    """Return the points in the order in which they get names: models at the ends of each axis first, baselines last."""
    models = [point for point in points if not point.is_baseline]
    axes = ([point.x.value or 0.0 for point in models], [point.y.value or 0.0 for point in models])
    ends = [models[values.index(end(values))] for values in axes for end in (min, max) if values]
    return sorted(points, key=lambda point: (point.is_baseline, not any(point is end for end in ends)))


def _scatter_layers(x_title: str, y_title: str) -> list[JsonValue]:
    """Return the intervals, the marks and the labels of points in the plane of two metrics."""
    return [
        {
            "transform": [{"filter": "isValid(datum.lead_x)"}],
            "mark": {"type": "rule", "strokeWidth": 0.7, "color": MUTED},
            "encoding": {
                "x": _plane("x", x_title),
                "y": _plane("y", y_title),
                "x2": {"field": "lead_x"},
                "y2": {"field": "lead_y"},
            },
        },
        _layer({"type": "rule", "strokeWidth": 1.4}, x=_plane("x_low", x_title), y=_plane("y", y_title), x2="x_high"),
        _layer({"type": "rule", "strokeWidth": 1.4}, x=_plane("x", x_title), y=_plane("y_low", y_title), y2="y_high"),
        _layer(
            {"type": "point", "size": 52, "strokeWidth": 1.8, "opacity": 1},
            x=_plane("x", x_title),
            y=_plane("y", y_title),
        ),
        {
            "transform": [{"filter": "datum.label"}],
            "mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": FONT_SIZE - 1},
            "encoding": {
                "x": _plane("label_x", x_title),
                "y": _plane("label_y", y_title),
                "text": {"field": "label"},
                "color": _kind_colour(),
            },
        },
    ]


def _baseline_layer(line: BaselineLine) -> JsonValue:
    scale: dict[str, JsonValue] = {"domain": [_PLANE_LOW, _PLANE_HIGH], "nice": False, "zero": False}
    position: dict[str, JsonValue] = {"datum": line.value, "type": "quantitative", "scale": scale}
    dashes, colour = ([1.5, 2.5], _BASELINE) if line.is_solver else ([4, 3], MUTED)
    mark: dict[str, JsonValue] = {"type": "rule", "strokeDash": [*dashes], "strokeWidth": 1.2, "color": colour}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {line.axis: position}}


# Leave room around [0, 1], so that marks and labels at the ends are not cut off.
_PLANE_LOW, _PLANE_HIGH = -0.06, 1.06


def _plane(field: str, title: str) -> dict[str, JsonValue]:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [_PLANE_LOW, _PLANE_HIGH], "nice": False, "zero": False},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2f"},
    }


def _kind_colour() -> dict[str, JsonValue]:
    return {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": ["model", "baseline"], "range": [_MODEL, _BASELINE]},
        "legend": None,
    }


def _layer(
    mark: dict[str, JsonValue],
    *,
    x: dict[str, JsonValue],
    y: dict[str, JsonValue],
    x2: str | None = None,
    y2: str | None = None,
) -> JsonValue:
    encoding: dict[str, JsonValue] = {"x": x, "y": y, "color": _kind_colour()}
    if mark["type"] == "point":
        encoding["fillOpacity"] = {"condition": {"test": "datum.kind == 'model'", "value": 1}, "value": 0}
        encoding["fill"] = _kind_colour()
        encoding["shape"] = {
            "field": "kind",
            "type": "nominal",
            "scale": {"domain": ["model", "baseline"], "range": ["circle", "diamond"]},
            "legend": None,
        }
    if x2 is not None:
        encoding["x2"] = {"field": x2}
    if y2 is not None:
        encoding["y2"] = {"field": y2}
    return {"mark": mark, "encoding": encoding}


def _interval(metric: Metric) -> tuple[float, float]:
    """Return the ends of the interval, or the value twice if there is no interval."""
    value = metric.value or 0.0
    return (value, value) if metric.interval is None else (metric.interval.low, metric.interval.high)


def ends_of(metric: Metric, axis: str) -> dict[str, JsonValue]:
    """Return the ends of an interval as the fields ``AXIS_low`` and ``AXIS_high``."""
    low, high = _interval(metric)
    return {f"{axis}_low": low, f"{axis}_high": high}


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
    labels: list[JsonValue] = [*names]
    values: list[JsonValue] = [
        {
            "label": name,
            "value": row.metric.value,
            "kind": "baseline" if row.is_baseline else "model",
            **ends_of(row.metric, "value"),
        }
        for name, row in zip(names, drawn, strict=True)
    ]
    y: dict[str, JsonValue] = {
        "field": "label",
        "type": "nominal",
        "sort": labels,
        "title": None,
        "axis": {
            "grid": True,
            "labelLimit": 0,
            "labelOverlap": False,
            "labelPadding": LABEL_PADDING,
            "ticks": False,
            "minExtent": room_for(names) + LABEL_PADDING,
        },
    }
    top = max(row.metric.drawn_maximum for row in drawn)
    scale: JsonValue = {"domain": [metric.minimum, top], "nice": False, "zero": False}
    x: dict[str, JsonValue] = {"field": "value", "type": "quantitative", "title": title, "scale": scale}
    layers: list[JsonValue] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.55},
            "encoding": {
                "y": y,
                "x": {**x, "field": "value_low"},
                "x2": {"field": "value_high"},
                "color": _kind_colour(),
            },
        },
        _layer({"type": "point", "size": 44, "strokeWidth": 1.6, "opacity": 1}, x=x, y=y),
    ]
    if metric.ideal is not None:
        rule: JsonValue = {
            "data": {"values": [{}]},
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": MUTED},
            "encoding": {"x": {"datum": metric.ideal, "type": "quantitative", "scale": scale}},
        }
        layers.insert(0, rule)
    n_baselines = sum(row.is_baseline for row in drawn)
    models = [(row.label, row.metric) for row in drawn if not row.is_baseline or n_baselines == len(drawn)]
    alt = f"Dot plot of {len(drawn) - n_baselines} models and {n_baselines} useless predictors: {span(title, models)}."
    return draw({"width": 230, "height": {"step": 16}, "data": {"values": values}, "layer": layers}, alt)


class Bar(NamedTuple):
    """A bar of a chart: a number of things and its label."""

    label: str
    n: int


def bars(rows: Sequence[Bar], *, x_title: str, y_title: str) -> Chart | None:
    """Draw a bar for each row, in the given order.

    Args:
        rows: Labels, each different from the others, and numbers.
        x_title: Title of the axis with the labels.
        y_title: Title of the axis with the numbers.

    Returns:
        The chart, or None without rows.
    """
    if not rows:
        return None
    labels: list[JsonValue] = [row.label for row in rows]
    values: list[JsonValue] = [{"label": row.label, "n": row.n} for row in rows]
    spec: dict[str, JsonValue] = {
        # Wide enough for the title of the axis, however few bars there are.
        "width": max(260, 20 * len(rows)),
        "height": 150,
        "data": {"values": values},
        "mark": {"type": "bar", "color": _MODEL},
        "encoding": {
            "x": {"field": "label", "type": "ordinal", "sort": labels, "title": x_title, "axis": {"labelAngle": 0}},
            "y": {"field": "n", "type": "quantitative", "title": y_title, "axis": {"tickCount": 4, "format": ",d"}},
        },
    }
    notes = ", ".join(f"{row.label}: {row.n:,}" for row in rows)
    return draw(spec, f"Bar chart of {y_title} by {x_title}. {notes}.")


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
