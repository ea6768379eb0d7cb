"""Planes between two axes, on which dots with intervals and lines are drawn in the coordinates of the data.

Names of charts are shortened and told apart, and put beside their dots where they avoid each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.charts.drawing import DASHED, FONT_SIZE, GRID, MUTED, Drawing, width_of
from biasboard.ground.columns import FloatArray
from biasboard.ground.plain_text import visible

LABEL_GAP = 10
"""Distance of labels from the axis in pixels, so that they do not touch dots at the lower end of the range."""
LINE_HEIGHT = FONT_SIZE + 3
Ends = tuple[float, float]
_MAX_LABEL = 26
"""Number of characters above which a label is shortened."""
_WIDTH_OF_LETTER = 0.6 * FONT_SIZE
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
            y = math.floor(y) + 0.5
            self.drawing.line([(ends[0], y), (ends[1], y)], GRID)
        else:
            x = math.floor(x) + 0.5
            self.drawing.line([(x, ends[0]), (x, ends[1])], GRID)


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
        length = len(text) * _WIDTH_OF_LETTER
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
