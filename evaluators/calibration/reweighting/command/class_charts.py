"""Draws class accuracies, their Lorenz curves and compared corrections, as SVG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path

from biasboard.ground.charts import (
    FIRST,
    FONT_SIZE,
    LABEL_PADDING,
    MUTED,
    SECOND,
    check_installed,
    room_for,
    shortened,
    svg_of,
    with_style,
)
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing
from biasboard.ground.strict_json import JsonValue
from evaluators.calibration.reweighting.command.class_report import Measured
from schemas.outputs.documents import ComparedMethods

# Height of a class in pixels, and the smaller one in charts with more than _MANY classes.
_STEP, _SMALL_STEP, _MANY = 22, 14, 30
# Distance of a mark from the middle of its class, as a share of the height, so that before and after do not overlap.
_SHIFT = 0.17
_WIDTH, _PLANE = 420, 360
_MARGIN = 0.12
_COLOURS = (MUTED, "#2457a6", "#b3541e", "#3c7d3f", "#7a4fa3", "#a8324a", "#0f7c84", "#8a6d1d")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")


def check_plots(folder: Path | None) -> None:
    """Check that charts can be drawn into a folder.

    Raises:
        ConfigError: the folder is a file.
        MissingExtraError: the extra ``site`` is not installed.
    """
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--plots {folder}: is a file; name a folder")
    check_installed()


def draw_measured(folder: Path, report: Measured) -> list[Path]:
    """Draw the accuracy of each class and the Lorenz curves, before and after a correction.

    Args:
        folder: Folder of the files, which is made if needed.
        report: The measured predictions.

    Returns:
        Paths of the files.
    """
    return [
        _written(folder / "classes.svg", report.title, _classes(report)),
        _written(folder / "lorenz.svg", report.title, _lorenz(report)),
    ]


def draw_methods(folder: Path, report: ComparedMethods) -> Path:
    """Draw the mean class accuracy of compared methods against their Gini index."""
    return _written(folder / "trade.svg", report.judged, _methods(report))


def _written(path: Path, title: str, spec: Mapping[str, JsonValue]) -> Path:
    heading: JsonValue = {"text": title, "anchor": "start", "fontSize": FONT_SIZE + 1, "limit": _WIDTH + 240}
    svg = svg_of(with_style({"title": heading, **spec}, background="white"))
    with replacing(path) as temporary:
        temporary.write_text(svg, encoding="utf-8")
    return path


def _classes(report: Measured) -> dict[str, JsonValue]:
    """Chart a dot with its interval for each class, before and after, and a line between the two."""
    with_rows = [row for row in report.before.classes if row.value is not None]
    if len(with_rows) > _MANY:
        with_rows = sorted(with_rows, key=lambda row: row.value or 0.0)
    names = _distinct([shortened(row.label) for row in with_rows])
    name_of = dict(zip((row.label for row in with_rows), names, strict=True))
    step = _SMALL_STEP if len(with_rows) > _MANY else _STEP
    is_alone = report.after is None
    y: JsonValue = {
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
    x = _axis("value", "accuracy of the class, 95 % interval")
    colour: JsonValue = {
        "field": "state",
        "type": "nominal",
        "scale": {"domain": ["before", "after"], "range": [SECOND, FIRST]},
        "legend": None if is_alone else {"title": None, "orient": "top", "symbolOpacity": 1},
    }
    layers: list[JsonValue] = []
    if report.after is not None:
        after = {row.label: row.value for row in report.after.classes}
        changes: list[JsonValue] = [
            {"label": name_of[row.label], "from": row.value, "to": after[row.label]} for row in with_rows
        ]
        layers.append(
            {
                "data": {"values": changes},
                "mark": {"type": "rule", "strokeWidth": 1, "color": MUTED, "opacity": 0.7},
                "encoding": {"y": y, "x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
            }
        )
    for state, summary in report.states.items():
        shift = 0.0 if is_alone else (-_SHIFT if state == "before" else _SHIFT) * step
        intervals: list[JsonValue] = [
            {"label": name_of[row.label], "state": state, "value": row.value, **row.interval._asdict()}
            for row in summary.classes
            if row.interval is not None
        ]
        data: JsonValue = {"values": intervals}
        line: JsonValue = {"type": "rule", "strokeWidth": 2, "opacity": 0.45, "yOffset": shift}
        dot: dict[str, JsonValue] = {"type": "point", "filled": state == "after" or is_alone, "size": 42, "opacity": 1}
        ends: JsonValue = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colour}
        layers.append({"data": data, "mark": line, "encoding": ends})
        layers.append({"data": data, "mark": {**dot, "yOffset": shift}, "encoding": {"y": y, "x": x, "color": colour}})
    return {"width": _WIDTH, "height": {"step": step}, "layer": layers}


def _lorenz(report: Measured) -> dict[str, JsonValue]:
    """Chart the share of the sum of accuracies that the least accurate classes have together."""
    values: list[JsonValue] = []
    names: list[JsonValue] = []
    for state, summary in report.states.items():
        gini = summary.gini
        name = f"{state}: Gini index {'undefined' if gini is None else f'{gini:.3f}'}"
        names.append(name)
        values += [{"classes": share, "sum": part, "state": name} for share, part in summary.lorenz]
    x = _axis("classes", "share of classes, the worst first")
    y = _axis("sum", "share of the sum of accuracies")
    colours: list[JsonValue] = [SECOND, FIRST]
    colour: JsonValue = {
        "field": "state",
        "type": "nominal",
        "scale": {"domain": names, "range": colours[: len(names)]},
        "legend": {"title": None, "orient": "top", "labelLimit": 0},
    }
    diagonal: JsonValue = {
        "data": {"values": [{"classes": 0, "sum": 0}, {"classes": 1, "sum": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 3], "color": MUTED, "strokeWidth": 1.2},
        "encoding": {"x": x, "y": y},
    }
    curves: JsonValue = {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2, "point": len(report.before.classes) <= _MANY},
        "encoding": {"x": x, "y": y, "color": colour},
    }
    return {"width": _PLANE, "height": _PLANE, "layer": [diagonal, curves]}


def _methods(report: ComparedMethods) -> dict[str, JsonValue]:
    """Chart the mean class accuracy of methods against their Gini index, where it is defined."""
    known = [(method, method.gini) for method in report.methods if method.gini is not None]
    names: list[JsonValue] = [method.name for method, _ in known]
    values: list[JsonValue] = [
        {"name": method.name, "x": gini, "y": method.mean_class_accuracy} for method, gini in known
    ]
    x = _axis("x", "Gini index of the class accuracies (0 is even)", _around([gini for _, gini in known]))
    y = _axis("y", "mean class accuracy", _around([method.mean_class_accuracy for method, _ in known]))
    legend: JsonValue = {"title": None, "labelLimit": 0, "symbolSize": 80, "symbolStrokeWidth": 2}
    name: dict[str, JsonValue] = {"field": "name", "type": "nominal", "legend": legend}
    colours: list[JsonValue] = [*islice(_COLOURS, len(names))]
    shapes: list[JsonValue] = [*islice(cycle(_SHAPES), len(names))]
    return {
        "width": _WIDTH,
        "height": _PLANE,
        "data": {"values": values},
        "mark": {"type": "point", "size": 80, "strokeWidth": 2, "opacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "color": {**name, "scale": {"domain": names, "range": colours}},
            "shape": {**name, "scale": {"domain": names, "range": shapes}},
        },
    }


def _axis(field: str, title: str, ends: tuple[float, float] = (0.0, 1.0)) -> dict[str, JsonValue]:
    scale: JsonValue = {"domain": [*ends], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis with room around the values."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = max(_MARGIN * (high - low), 0.005)
    return low - room, high + room


def _distinct(labels: Sequence[str]) -> list[str]:
    """Return labels with their numbers appended to those that are equal, as shortened labels can be."""
    return [label if labels.count(label) == 1 else f"{label} ({number})" for number, label in enumerate(labels, 1)]
