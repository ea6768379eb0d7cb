"""Finds the useless predictor that comes nearest to the ideal value of a measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from evaluators.benchmark import Benchmark
from schemas.documents.result import Metric


class Named(NamedTuple):
    """A value of another model or of a useless predictor."""

    name: str
    metric: Metric


def best_useless(benchmark: Benchmark, values: Iterable[Named]) -> Named | None:
    """Return the value nearest to the ideal, if there is one; of equal ones, that of the baseline listed first.

    Benchmarks list the simplest first. Values that only the order of a sum tells apart are equal.
    """
    order = {baseline.name: place for place, baseline in enumerate(benchmark.baselines)}

    def key(useless: Named) -> tuple[float, int, str]:
        distance = abs((useless.metric.value or 0.0) - (useless.metric.ideal or 0.0))
        return round(distance, 9), order.get(useless.name, len(order)), useless.name

    known = (one for one in values if one.metric.value is not None and one.metric.ideal is not None)
    return min(known, key=key, default=None)
