"""Draws charts as SVG with Vega-Lite, without a browser, and positions labels so that they avoid each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.plain_text import one_line, visible
from biasboard.ground.strict_json import JsonValue

FONT_SIZE = 12
LABEL_PADDING = 10
"""Distance of labels from the axis in pixels, so that they do not touch dots at the lower end of the range."""
TEXT, MUTED, GRID = "#21252b", "#59616d", "#dfe3e8"
FIRST, SECOND, THIRD = "#1f5fbf", "#7a4b00", "#2a7d46"
"""Colours of three kinds of marks."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_MAX_LABEL = 26
"""Number of characters above which a label is shortened."""
_WIDTH_OF_LETTER = 0.6
"""Width of a letter as a share of the font size."""
# Half the size of a mark, half the width that an interval keeps free, and the gap beside a mark, in pixels.
_MARK, _LINE, _GAP = 5.0, 3.0, 3.0
_STEPS = 5
"""Number of distances to try on each side of a mark."""
_INSIDE = 0.9
"""Least share of a label that lies inside the plane: the widths of letters are guessed, and the plane has a margin."""


def with_style(spec: Mapping[str, JsonValue], *, background: str | None = None) -> dict[str, JsonValue]:
    """Return a Vega-Lite specification with the fonts and colours of all charts.

    Args:
        spec: The specification.
        background: Colour behind the chart; None for none, where a page has its own.
    """
    config: JsonValue = {
        "background": background,
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": MUTED,
            "titleColor": TEXT,
            "titleFontWeight": 600,
            "labelFontSize": FONT_SIZE,
            "titleFontSize": FONT_SIZE,
            "gridColor": GRID,
            "domainColor": GRID,
            "tickColor": GRID,
        },
        "legend": {"labelColor": TEXT, "labelFontSize": FONT_SIZE},
    }
    return {"$schema": _SCHEMA, **spec, "config": config}


def check_installed() -> None:
    """Check that charts can be drawn.

    Raises:
        MissingExtraError: the extra ``site`` is not installed.
    """
    import_extra("vl_convert", "site")


def svg_of(whole: Mapping[str, JsonValue]) -> str:
    """Return the SVG of a Vega-Lite specification, without adding any style.

    What a picture in a page does not show is left out, which is half of it: empty paths, roles, and the font of each
    label, which the whole picture has instead.

    Raises:
        MissingExtraError: the extra ``site`` is not installed.
        ConfigError: the specification cannot be drawn.
    """
    converter = import_extra("vl_convert", "site")
    try:
        svg: str = converter.vegalite_to_svg(dict(whole))
    except ValueError as error:
        raise ConfigError(f"a chart could not be drawn: {one_line(error)}; reinstall the extra 'site'") from error
    return _compact(svg)


def png_of(svg: str) -> bytes:
    """Return a picture of an SVG with two pixels for each of its own, for places that show no SVG.

    Raises:
        MissingExtraError: the extra ``site`` is not installed.
    """
    png: bytes = import_extra("vl_convert", "site").svg_to_png(svg, scale=2.0)
    return png


_SVG = "http://www.w3.org/2000/svg"
_UNSEEN = frozenset({"role", "class", "pointer-events", "version", "font-family"})
_SHAPES = ("transform", "d", "x", "y", "x1", "x2", "y1", "y2", "width", "height")
_INHERITED = ("fill", "stroke", "stroke-width", "font-size", "font-weight", "text-anchor")
_DRAWS_NOTHING = re.compile(r"(?:M0,0h[\d.]+v[\d.]+h-?[\d.]+Z)?")
_DOT = re.compile(r"M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0Z?")
_LONG = re.compile(r"(\d+\.\d\d)\d+")


def _compact(svg: str) -> str:
    """Return a drawing without what cannot be seen, and with coordinates to a hundredth of a pixel."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for child in list(parent):
            is_background = child.tag == f"{{{_SVG}}}path" and child.get("class") in ("background", "foreground")
            if is_background and "fill" not in child.attrib and _DRAWS_NOTHING.fullmatch(child.get("d", "")):
                parent.remove(child)
        for name in list(parent.attrib):
            if name in _UNSEEN or name.startswith("aria-"):
                del parent.attrib[name]
            elif name in _SHAPES:
                parent.set(name, _LONG.sub(r"\1", parent.attrib[name]))
        if (dot := _DOT.fullmatch(parent.get("d", ""))) is not None:
            parent.tag = f"{{{_SVG}}}circle"
            parent.set("r", dot[1])
            del parent.attrib["d"]
        if parent.get("opacity") == "1":
            del parent.attrib["opacity"]
        if parent.get("transform") == "translate(0,0)":
            del parent.attrib["transform"]
    _unwrap(root)
    _share(root)
    root.set("font-family", _FONT)
    return ElementTree.tostring(root, encoding="unicode")


def _unwrap(element: ElementTree.Element) -> None:
    """Replace each group that says nothing about its members with these."""
    members = list(element)
    element[:] = []
    for member in members:
        _unwrap(member)
        if member.tag == f"{{{_SVG}}}g" and not member.attrib:
            element.extend(member)
        else:
            element.append(member)


def _share(element: ElementTree.Element) -> None:
    """Give a group what all of its members have, such as the size of labels."""
    members = list(element)
    for member in members:
        _share(member)
    if element.tag != f"{{{_SVG}}}g" or len(members) < 2:
        return
    for name in _INHERITED:
        values = {member.get(name) for member in members}
        if len(values) == 1 and (value := values.pop()) is not None:
            element.set(name, value)
            for member in members:
                del member.attrib[name]


def room_for(labels: Iterable[str]) -> float:
    """Return the width in pixels to reserve for labels, enough for any sans-serif font of a reader."""
    return max(len(label) for label in labels) * FONT_SIZE * 0.62


class Point(NamedTuple):
    """A mark with its label and an interval on each axis, in the coordinates of the data."""

    text: str
    x: float
    y: float
    x_interval: tuple[float, float]
    y_interval: tuple[float, float]


class LabelPlace(NamedTuple):
    """The left end and vertical middle of a label, in the coordinates of the data."""

    x: float
    y: float
    text: str
    lead: tuple[float, float] | None
    """Where a line from the mark meets the label; None if the label is beside its mark and needs none."""


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


def place_labels(
    points: Sequence[Point], *, width: float, height: float, low: float, high: float, font_size: float
) -> list[LabelPlace | None]:
    """Put each label near its mark, where it covers the least, and never over another label, a mark or the edge.

    Args:
        points: Marks to label; labels of earlier ones are placed first.
        width: Width of the plane in pixels.
        height: Height of the plane in pixels.
        low: Smallest coordinate of the plane, on both axes.
        high: Largest coordinate of the plane, on both axes.
        font_size: Font size in pixels; each letter is assumed to be about half as wide.

    Returns:
        The position of each point's label, with long labels shortened; None if there is no room for it. Equal points
        give equal positions.
    """
    span = high - low

    def across(x: float) -> float:
        return (x - low) / span * width

    def down(y: float) -> float:
        return (high - y) / span * height

    centres = [(across(point.x), down(point.y)) for point in points]
    # Rows are boxes: each point's mark and two intervals, then the labels positioned so far.
    taken = np.zeros((4 * len(points), 4))
    for index, ((x, y), point) in enumerate(zip(centres, points, strict=True)):
        taken[3 * index] = _Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK)
        taken[3 * index + 1] = _Box(across(point.x_interval[0]), y - _LINE, across(point.x_interval[1]), y + _LINE)
        taken[3 * index + 2] = _Box(x - _LINE, down(point.y_interval[1]), x + _LINE, down(point.y_interval[0]))
    n_taken = n_marks = 3 * len(points)
    marks = taken[:n_marks:3]
    plane = np.array([_Box(0, 0, width, height)])
    positions: list[LabelPlace | None] = []
    for (x, y), point in zip(centres, points, strict=True):
        text = shortened(point.text)
        mark = _Box(
            min(x - _MARK, across(point.x_interval[0])),
            min(y - _MARK, down(point.y_interval[1])),
            max(x + _MARK, across(point.x_interval[1])),
            max(y + _MARK, down(point.y_interval[0])),
        )
        boxes = np.array(_candidates(x, y, mark, len(text) * _WIDTH_OF_LETTER * font_size, font_size + 2))
        area = len(text) * _WIDTH_OF_LETTER * font_size * (font_size + 2)
        is_free = _overlaps(boxes, np.vstack([taken[n_marks:n_taken], marks])).sum(axis=1) == 0
        is_free &= _overlaps(boxes, plane)[:, 0] > _INSIDE * area
        if not is_free.any():
            positions.append(None)
            continue
        boxes = boxes[is_free]
        box = _Box(*boxes[int(_covered(boxes, taken[:n_taken]).argmin())])
        taken[n_taken] = box
        n_taken += 1
        middle = (box.top + box.bottom) / 2
        near = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
        is_beside = max(abs(near[0] - x), abs(near[1] - y)) <= _MARK + _GAP
        lead = None if is_beside else (low + near[0] / width * span, high - near[1] / height * span)
        positions.append(LabelPlace(low + box.left / width * span, high - middle / height * span, text, lead))
    return positions


def shortened(label: str) -> str:
    """Return a label, without its middle if it is too long, since names of models often differ only at the end.

    Invisible characters, and those that reverse the direction of writing, become escapes.

    >>> shortened("an-extremely-long-name-of-a-model-7b-instruct")
    'an-extremely…l-7b-instruct'
    """
    label = visible(label)
    half = (_MAX_LABEL - 1) // 2
    return label if len(label) <= _MAX_LABEL else f"{label[:half]}…{label[len(label) - (_MAX_LABEL - 1 - half) :]}"


def _candidates(x: float, y: float, mark: _Box, width: float, height: float) -> list[_Box]:
    """Return the boxes to try for a label: left and right of its mark, above and below it, then the same farther away.

    Args:
        x: Middle of the mark.
        y: Middle of the mark.
        mark: Box around the mark and its intervals.
        width: Width of the label.
        height: Height of the label.
    """
    boxes = []
    for step in range(_STEPS):
        for side in (-1, 1):
            shift = side * (height + 1) * step
            for left in (x + _MARK + _GAP, x - _MARK - _GAP - width, mark.right + _GAP, mark.left - _GAP - width):
                boxes.append(_Box(left, y + shift - height / 2, left + width, y + shift + height / 2))
            for edge in (y + side * _MARK, mark.top if side < 0 else mark.bottom):
                far = edge + side * (_GAP + height / 2 + (height + 1) * step)
                boxes.append(_Box(x - width / 2, far - height / 2, x + width / 2, far + height / 2))
    return boxes


def _covered(boxes: FloatArray, taken: FloatArray) -> FloatArray:
    """Return the area of marks and intervals that each box covers, shape (n,)."""
    # Summed in order: a pairwise sum rounds differently, and would break ties between positions differently.
    covered: FloatArray = _overlaps(boxes, taken).cumsum(axis=1)[:, -1]
    return covered


def _overlaps(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """Return the area that each box shares with each other one, shape (n, m)."""
    widths = np.minimum(boxes[:, None, 2], others[:, 2]) - np.maximum(boxes[:, None, 0], others[:, 0])
    heights = np.minimum(boxes[:, None, 3], others[:, 3]) - np.maximum(boxes[:, None, 1], others[:, 1])
    areas: FloatArray = np.maximum(widths, 0.0) * np.maximum(heights, 0.0)
    return areas
