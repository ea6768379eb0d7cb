"""Draws charts as SVG: marks with intervals, lines, boxes and texts, in the colours of both schemes.

A drawing has no frame: its parts lie wherever they are put, also at negative coordinates, and the picture is as large
as what it holds. The widths of letters are guessed, since nobody knows the fonts of readers: the same parts give the
same bytes on every machine. A plane lies between two axes, and puts dots and lines in the coordinates of the data; long
names are shortened, told apart, and put beside their dots where they avoid each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.plain_text import visible

FONT_SIZE = 12
LEAST_SHOWN = 0.75
"""Smallest share of its size at which a chart is shown: its letters then have 9 pixels."""
TEXT, MUTED, GRID = "#21252b", "#59616d", "#dfe3e8"
FIRST, SECOND, THIRD = "#1f5fbf", "#7a4b00", "#2a7d46"
"""Colours of three kinds of marks."""
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
DASHED, DOTTED = "4 3", "1.5 2.5"
"""Dashes of lines: at what is ideal or even, and at what is less certain."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_WIDTH_OF_LETTER = 0.62
"""Width of a letter as a share of the font size, enough for any sans-serif font of a reader."""
_PADDING = 5
# Corners and circles of each shape around its middle, where 1 is half its size.
_CORNERS = {
    "square": ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    "diamond": ((0, -1.25), (1.1, 0), (0, 1.25), (-1.1, 0)),
    "triangle-up": ((0, -1), (1.15, 1), (-1.15, 1)),
    "triangle-down": ((0, 1), (1.15, -1), (-1.15, -1)),
    "triangle-right": ((-1, -1.15), (1, 0), (-1, 1.15)),
    "triangle-left": ((1, -1.15), (-1, 0), (1, 1.15)),
    "cross": (
        *((-1.1, -0.37), (-0.37, -0.37), (-0.37, -1.1), (0.37, -1.1), (0.37, -0.37), (1.1, -0.37)),
        *((1.1, 0.37), (0.37, 0.37), (0.37, 1.1), (-0.37, 1.1), (-0.37, 0.37), (-1.1, 0.37)),
    ),
}
SHAPES = {
    "circle": "●",
    "diamond": "◆",
    "triangle-up": "▲",
    "square": "■",
    "triangle-down": "▼",
    "triangle-right": "▶",
    "cross": "✚",
    "triangle-left": "◀",
}
"""Signs by which texts name shapes."""


class Chart(NamedTuple):
    """A chart, with a description in words; sizes are in pixels."""

    svg: str
    """Text of the SVG file. It is dark where its address ends in ``#only-dark``, and light everywhere else."""
    width: int
    height: int
    alt: str
    """Description of the chart for readers who cannot see it."""
    note: str = ""
    """Sentences for its caption that depend on the values, such as which rows are left out."""


class Drawing:
    """Shapes and texts, of which later ones lie over earlier ones; coordinates are pixels, to the right and down."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, str, str]] = []
        self._box = [0.0, 0.0, 0.0, 0.0]

    def line(
        self,
        points: Sequence[tuple[float, float]],
        colour: str,
        *,
        width: float = 1.0,
        opacity: float = 1.0,
        dash: str = "",
    ) -> None:
        """Draw a line through points."""
        style = f' fill="none" stroke="{colour}"' + _unless("stroke-width", width, 1.0)
        style += _unless("opacity", opacity, 1.0) + (f' stroke-dasharray="{dash}"' if dash else "")
        across, down = zip(*points, strict=True)
        self._add(style, "path", f' d="M{_path(points)}"', across, down)

    def box(
        self, left: float, top: float, width: float, height: float, *, fill: str = "", frame: str = "", dash: str = ""
    ) -> None:
        """Draw a rectangle that is filled or framed."""
        style = f' fill="{fill or "none"}"' + (f' stroke="{frame}"' if frame else "")
        style += f' stroke-dasharray="{dash}" stroke-width=".8"' if dash else ""
        place = f' x="{_short(left)}" y="{_short(top)}" width="{_short(width)}" height="{_short(height)}"'
        self._add(style, "rect", place, (left, left + width), (top, top + height))

    def shape(
        self, x: float, y: float, colour: str, *, name: str = "circle", size: float, hollow: bool = False
    ) -> None:
        """Draw a shape around a point; ``size`` is its radius."""
        style = (
            f' fill="none" stroke="{colour}" stroke-width="{1.6 if size > 3 else 1}"' if hollow else f' fill="{colour}"'
        )
        if name == "circle":
            place, tag = f' cx="{_short(x)}" cy="{_short(y)}" r="{_short(size)}"', "circle"
        else:
            corners = [(x + size * across, y + size * down) for across, down in _CORNERS[name]]
            place, tag = f' d="M{_path(corners)}Z"', "path"
        self._add(style, tag, place, (x - size, x + size), (y - size, y + size))

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: Literal["start", "middle", "end"] = "start",
        colour: str = TEXT,
        bold: bool = False,
        upwards: bool = False,
    ) -> None:
        """Write a line of text, whose vertical middle is at ``y``; ``upwards`` turns it to the left."""
        if not (words := visible(words)):
            return
        length, half = width_of(words), FONT_SIZE / 2 + 1
        start = -length * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        style = f' fill="{colour}"' + (f' text-anchor="{anchor}"' if anchor != "start" else "")
        style += ' font-weight="600"' if bold else ""
        # Letters stand on a line that lies about a third of their size below their middle.
        base = 0.35 * FONT_SIZE
        if upwards:
            place = f' transform="translate({_short(x + base)},{_short(y)})rotate(-90)"'
            self._add(style, "text", place, (x - half, x + half), (y - start - length, y - start), words)
        else:
            place = f' x="{_short(x)}" y="{_short(y + base)}"'
            self._add(style, "text", place, (x + start, x + start + length), (y - half, y + half), words)

    def chart(self, alt: str, note: str = "") -> Chart:
        """Return the drawing as a chart.

        Args:
            alt: Description of the chart in words.
            note: Sentences for its caption.
        """
        left, top = (round(edge) - _PADDING for edge in self._box[:2])
        width, height = (round(edge) + _PADDING - start for edge, start in zip(self._box[2:], (left, top), strict=True))
        parts = "".join(_group(style, [*of]) for style, of in groupby(self._parts, key=lambda part: part[0]))
        rules = "".join(
            f':target [{paint}="{light}"]{{{paint}:{dark}}}'
            for light, dark in DARK.items()
            for paint in ("fill", "stroke")
            if f'{paint}="{light}"' in parts
        )
        # A picture in a page sees neither the page's rules nor its switch of the scheme, but it does see its own
        # address: the rules hold where that names the id of the drawing.
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" id="only-dark" width="{width}" height="{height}" '
            f'viewBox="{left} {top} {width} {height}" font-family={quoteattr(_FONT)} font-size="{FONT_SIZE}">'
            f"<style>{rules}</style>{parts}</svg>"
        )
        return Chart(svg, width, height, alt, note)

    def _add(
        self, style: str, tag: str, place: str, across: Sequence[float], down: Sequence[float], words: str = ""
    ) -> None:
        self._parts.append((style, f"<{tag}", f"{place}>{escape(words)}</{tag}>" if words else f"{place}/>"))
        ends = self._box
        self._box = [min(ends[0], *across), min(ends[1], *down), max(ends[2], *across), max(ends[3], *down)]


def width_of(text: str) -> float:
    """Return the width in pixels to reserve for a text."""
    return len(text) * FONT_SIZE * _WIDTH_OF_LETTER


def _group(style: str, parts: Sequence[tuple[str, str, str]]) -> str:
    """Return elements that look alike, which say it once."""
    if len(parts) == 1:
        return f"{parts[0][1]}{style}{parts[0][2]}"
    return f"<g{style}>{''.join(f'{tag}{rest}' for _, tag, rest in parts)}</g>"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{_short(x)},{_short(y)}" for x, y in points)


def _unless(name: str, value: float, usual: float) -> str:
    return "" if value == usual else f' {name}="{_short(value)}"'


def _short(value: float) -> str:
    """Return a coordinate to a hundredth of a pixel.

    >>> _short(0.5), _short(-12.0), _short(1234.567), _short(-0.001)
    ('.5', '-12', '1234.57', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return {"-0": "0", "": "0"}.get(text, re.sub(r"^(-?)0\.", r"\1.", text))


LABEL_GAP = 10
"""Distance of labels from the axis in pixels, so that they do not touch dots at the lower end of the range."""
LINE_HEIGHT = FONT_SIZE + 3
Ends = tuple[float, float]
_MAX_LABEL = 26
"""Number of characters above which a label is shortened."""
_LABEL_LETTER = 0.6 * FONT_SIZE
# Half the size of a mark, half the width that an interval keeps free, the gap beside a mark, and the height of a label.
_MARK, _LINE, _GAP, _HEIGHT = 5.0, 3.0, 3.0, FONT_SIZE + 1.0
_STEPS = 5
"""Number of distances to try on each side of a mark."""
_INSIDE = 0.9
"""Least share of a label that lies inside the plane: the widths of letters are guessed, and the plane has a margin."""


class Dot(NamedTuple):
    """A mark in a plane, with an interval on each axis."""

    x: float
    y: float
    colour: str
    across: Ends | None = None
    """Ends of the interval along the horizontal axis."""
    upwards: Ends | None = None
    """Ends of the interval along the vertical axis."""
    shape: str = "circle"
    is_hollow: bool = False
    label: str = ""
    """Name beside the mark; empty for none."""


class Plane:
    """A rectangle of a drawing, at whose edges lie the ends of two axes."""

    def __init__(
        self,
        drawing: Drawing,
        width: float,
        height: float,
        *,
        x: Ends = (0.0, 1.0),
        y: Ends = (0.0, 1.0),
        left: float = 0.0,
        top: float = 0.0,
    ) -> None:
        """Lay a plane into a drawing.

        Args:
            drawing: The drawing.
            width: Width in pixels.
            height: Height in pixels.
            x: Values at the left and at the right edge.
            y: Values at the lower and at the upper edge.
            left: Place of the left edge in the drawing.
            top: Place of the upper edge in the drawing.
        """
        self.drawing, self.left, self.top, self.width, self.height = drawing, left, top, width, height
        self._x, self._y = x, y

    def across(self, x: float) -> float:
        """Return where a value of the horizontal axis lies in the drawing."""
        low, high = self._x
        return self.left + self.width * (x - low) / (high - low)

    def down(self, y: float) -> float:
        """Return where a value of the vertical axis lies in the drawing."""
        low, high = self._y
        return self.top + self.height * (high - y) / (high - low)

    def dots(self, dots: Sequence[Dot], *, size: float = 3.5) -> None:
        """Draw marks over their intervals, and beside them the names for which there is room."""
        looks = dict.fromkeys((dot.colour, dot.shape, dot.is_hollow) for dot in dots)
        # Marks that look alike are drawn one after the other, so that the file says once how.
        alike = [[dot for dot in dots if (dot.colour, dot.shape, dot.is_hollow) == look] for look in looks]
        for dot in chain(*alike):
            x, y = self.across(dot.x), self.down(dot.y)
            across = [(self.across(end), y) for end in dot.across or ()]
            upwards = [(x, self.down(end)) for end in dot.upwards or ()]
            for ends in (across, upwards):
                if ends and ends[0] != ends[1]:
                    self.drawing.line(ends, dot.colour, width=1.6, opacity=0.55)
        for dot in chain(*alike):
            place = self.across(dot.x), self.down(dot.y)
            self.drawing.shape(*place, dot.colour, name=dot.shape, size=size, hollow=dot.is_hollow)
        if any(dot.label for dot in dots):
            self._names(dots)

    def _names(self, dots: Sequence[Dot]) -> None:
        points = []
        for dot in dots:
            across, upwards = dot.across or (dot.x, dot.x), dot.upwards or (dot.y, dot.y)
            x, (left, right) = (self.across(dot.x) - self.left, (self.across(end) - self.left for end in across))
            y, (bottom, top) = self.down(dot.y) - self.top, (self.down(end) - self.top for end in upwards)
            points.append(Point(dot.label, x, y, (left, right), (top, bottom)))
        places = place_labels(points, width=self.width, height=self.height)
        for dot, point, place in zip(dots, points, places, strict=True):
            if place is None:
                continue
            left, middle, text, lead = place
            if lead is not None:
                ends = [(self.left + x, self.top + y) for x, y in ((point.x, point.y), lead)]
                self.drawing.line(ends, MUTED, width=0.7)
            self.drawing.text(self.left + left, self.top + middle, text, colour=dot.colour)

    def line(
        self, points: Iterable[Ends], colour: str, *, width: float = 1.8, opacity: float = 1.0, dash: str = ""
    ) -> None:
        """Draw a line through points."""
        places = [(self.across(x), self.down(y)) for x, y in points]
        self.drawing.line(places, colour, width=width, opacity=opacity, dash=dash)

    def rule(self, *, x: float | None = None, y: float | None = None, colour: str = MUTED, dash: str = DASHED) -> None:
        """Draw a line across the whole plane at a value of one axis."""
        ends = [(x, end) for end in self._y] if x is not None else [(end, y or 0.0) for end in self._x]
        self.line(ends, colour, width=1.2, dash=dash)

    def axis_below(self, ticks: Mapping[float, str], title: str = "", *, grid: bool = True, words: bool = True) -> None:
        """Write values and the title of the horizontal axis below the plane, and draw lines at the values."""
        bottom = self.top + self.height
        for value in ticks:
            self._hairline(x=self.across(value), ends=(self.top if grid else bottom, bottom + 4))
        self._hairline(y=bottom, ends=(self.left, self.left + self.width))
        for value, text in ticks.items() if words else ():
            self.drawing.text(self.across(value), bottom + 12, text, anchor="middle", colour=MUTED)
        if title:
            down = bottom + (12 + LINE_HEIGHT if words else 14)
            self.drawing.text(self.left + self.width / 2, down, title, anchor="middle", bold=True)

    def axis_beside(self, ticks: Mapping[float, str], title: str = "", *, words: bool = True) -> None:
        """Write values and the title of the vertical axis beside the plane, and draw lines at the values."""
        for value in ticks:
            self._hairline(y=self.down(value), ends=(self.left - 4, self.left + self.width))
        for value, text in ticks.items() if words else ():
            self.drawing.text(self.left - 7, self.down(value), text, anchor="end", colour=MUTED)
        if title:
            x = self.left - 7 - max(map(width_of, ticks.values()), default=0) - LINE_HEIGHT / 2
            self.drawing.text(x, self.top + self.height / 2, title, anchor="middle", bold=True, upwards=True)

    def rows(self, names: Sequence[str], *, colour: str = MUTED) -> None:
        """Write names beside rows, whose middles are at .5, 1.5 and so on of the vertical axis, and draw lines."""
        for number in range(len(names)):
            self._hairline(y=self.down(number + 0.5), ends=(self.left, self.left + self.width))
        for number, name in enumerate(names):
            self.drawing.text(self.left - LABEL_GAP, self.down(number + 0.5), name, anchor="end", colour=colour)

    def _hairline(self, *, ends: Ends, x: float | None = None, y: float = 0.0) -> None:
        """Draw a line of the grid in the middle of its pixels, where it is sharp."""
        if x is None:
            self.drawing.line([(end, math.floor(y) + 0.5) for end in ends], GRID)
        else:
            self.drawing.line([(math.floor(x) + 0.5, end) for end in ends], GRID)


def ticks(low: float, high: float, most: int) -> dict[float, str]:
    """Return round values on an axis, at most some more than ``most``, with their texts.

    >>> ticks(0.0, 1.0, 5)
    {0.0: '0.0', 0.2: '0.2', 0.4: '0.4', 0.6: '0.6', 0.8: '0.8', 1.0: '1.0'}
    >>> ticks(0.0, 3.1, 4)
    {0.0: '0', 1.0: '1', 2.0: '2', 3.0: '3'}
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return {round(number * step, decimals): number_text(number * step, decimals) for number in numbers}


def number_text(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a number with a real minus, instead of a hyphen."""
    sign = "+" if signed and round(value, decimals) > 0 else ""
    return f"{sign}{value + 0.0:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


class Point(NamedTuple):
    """A mark with its label and an interval on each axis, in pixels from the upper left corner of a plane."""

    text: str
    x: float
    y: float
    across: tuple[float, float]
    """Left and right end of the interval; twice ``x`` if there is none."""
    down: tuple[float, float]
    """Upper and lower end of the interval; twice ``y`` if there is none."""


LabelPlace: TypeAlias = tuple[float, float, str, tuple[float, float] | None]
"""Left end and vertical middle of a label in pixels, its text, and where a line from the mark meets it; None if the
label is beside its mark and needs no line."""
_Box: TypeAlias = tuple[float, float, float, float]
"""Left, upper, right and lower edge in pixels."""


def place_labels(points: Sequence[Point], *, width: float, height: float) -> list[LabelPlace | None]:
    """Put each label near its mark, where it covers the least, and never over another label, a mark or the edge.

    Labels of earlier points are placed first; all numbers are pixels.

    Returns:
        The position of each point's label, with long labels shortened; None if there is no room for it. Equal points
        give equal positions.
    """
    # Rows are boxes: each point's mark and two intervals, then the labels positioned so far.
    taken = np.zeros((4 * len(points), 4))
    for index, (_, x, y, across, down) in enumerate(points):
        taken[3 * index] = (x - _MARK, y - _MARK, x + _MARK, y + _MARK)
        taken[3 * index + 1] = (across[0], y - _LINE, across[1], y + _LINE)
        taken[3 * index + 2] = (x - _LINE, down[0], x + _LINE, down[1])
    n_taken = n_marks = 3 * len(points)
    marks = taken[:n_marks:3]
    plane = np.array([(0, 0, width, height)])
    positions: list[LabelPlace | None] = []
    for label, x, y, across, down in points:
        text = shortened(label)
        length = len(text) * _LABEL_LETTER
        mark = (min(x - _MARK, across[0]), min(y - _MARK, down[0]), max(x + _MARK, across[1]), max(y + _MARK, down[1]))
        boxes = np.array(_candidates(x, y, mark, length))
        is_free = _overlaps(boxes, np.vstack([taken[n_marks:n_taken], marks])).sum(axis=1) == 0
        is_free &= _overlaps(boxes, plane)[:, 0] > _INSIDE * length * _HEIGHT
        if not is_free.any():
            positions.append(None)
            continue
        boxes = boxes[is_free]
        # Summed in order: a pairwise sum rounds differently, and would break ties between positions differently.
        covered = _overlaps(boxes, taken[:n_taken]).cumsum(axis=1)[:, -1]
        taken[n_taken] = boxes[int(covered.argmin())]
        left, top, right, bottom = taken[n_taken].tolist()
        n_taken += 1
        near = min(max(x, left), right), min(max(y, top), bottom)
        is_beside = max(abs(near[0] - x), abs(near[1] - y)) <= _MARK + _GAP
        positions.append((left, (top + bottom) / 2, text, None if is_beside else near))
    return positions


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places near values, between two ends where they fit, so that no two are closer than a gap.

    >>> spread([5.0, 1.0, 5.5], 2.0, 0.0, 10.0)
    [5.0, 1.0, 7.0]
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    places = [*values]
    floor = low
    for number in order:
        floor = places[number] = max(values[number], floor)
        floor += gap
    ceiling = high
    for number in reversed(order):
        ceiling = places[number] = min(places[number], ceiling)
        ceiling -= gap
    return places


def shortened(label: str, most: int = _MAX_LABEL) -> str:
    """Return a label, without its middle if it is too long, since names of models often differ only at the end.

    Invisible characters, and those that reverse the direction of writing, become escapes.

    >>> shortened("an-extremely-long-name-of-a-model-7b-instruct")
    'an-extremely…l-7b-instruct'
    """
    label = visible(label)
    half = (most - 1) // 2
    return label if len(label) <= most else f"{label[:half]}…{label[len(label) - (most - 1 - half) :]}"


def row_names(labels: Sequence[str]) -> list[str]:
    """Return shortened labels with numbers behind repeated ones, since a chart has one row for each.

    >>> row_names(["gpt", "gpt"])
    ['gpt', 'gpt (2)']
    """
    names: dict[str, None] = {}
    for label in map(shortened, labels):
        n = 1
        while (name := label if n == 1 else f"{label} ({n})") in names:
            n += 1
        names[name] = None
    return [*names]


def _candidates(x: float, y: float, mark: _Box, width: float) -> list[_Box]:
    """Return the boxes to try for a label: left and right of its mark, above and below it, then the same farther away.

    The place is that of the middle of the mark, whose box includes its intervals.
    """
    boxes: list[_Box] = []
    outer_left, outer_top, outer_right, outer_bottom = mark
    for step in range(_STEPS):
        for side in (-1, 1):
            middle = y + side * (_HEIGHT + 1) * step
            for left in (x + _MARK + _GAP, x - _MARK - _GAP - width, outer_right + _GAP, outer_left - _GAP - width):
                boxes.append((left, middle - _HEIGHT / 2, left + width, middle + _HEIGHT / 2))
            for edge in (y + side * _MARK, outer_top if side < 0 else outer_bottom):
                far = edge + side * (_GAP + _HEIGHT / 2 + (_HEIGHT + 1) * step)
                boxes.append((x - width / 2, far - _HEIGHT / 2, x + width / 2, far + _HEIGHT / 2))
    return boxes


def _overlaps(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """Return the area that each box shares with each other one, shape (n, m)."""
    widths = np.minimum(boxes[:, None, 2], others[:, 2]) - np.maximum(boxes[:, None, 0], others[:, 0])
    heights = np.minimum(boxes[:, None, 3], others[:, 3]) - np.maximum(boxes[:, None, 1], others[:, 1])
    areas: FloatArray = np.maximum(widths, 0.0) * np.maximum(heights, 0.0)
    return areas
