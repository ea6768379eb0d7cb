"""Draws clouds of points as small multiples: a panel for each model, with a point for each slice of the items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biasboard.ground.charts import FIRST
from biasboard.ground.plain_text import visible
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.drawing import Channel, Chart, draw, heading, line_at, numbers

MOST_PANELS = 12
"""Number of panels above which only the models with the steepest and the flattest lines are drawn."""
_COLUMNS, _HEIGHT = 3, 88
_WIDTHS = {1: 360, 2: 220}
"""Width of a panel by the number of panels in a row, if these are few."""
_WIDTH = 140


class Spot(NamedTuple):
    """A slice of a model."""

    x: float
    y: float
    is_separable: bool
    """True if the interval of y leaves out 0."""


class Cloud(NamedTuple):
    """The slices of one model."""

    label: str
    spots: tuple[Spot, ...]

    @property
    def line(self) -> tuple[float, float]:
        """The slope and the intercept of the line nearest to the points; the slope is 0 if all have one x."""
        x, y = (np.array([spot[axis] for spot in self.spots]) for axis in (0, 1))
        spread = float(((x - x.mean()) ** 2).sum())
        slope = float(((x - x.mean()) * y).sum()) / spread if spread else 0.0
        return slope, float(y.mean() - slope * x.mean())


def chosen(clouds: Sequence[Cloud]) -> list[Cloud]:
    """Return the models to draw: all if they fit, or else those with the steepest and the flattest lines."""
    if len(clouds) <= MOST_PANELS:
        return [*clouds]
    steepest_first = sorted(clouds, key=lambda cloud: -abs(cloud.line[0]))
    half = MOST_PANELS // 2
    return [*steepest_first[:half], *steepest_first[-half:]]


def multiples(clouds: Sequence[Cloud], *, x_title: str, y_title: str, x_range: tuple[float, float], alt: str) -> Chart:
    """Draw the slices of each model around a dashed line at 0, with the line nearest to them.

    Args:
        clouds: Models, each with at least one slice.
        x_title: Title of all horizontal axes.
        y_title: Title of all vertical axes.
        x_range: Ends of the horizontal axes.
        alt: Description of the chart.
    """
    top = max(0.2, *(abs(spot.y) for cloud in clouds for spot in cloud.spots)) * 1.05
    width = _WIDTHS.get(len(clouds), _WIDTH)
    panels: list[JsonValue] = [
        _panel(cloud, width, x_range, top, has_y=number % _COLUMNS == 0, has_x=number >= len(clouds) - _COLUMNS)
        for number, cloud in enumerate(clouds)
    ]
    spec: dict[str, JsonValue] = {
        "title": heading(f"{y_title}, by {x_title}", frame="bounds"),
        "concat": panels,
        "columns": _COLUMNS,
        "spacing": 12,
    }
    return draw(spec, alt)


def _panel(
    cloud: Cloud, width: int, x_range: tuple[float, float], top: float, *, has_y: bool, has_x: bool
) -> JsonValue:
    slope, intercept = cloud.line
    tick = int(top * 10) / 10
    middle = sum(x_range) / 2
    x = numbers("x", *x_range, axis={"values": [x_range[0], middle, x_range[1]], "labels": has_x, "grid": False})
    look: Channel = {"labels": has_y, "minExtent": 34 if has_y else 0, "format": "+.1f"}
    y = numbers("y", -top, top, axis={"values": [-tick, 0, tick], **look})
    spots: list[JsonValue] = [{"x": spot.x, "y": spot.y, "sure": spot.is_separable} for spot in cloud.spots]
    ends: list[JsonValue] = [{"x": end, "y": max(-top, min(top, intercept + slope * end))} for end in x_range]
    at: Channel = {"x": x, "y": y}
    sure: JsonValue = {"condition": {"test": "datum.sure", "value": 1}, "value": 0}
    return {
        "title": heading(visible(cloud.label), fontWeight="normal", limit=width, offset=3),
        "width": width,
        "height": _HEIGHT,
        "layer": [
            line_at("y", 0, y),
            {"data": {"values": ends}, "mark": {"type": "line", "color": FIRST, "strokeWidth": 1.6}, "encoding": at},
            {
                "data": {"values": spots},
                "mark": {
                    "type": "point",
                    "color": FIRST,
                    "fill": FIRST,
                    "size": 20,
                    "strokeWidth": 0.9,
                    "opacity": 0.8,
                },
                "encoding": {**at, "fillOpacity": sure},
            },
        ],
    }
