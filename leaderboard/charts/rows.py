"""Draws rows of dots with intervals, one value of each row or several, and holds such values for all charts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.charts import (
    FIRST,
    LINE_HEIGHT,
    MUTED,
    SECOND,
    SERIES,
    SHAPES,
    TEXT,
    Chart,
    Dot,
    Drawing,
    Plane,
    row_names,
    shortened,
    ticks,
)
from schemas.documents.result import Metric

_WIDTH, _STEP = 230, 16
_PANEL, _GAP = 104, 22
_LINE = 5
"""Distance of the values of a row in pixels."""
_KEY = 16
"""Number of characters of a line that fit over a panel."""


class RowValue(NamedTuple):
    """A metric and the name of its row."""

    label: str
    metric: Metric
    is_baseline: bool = False


class Panel(NamedTuple):
    """One or several values of each row on one axis."""

    title: str
    names: tuple[str, ...]
    """Names of the values."""
    rows: Sequence[Sequence[Metric | None]]
    """Values of each row, in the order of the names; None, or one without a value, leaves a gap."""

    @property
    def known(self) -> list[Metric]:
        """All metrics with a value."""
        return [metric for row in self.rows for metric in row if metric is not None and metric.value is not None]

    def at(self, places: Sequence[int]) -> Panel:
        """Return the panel with some of its values."""
        names = tuple(self.names[place] for place in places)
        return Panel(self.title, names, [[row[place] for place in places] for row in self.rows])

    def column(self, place: int) -> list[float]:
        """Return the known values at a place."""
        return [metric.value for row in self.rows if (metric := row[place]) is not None and metric.value is not None]


def interval_of(metric: Metric) -> tuple[float, float]:
    """Return the ends of the interval, or the value twice if there is no interval."""
    value = metric.value or 0.0
    return (value, value) if metric.interval is None else (metric.interval.low, metric.interval.high)


def span(title: str, values: Sequence[tuple[str, Metric]]) -> str:
    """Return the smallest and the largest value in words, for readers who cannot see a chart."""
    known = [(metric.value, shortened(name)) for name, metric in values if metric.value is not None]
    if not known:
        return ""
    (low, lowest), (high, highest) = min(known), max(known)
    return f"{title} {low:.2f} ({lowest})" + (f" to {high:.2f} ({highest})" if len(known) > 1 else "")


def dots(rows: Sequence[RowValue], *, title: str) -> Chart | None:
    """Draw a dot and its interval for each row, in the given order; the dots of baselines are hollow.

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
    low, high = metric.minimum, max(row.metric.drawn_maximum for row in drawn)
    drawing = Drawing()
    plane = Plane(drawing, _WIDTH, _STEP * len(drawn), x=(low, high), y=(len(drawn), 0.0))
    plane.axis_below(ticks(low, high, 5), title)
    plane.rows(row_names([row.label for row in drawn]))
    if metric.ideal is not None:
        plane.rule(x=metric.ideal)
    plane.dots(
        [
            Dot(
                row.metric.value or 0.0,
                number + 0.5,
                SECOND if row.is_baseline else FIRST,
                across=interval_of(row.metric),
                shape="diamond" if row.is_baseline else "circle",
                is_hollow=row.is_baseline,
            )
            for number, row in enumerate(drawn)
        ]
    )
    n_baselines = sum(row.is_baseline for row in drawn)
    models = [(row.label, row.metric) for row in drawn if not row.is_baseline or n_baselines == len(drawn)]
    return drawing.chart(
        f"Dot plot of {len(drawn) - n_baselines} models and {n_baselines} useless predictors: {span(title, models)}."
    )


def strips(rows: Sequence[str], panels: Sequence[Panel], *, alt: str) -> Chart:
    """Draw a dot with its interval for each value, with a dashed line at what would be ideal.

    Args:
        rows: Names of the rows, from the top.
        panels: Panels from the left, each with at least one value.
        alt: Description of the chart.
    """
    widest = max((panel.names for panel in panels), key=len)
    # A panel that lacks one of the values of another keeps the colours and shapes of the rest.
    looks = [
        [
            look
            for look in zip(widest if {*panel.names} <= {*widest} else panel.names, SERIES, SHAPES, strict=False)
            if look[0] in panel.names
        ]
        for panel in panels
    ]
    keys = [
        textwrap.wrap("  ".join(f"{SHAPES[shape]}\N{NO-BREAK SPACE}{name}" for name, _, shape in of_panel), _KEY)
        for of_panel in looks
    ]
    titles = [textwrap.wrap(panel.title, _KEY) for panel in panels]
    n_title, n_key = max(map(len, titles)), max(map(len, keys))
    step = 10 + _LINE * max(map(len, looks))
    drawing = Drawing()
    for number, (panel, of_panel) in enumerate(zip(panels, looks, strict=True)):
        known = panel.known
        low, high = min(metric.minimum for metric in known), max(metric.drawn_maximum for metric in known)
        left = number * (_PANEL + _GAP)
        plane = Plane(drawing, _PANEL, step * len(rows), x=(low, high), y=(len(rows), 0.0), left=left)
        for line, words in enumerate([*titles[number], *[""] * (n_title - len(titles[number])), *keys[number]]):
            is_title = line < n_title
            y = (line - n_title - n_key) * LINE_HEIGHT + 2
            drawing.text(left, y, words, bold=is_title, colour=TEXT if is_title else MUTED)
        plane.axis_below({0.0: "0", 0.5: "0.5", 1.0: "1"} if (low, high) == (0.0, 1.0) else ticks(low, high, 3))
        plane.rows(row_names(rows) if number == 0 else [""] * len(rows), colour=TEXT)
        if known[0].ideal is not None:
            plane.rule(x=known[0].ideal)
        plane.dots(
            [
                Dot(
                    metric.value,
                    row + 0.5 + (place - (len(of_panel) - 1) / 2) * _LINE / step,
                    colour,
                    across=interval_of(metric),
                    shape=shape,
                )
                for row, of_row in enumerate(panel.rows)
                for place, ((_, colour, shape), metric) in enumerate(zip(of_panel, of_row, strict=True))
                if metric is not None and metric.value is not None
            ],
            size=3,
        )
    return drawing.chart(alt)
