"""Names in charts: shortened, told apart, and put beside their marks where they avoid each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.charts.drawing import FONT_SIZE
from biasboard.ground.columns import FloatArray
from biasboard.ground.plain_text import visible

_MAX_LABEL = 26
"""Number of characters above which a label is shortened."""
_WIDTH_OF_LETTER = 0.6 * FONT_SIZE
# Half the size of a mark, half the width that an interval keeps free, the gap beside a mark, and the height of a label.
_MARK, _LINE, _GAP, _HEIGHT = 5.0, 3.0, 3.0, FONT_SIZE + 1.0
_STEPS = 5
"""Number of distances to try on each side of a mark."""
_INSIDE = 0.9
"""Least share of a label that lies inside the plane: the widths of letters are guessed, and the plane has a margin."""


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
