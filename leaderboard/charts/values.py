"""Values of rows with their intervals, as charts take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.charts.labels import shortened
from schemas.documents.result import Metric


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
