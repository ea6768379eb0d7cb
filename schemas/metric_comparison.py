"""Comparison of metrics that were stored with metrics that were computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from schemas.result import Interval, Metric

MetricKey: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""Name and sorted group: a result holds each key once."""

TOLERANCE = 1e-9
"""Largest absolute difference that comes from the order of floating-point sums."""


def metric_key(metric: Metric) -> MetricKey:
    """Return the key of a metric."""
    return key_of(metric.name, metric.group)


def key_of(name: str, group: Mapping[str, str]) -> MetricKey:
    """Return the key of the metric of a name on a slice.

    >>> key_of("accuracy", {"stereotype": "pro"})
    ('accuracy', (('stereotype', 'pro'),))
    """
    return name, tuple(sorted(group.items()))


def label(name: str, group: Mapping[str, str]) -> str:
    """Name a metric of a slice, as errors and tables do.

    >>> label("accuracy", {"stereotype": "pro"})
    'accuracy (stereotype=pro)'
    """
    if not group:
        return name
    return f"{name} ({', '.join(f'{key}={value}' for key, value in sorted(group.items()))})"


def same_interval(stored: Interval | None, computed: Interval | None) -> bool:
    """Return True if two intervals agree but for the order of floating-point sums."""
    if stored is None or computed is None:
        return stored is computed
    same_method = (stored.level, stored.method, stored.n_clusters, stored.n_resamples) == (
        computed.level,
        computed.method,
        computed.n_clusters,
        computed.n_resamples,
    )
    return same_method and is_close(stored.low, computed.low) and is_close(stored.high, computed.high)


def is_close(stored: float | None, computed: float | None) -> bool:
    """Return True if two values agree but for the order of floating-point sums; null agrees with null alone."""
    if stored is None or computed is None:
        return stored is computed
    return abs(stored - computed) <= TOLERANCE
