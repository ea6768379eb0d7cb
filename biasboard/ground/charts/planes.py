"""Planes between two axes, on which dots with intervals and lines are drawn in the coordinates of the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from biasboard.ground.charts.drawing import DASHED, FONT_SIZE, GRID, MUTED, Drawing, width_of
from biasboard.ground.charts.labels import Point, place_labels

LABEL_GAP = 10
"""Distance of labels from the axis in pixels, so that they do not touch dots at the lower end of the range."""
LINE_HEIGHT = FONT_SIZE + 3
Ends = tuple[float, float]


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
