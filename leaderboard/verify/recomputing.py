"""Compares the stored metrics of a result with metrics recomputed from its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from biasboard.ground.plugins import HINT
from evaluators.statistics.jackknife import METHODS
from schemas.documents.result import Interval, Metric, is_close, metric_key, name_with_group, same_interval


def differences(stored: Iterable[Metric], computed: Iterable[Metric]) -> Iterator[str]:
    """Yield every difference between the stored metrics of a result and those computed from its records.

    Metrics of different versions cannot be compared and are skipped. Metrics that the result lacks completely are
    skipped too. But if the result has a metric without one of its slices, that is a difference. Intervals by a method
    of earlier code are not compared, since boards show those computed here.

    Args:
        stored: Metrics in ``result.json``.
        computed: Metrics computed from the records.

    Yields:
        One message for each difference.
    """
    ours = {metric_key(metric): metric for metric in computed}
    theirs = {metric_key(metric): metric for metric in stored}
    are_current = {metric.interval.method for metric in theirs.values() if metric.interval is not None} <= METHODS
    current = {metric.name: metric.version for metric in ours.values()}
    for key, metric in theirs.items():
        if key not in ours:
            # A newer version that the stored sums do not give is undefined, and has no slices. Without its scores
            # neither has a metric whose version is followed by the scorer's label, and that is no excuse.
            if not f"{metric.version}.".startswith(f"{current.get(metric.name, metric.version)}."):
                continue
            name = name_with_group(metric.name, metric.group)
            yield f"metric {name} cannot be computed from the records; rescore the run; {HINT}"
        elif metric.version == ours[key].version:
            yield from _field_differences(metric, ours[key], with_intervals=are_current)
    versions = {metric.name: metric.version for metric in theirs.values()}
    for key, metric in ours.items():
        if key not in theirs and versions.get(metric.name) == metric.version:
            name = name_with_group(metric.name, metric.group)
            yield f"metric {name} follows from the records but is not in the result; rescore the run"


def _field_differences(stored: Metric, computed: Metric, *, with_intervals: bool) -> Iterator[str]:
    name = name_with_group(stored.name, stored.group)
    if not is_close(stored.value, computed.value):
        yield f"metric {name} is {stored.value}, the records give {computed.value}; rescore the run"
    for field in ("n", "n_excluded", "unit", "ideal", "minimum", "maximum"):
        theirs, ours = getattr(stored, field), getattr(computed, field)
        if theirs != ours:
            yield f"metric {name}: {field} is {theirs}, the records give {ours}; rescore the run"
    if with_intervals and not same_interval(stored.interval, computed.interval):
        theirs, ours = _spelt(stored.interval), _spelt(computed.interval)
        yield f"metric {name}: interval is {theirs}, the records give {ours}; rescore the run"


def _spelt(interval: Interval | None) -> str:
    if interval is None:
        return "null"
    return (
        f"[{interval.low}, {interval.high}] at level {interval.level} "
        f"({interval.method}, {interval.n_clusters} clusters)"
    )


def earlier_metrics(stored: Iterable[Metric], computed: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the stored metrics of other versions than the computed ones, which stay visible beside them.

    Args:
        stored: Metrics in ``result.json``, without ``differences`` from the computed ones.
        computed: Metrics computed from the records.
    """
    versions = {metric_key(metric): metric.version for metric in computed}
    return tuple(metric for metric in stored if versions.get(metric_key(metric)) != metric.version)
