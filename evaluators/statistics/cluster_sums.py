"""Sums over the clusters of items: the sufficient statistics of metrics."""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray


def sum_by_cluster(
    clusters: IntArray, columns: IntArray | int, values: FloatArray | float, *, n_clusters: int, n_columns: int
) -> FloatArray:
    """Sum values per cluster and column.

    Args:
        clusters: Index of the cluster of each value, shape (n,), in [0, n_clusters).
        columns: Index of the column of each value, shape (n,), or one index for all.
        values: Values to sum, shape (n,), or one value for all.
        n_clusters: Number of rows of the sums.
        n_columns: Number of columns of the sums.

    Returns:
        Sums of shape (n_clusters, n_columns).
    """
    cells = clusters * n_columns + columns
    weights = np.broadcast_to(np.asarray(values, dtype=np.float64), cells.shape)
    sums = np.bincount(cells, weights=weights, minlength=n_clusters * n_columns)
    return sums.astype(np.float64).reshape(n_clusters, n_columns)


def sums_and_numbers(clusters: IntArray, values: FloatArray, n_clusters: int) -> FloatArray:
    """Return the sum and the number of the values in each cluster, shape (n_clusters, 2), the statistics of a mean.

    Args:
        clusters: Index of the cluster of each value, shape (n,), in [0, n_clusters).
        values: Values to sum, shape (n,).
        n_clusters: Number of rows of the sums.
    """
    shape = {"n_clusters": n_clusters, "n_columns": 2}
    return sum_by_cluster(clusters, 0, values, **shape) + sum_by_cluster(clusters, 1, 1.0, **shape)


def one_value_each(values: FloatArray) -> FloatArray:
    """Return the statistics of a mean in which each cluster has the same weight, shape (n_clusters, 2).

    Args:
        values: Value of each cluster, shape (n_clusters,); nan for clusters without one.
    """
    has_value = ~np.isnan(values)
    return np.column_stack([np.where(has_value, values, 0.0), has_value])


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the quotient; nan if the denominator is not positive. An undefined value is never replaced by 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)
