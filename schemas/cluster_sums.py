"""Rows of ``sums.parquet``: what each cluster of items adds to a metric, so that no text is needed to compute it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """The sufficient statistics of one metric on one slice."""

    metric: str
    version: str
    """Version of the metric's values, which includes the label of a scorer."""
    baseline: str | None
    """Baseline of the benchmark whose answers to the same items the sums are of; None for the model itself."""
    group: dict[str, str]
    """Slice, such as ``{"occupation": "nurse"}``; empty for all items."""
    reason: str | None
    """Reason why the metric has no value on these records; None if it has sums."""
    ideal: float | None
    n: int
    """Number of units that the value is computed from."""
    n_excluded: int
    n_columns: int
    """Number of columns of the sums; 0 if there is a reason."""
    sums: tuple[float, ...]
    """Sums over each cluster, one column after the other; clusters are in the order of their names."""
