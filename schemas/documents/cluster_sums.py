"""Rows of ``sums.parquet``: what each cluster of items adds to a metric, so that no text is needed to compute it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from schemas.documents.base import Count, Document, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums(Document):
    """The sufficient statistics of one metric on one slice."""

    metric: Text
    version: Text
    """Version of the metric's values, which includes the label of a scorer."""
    baseline: Text | None
    """Baseline of the benchmark whose answers to the same items the sums are of; None for the model itself."""
    group: dict[str, str]
    """Slice, such as ``{"occupation": "nurse"}``; empty for all items."""
    reason: Text | None
    """Reason why the metric has no value on these records; None if it has sums."""
    ideal: float | None
    n: Count
    """Number of units that the value is computed from."""
    n_excluded: Count
    n_columns: Count
    """Number of columns of the sums; 0 if there is a reason."""
    sums: tuple[float, ...]
    """Sums over each cluster, one column after the other; clusters are in the order of their names."""

    @override
    def problems(self) -> Iterator[str]:
        if (self.reason is None) != (self.n_columns > 0) or (self.n_columns == 0 and self.sums):
            yield "reason: a metric has either sums or a reason why it has none; submit the complete run again"
        elif self.n_columns and len(self.sums) % self.n_columns:
            yield f"sums: {len(self.sums)} values do not fill {self.n_columns} columns; submit the complete run again"
