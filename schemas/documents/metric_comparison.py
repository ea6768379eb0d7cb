"""Compares stored metrics with metrics that were computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from schemas.documents.result import Interval, Metric

MetricKey: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""Name and sorted group of a metric; unique within a result."""

TOLERANCE = 1e-9
"""Largest absolute difference that the order of floating-point sums can explain."""


def metric_key(metric: Metric) -> MetricKey:
    """Return the key of a metric."""
    return key_of(metric.name, metric.group)


def key_of(name: str, group: Mapping[str, str]) -> MetricKey:
    """Return the key of a metric, given its name and group.

    >>> key_of("accuracy", {"stereotype": "pro"})
    ('accuracy', (('stereotype', 'pro'),))
    """
    return name, tuple(sorted(group.items()))


def label(name: str, group: Mapping[str, str]) -> str:
    """Return the name of a metric with its group, as shown in errors and tables.

    >>> label("accuracy", {"stereotype": "pro"})
    'accuracy (stereotype=pro)'
    """
    if not group:
        return name
    return f"{name} ({', '.join(f'{key}={value}' for key, value in sorted(group.items()))})"


def same_interval(stored: Interval | None, computed: Interval | None) -> bool:
    """Return True if two intervals are equal up to the order of floating-point sums."""
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
    """Return True if two values are equal up to the order of floating-point sums; None equals only None."""
    if stored is None or computed is None:
        return stored is computed
    return abs(stored - computed) <= TOLERANCE
