"""Draws class accuracies, their Lorenz curves and what was traded for what, as SVG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluators.commands.reweight.printing import Measured
from evaluators.reweighting.comparison import UNCORRECTED, Compared
from evaluators.reweighting.fitting import Fit
from evaluators.reweighting.summary import ClassRow, Summary
from evaluators.reweighting.traded import gini_of, lorenz_of, trade_of
from schemas.charts import (
    FIRST,
    FONT_SIZE,
    LABEL_PADDING,
    MUTED,
    SECOND,
    TEXT,
    check_installed,
    room_for,
    svg_of,
    with_style,
)
from schemas.errors import ConfigError
from schemas.files import replacing
from schemas.label_places import shortened
from schemas.strict_json import JsonValue

_BACKGROUND = "white"
_BEFORE, _AFTER = "before", "after"
_COLOURS: dict[str, JsonValue] = {"domain": [_BEFORE, _AFTER], "range": [SECOND, FIRST]}
_STEP, _SMALL_STEP, _MANY = 22, 14, 30
"""Height of a class, and that in charts of so many classes."""
_SHIFT = 0.17
"""Distance of a mark from the middle of its class, as a share of the height."""
_WIDTH, _PLANE = 420, 360
_MARGIN = 0.12
_MANY_COLOURS = (MUTED, "#2457a6", "#b3541e", "#3c7d3f", "#7a4fa3", "#a8324a", "#0f7c84", "#8a6d1d")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
"""Shapes of marks; their number and that of the colours have no common divisor, so that 40 marks differ."""


def check_plots(folder: Path | None) -> None:
    """Check that charts can be drawn into a folder, before anything else is done.

    Raises:
        ConfigError: the folder is a file.
        MissingExtraError: the extra ``site`` is not installed.
    """
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--plots {folder}: is a file; name a folder")
    check_installed()


def draw_measured(folder: Path, found: Measured) -> list[Path]:
    """Draw the accuracy of each class and the Lorenz curves, before and after a correction.

    Args:
        folder: Folder of the files, which is made if needed.
        found: The measured predictions.

    Returns:
        Paths of the files.
    """
    charts = {"classes.svg": _classes(found), "lorenz.svg": _lorenz(found)}
    return [_written(folder / name, spec) for name, spec in charts.items()]


def draw_trades(folder: Path, fit: Fit) -> Path:
    """Draw the mean class accuracy of all candidates of a fit against their Gini index; the chosen one has a ring."""
    points = [
        _Place(trade.name, trade.gini, trade.mean_class_accuracy, trade.name == fit.chosen) for trade in fit.trades
    ]
    return _written(folder / "trade.svg", _trade(points, "Candidates on the fitted rows; the chosen one has a ring"))


def draw_comparison(folder: Path, found: Sequence[Compared]) -> Path:
    """Draw the mean class accuracy of all methods on held-out rows against their Gini index."""
    points = [_Place(one.name, *trade_of(one), one.name == UNCORRECTED) for one in found]
    return _written(folder / "trade.svg", _trade(points, "Means over held-out rows; the uncorrected one has a ring"))


def _written(path: Path, spec: Mapping[str, JsonValue]) -> Path:
    svg = svg_of(with_style(spec, background=_BACKGROUND))
    with replacing(path) as temporary:
        temporary.write_text(svg, encoding="utf-8")
    return path


def _states(found: Measured) -> list[tuple[str, Summary]]:
    return [(_BEFORE, found.before)] + ([] if found.after is None else [(_AFTER, found.after)])


def _classes(found: Measured) -> dict[str, JsonValue]:
    """Return a dot with its interval for each class, before and after, and a line between the two."""
    known = [one for one in found.before.classes if one.accuracy is not None]
    if len(known) > _MANY:
        known = sorted(known, key=lambda one: one.accuracy or 0.0)
    names = _distinct([shortened(one.label) for one in known])
    of_label = dict(zip((one.label for one in known), names, strict=True))
    step = _SMALL_STEP if len(known) > _MANY else _STEP
    values: list[JsonValue] = []
    for state, summary in _states(found):
        values += [_dot(of_label[one.label], state, one) for one in summary.classes if one.label in of_label]
    y: dict[str, JsonValue] = {
        "field": "label",
        "type": "nominal",
        "sort": [*names],
        "title": None,
        "axis": {
            "grid": True,
            "labelLimit": 0,
            "labelOverlap": False,
            "labelPadding": LABEL_PADDING,
            "labelFontSize": FONT_SIZE if step == _STEP else FONT_SIZE - 2,
            "ticks": False,
            "minExtent": room_for(names) + LABEL_PADDING,
        },
    }
    title = "accuracy of the class, 95 % interval"
    layers: list[JsonValue] = [] if found.after is None else [_connection(found, of_label, y)]
    for state, _ in _states(found):
        shift = 0.0 if found.after is None else (-_SHIFT if state == _BEFORE else _SHIFT) * step
        layers += _dot_layers(state, y, title, shift, is_alone=found.after is None)
    return {
        "title": _title(found.title),
        "width": _WIDTH,
        "height": {"step": step},
        "data": {"values": values},
        "layer": layers,
    }


def _connection(found: Measured, of_label: Mapping[str, str], y: Mapping[str, JsonValue]) -> JsonValue:
    """Return a line from the accuracy of each class before to that after."""
    pairs = zip(found.before.classes, (found.after or found.before).classes, strict=True)
    values: list[JsonValue] = [
        {"label": of_label[old.label], "from": old.accuracy, "to": new.accuracy}
        for old, new in pairs
        if old.label in of_label
    ]
    x: JsonValue = {"field": "from", "type": "quantitative"}
    return {
        "data": {"values": values},
        "mark": {"type": "rule", "strokeWidth": 1, "color": MUTED, "opacity": 0.7},
        "encoding": {"y": dict(y), "x": x, "x2": {"field": "to"}},
    }


def _dot(label: str, state: str, one: ClassRow) -> JsonValue:
    low, high = (one.accuracy, one.accuracy) if one.interval is None else one.interval
    return {"label": label, "state": state, "value": one.accuracy, "low": low, "high": high}


def _dot_layers(state: str, y: Mapping[str, JsonValue], title: str, shift: float, *, is_alone: bool) -> list[JsonValue]:
    colour: JsonValue = {
        "field": "state",
        "type": "nominal",
        "scale": _COLOURS,
        "legend": None if is_alone else {"title": None, "orient": "top", "symbolOpacity": 1},
    }
    scale: JsonValue = {"domain": [0, 1], "nice": False}
    x: dict[str, JsonValue] = {"field": "value", "type": "quantitative", "title": title, "scale": scale}
    only: list[JsonValue] = [{"filter": f"datum.state == '{state}'"}]
    line: JsonValue = {
        "transform": only,
        "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45, "yOffset": shift},
        "encoding": {"y": dict(y), "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colour},
    }
    point: JsonValue = {
        "transform": only,
        "mark": {"type": "point", "filled": state == _AFTER or is_alone, "size": 42, "opacity": 1, "yOffset": shift},
        "encoding": {"y": dict(y), "x": x, "color": colour},
    }
    return [line, point]


def _lorenz(found: Measured) -> dict[str, JsonValue]:
    """Return the share of the sum of accuracies that the least accurate classes have together."""
    values: list[JsonValue] = []
    names = []
    for state, summary in _states(found):
        gini = gini_of(summary)
        curve = lorenz_of(summary)
        name = f"{state}: Gini index {'undefined' if gini is None else f'{gini:.3f}'}"
        names.append(name)
        values += [{"classes": share, "sum": part, "state": name} for share, part in curve]
    scale: JsonValue = {"domain": [0, 1], "nice": False}
    x: dict[str, JsonValue] = {"type": "quantitative", "scale": scale, "title": "share of classes, the worst first"}
    y: dict[str, JsonValue] = {"type": "quantitative", "scale": scale, "title": "share of the sum of accuracies"}
    colours: list[JsonValue] = [SECOND, FIRST]
    colour: JsonValue = {
        "field": "state",
        "type": "nominal",
        "scale": {"domain": [*names], "range": colours[: len(names)]},
        "legend": {"title": None, "orient": "top", "labelLimit": 0},
    }
    diagonal: JsonValue = {
        "data": {"values": [{"classes": 0, "sum": 0}, {"classes": 1, "sum": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 3], "color": MUTED, "strokeWidth": 1.2},
        "encoding": {"x": {**x, "field": "classes"}, "y": {**y, "field": "sum"}},
    }
    curves: JsonValue = {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2, "point": len(found.before.classes) <= _MANY},
        "encoding": {"x": {**x, "field": "classes"}, "y": {**y, "field": "sum"}, "color": colour},
    }
    return {"title": _title(found.title), "width": _PLANE, "height": _PLANE, "layer": [diagonal, curves]}


class _Place(NamedTuple):
    """A candidate in the plane of its Gini index and its mean class accuracy."""

    name: str
    gini: float | None
    mean: float | None
    is_marked: bool


def _trade(places: Sequence[_Place], title: str) -> dict[str, JsonValue]:
    known = [(one, one.gini, one.mean) for one in places if one.gini is not None and one.mean is not None]
    x_low, x_high = _range([gini for _, gini, _ in known])
    y_low, y_high = _range([mean for _, _, mean in known])
    names = [shortened(one.name) for one in places]
    values: list[JsonValue] = [
        {"name": shortened(one.name), "x": gini, "y": mean, "is_marked": one.is_marked} for one, gini, mean in known
    ]
    x: dict[str, JsonValue] = {
        "type": "quantitative",
        "scale": {"domain": [x_low, x_high], "nice": False, "zero": False},
        "title": "Gini index of the class accuracies (0 is even)",
    }
    y: dict[str, JsonValue] = {
        "type": "quantitative",
        "scale": {"domain": [y_low, y_high], "nice": False, "zero": False},
        "title": "mean class accuracy",
    }
    legend: JsonValue = {"title": None, "labelLimit": 0, "symbolSize": 80, "symbolStrokeWidth": 2}
    colours: list[JsonValue] = [_MANY_COLOURS[number % len(_MANY_COLOURS)] for number in range(len(names))]
    shapes: list[JsonValue] = [_SHAPES[number % len(_SHAPES)] for number in range(len(names))]
    name: dict[str, JsonValue] = {"field": "name", "type": "nominal", "legend": legend}
    colour: JsonValue = {**name, "scale": {"domain": [*names], "range": colours}}
    mark: JsonValue = {
        "mark": {"type": "point", "size": 80, "strokeWidth": 2, "opacity": 1},
        "encoding": {
            "x": {**x, "field": "x"},
            "y": {**y, "field": "y"},
            "color": colour,
            "shape": {**name, "scale": {"domain": [*names], "range": shapes}},
        },
    }
    ring: JsonValue = {
        "transform": [{"filter": "datum.is_marked"}],
        "mark": {"type": "point", "size": 320, "strokeWidth": 1.2, "color": TEXT, "opacity": 1, "shape": "circle"},
        "encoding": {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}},
    }
    return {
        "title": _title(title),
        "width": _WIDTH,
        "height": _PLANE,
        "data": {"values": values},
        "layer": [mark, ring],
    }


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis with room around the values."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = max(_MARGIN * (high - low), 0.005)
    return low - room, high + room


def _title(text: str) -> JsonValue:
    return {"text": text, "anchor": "start", "fontSize": FONT_SIZE + 1, "limit": _WIDTH + 240}


def _distinct(labels: Sequence[str]) -> list[str]:
    """Return labels of which shortened ones may be equal, each with its place behind it where another is the same."""
    return [label if labels.count(label) == 1 else f"{label} ({number})" for number, label in enumerate(labels, 1)]
