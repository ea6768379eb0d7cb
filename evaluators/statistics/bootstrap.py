"""Computes cluster bootstrap intervals of metrics that are functions of sums over clusters.

A metric separates its sufficient statistics (sums over the items of each cluster) from their aggregation to a value, so
that all resamples are one matrix product. Two results with the same signature draw the same resamples, so differences
between them are paired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import FloatArray, IntArray
from schemas.documents.result import Interval

N_RESAMPLES = 2000
LEVEL = 0.95
SEED = 20250523
"""Fixed seed, so that anybody computes the same interval from the same records."""
PERCENTILE = "cluster bootstrap, percentile"
NORMAL = "cluster bootstrap, normal"
_MAX_UNDEFINED = 0.05
_MAX_CACHED_CLUSTERS = 8192
"""Largest number of clusters whose draws are cached; they take up to 131 MB."""
_MAX_COLUMNS = 2048
"""Number of columns to resample at a time; their sums over the resamples take up to 32 MB."""


@lru_cache(maxsize=8)
def cluster_draws(n_clusters: int) -> FloatArray:
    """Return how often each resample draws each cluster.

    Args:
        n_clusters: Number of clusters, in the fixed order of their names.

    Returns:
        Counts of shape (N_RESAMPLES, n_clusters); each row sums to ``n_clusters``. Equal ``n_clusters`` give equal
        counts.
    """
    # Counts are floats because BLAS multiplies no integer matrices.
    draws: FloatArray = np.empty((N_RESAMPLES, n_clusters))
    draws[:] = _draws(np.random.default_rng(SEED), n_clusters, N_RESAMPLES)
    draws.setflags(write=False)
    return draws


def _draws(rng: np.random.Generator, n_clusters: int, n_resamples: int) -> IntArray:
    return rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=n_resamples)


def _sums(cluster_sums: FloatArray, n_resamples: int = N_RESAMPLES) -> FloatArray:
    """Sum sufficient statistics of shape (n_clusters, n_columns) over the first resamples of the clusters."""
    n_clusters = len(cluster_sums)
    if n_clusters <= _MAX_CACHED_CLUSTERS:
        return exact_product(cluster_draws(n_clusters)[:n_resamples], cluster_sums)
    # The draws of many clusters take more memory than everything else, and verification has 400 MB, so only some
    # resamples are drawn at a time. The generator continues, so the draws equal those of a single call.
    rng = np.random.default_rng(SEED)
    sums = np.empty((n_resamples, cluster_sums.shape[1]))
    n_at_a_time = max(1, _MAX_CACHED_CLUSTERS * N_RESAMPLES // n_clusters // 4)
    for start in range(0, n_resamples, n_at_a_time):
        block = sums[start : start + n_at_a_time]
        block[:] = exact_product(_draws(rng, n_clusters, len(block)).astype(np.float64), cluster_sums)
    return sums


def exact_product(draws: FloatArray, table: FloatArray) -> FloatArray:
    """Return a matrix product whose entries depend neither on the processor nor on the other columns.

    BLAS adds in an order that depends on the processor and the shape, and so do its last digits. Here each column is
    split into multiples of two powers of two, coarse enough for sums to be exact in any order. Only the final addition
    rounds.

    Args:
        draws: Counts, shape (n_resamples, n_clusters); each row sums to ``n_clusters``.
        table: Values, shape (n_clusters, n_columns).

    Returns:
        The product, shape (n_resamples, n_columns).
    """
    # A float has 53 bits. A row of counts sums to n_clusters, so no sum exceeds n_clusters times the largest value,
    # for which this many bits per value leave room.
    n_bits = 52 - max(len(table), 1).bit_length()
    largest = np.abs(table).max(axis=0, initial=0.0)
    exponents = np.frexp(largest)[1]
    coarse = _rounded(table, exponents - n_bits)
    sums: FloatArray = draws @ coarse
    rest = table - coarse
    # Most columns are counts, which have no remainder.
    inexact = np.flatnonzero(rest.any(axis=0))
    if len(inexact):
        fine = _rounded(rest[:, inexact], exponents[inexact] - 2 * n_bits)
        sums[:, inexact] += draws @ fine
    return sums


def _rounded(table: FloatArray, exponents: npt.NDArray[np.int32]) -> FloatArray:
    """Round each column to multiples of a power of two, given its exponent."""
    rounded: FloatArray = np.ldexp(np.rint(np.ldexp(table, -exponents)), exponents)
    return rounded


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
    table: FloatArray = sums.astype(np.float64).reshape(n_clusters, n_columns)
    return table


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


def resample(
    cluster_sums: FloatArray, aggregate: Callable[[FloatArray], FloatArray], n_resamples: int = N_RESAMPLES
) -> FloatArray:
    """Compute the values of a metric on resamples of the clusters.

    Args:
        cluster_sums: Sufficient statistics, shape (n_clusters, n_columns).
        aggregate: Function from sums of shape (..., n_columns) to values of shape (...,); nan if undefined.
        n_resamples: Number of resamples, the first of all ``N_RESAMPLES``.

    Returns:
        Values of shape (n_resamples,); nan if the metric is undefined on the resample.
    """
    return aggregate(_sums(cluster_sums, n_resamples))


def resampled_sums(parts: Sequence[FloatArray]) -> Iterator[FloatArray]:
    """Sum many sufficient statistics over the resamples of the clusters, several at a time.

    One product of large matrices is many times faster than many products of small ones.

    Args:
        parts: Sufficient statistics, each of shape (n_clusters, n_columns). An array that several metrics share is
            summed once.

    Yields:
        Sums of shape (N_RESAMPLES, n_columns) for each of the parts, in their order.
    """
    # Metrics with the same statistics share the very array, so identity suffices and no contents are compared.
    distinct = {id(part): part for part in parts}
    n_uses = Counter(map(id, parts))
    products = zip(distinct, _products(list(distinct.values())), strict=True)
    ready: dict[int, FloatArray] = {}
    for part in parts:
        while id(part) not in ready:
            name, sums = next(products)
            ready[name] = sums
        n_uses[id(part)] -= 1
        yield ready[id(part)] if n_uses[id(part)] else ready.pop(id(part))


def _products(parts: Sequence[FloatArray]) -> Iterator[FloatArray]:
    start = 0
    while start < len(parts):
        end, n_columns = start, 0
        while end < len(parts) and len(parts[end]) == len(parts[start]) and n_columns < _MAX_COLUMNS:
            n_columns += parts[end].shape[1]
            end += 1
        columns, numbers = _distinct_columns(np.concatenate(parts[start:end], axis=1))
        sums = _sums(columns)
        ends = np.cumsum([part.shape[1] for part in parts[start : end - 1]])
        yield from (sums.take(own_numbers, axis=1) for own_numbers in np.split(numbers, ends))
        start = end


def _distinct_columns(table: FloatArray) -> tuple[FloatArray, IntArray]:
    # Most columns of slices are counts, and many are equal: of the 1,554 of synthbias type2, 211 are distinct.
    first: dict[bytes, int] = {}
    numbers = [first.setdefault(column.tobytes(), len(first)) for column in table.T]
    if len(first) == 1:
        return table, np.arange(len(numbers))
    chosen = np.unique(numbers, return_index=True)[1]
    return table[:, chosen], np.array(numbers)


def interval_of(
    value: float, resampled: FloatArray, n_clusters: int, *, method: str = PERCENTILE
) -> tuple[Interval | None, str | None]:
    """Return the interval of a value, or the reason why there is none.

    Args:
        value: Value of the metric on the original sample.
        resampled: Values of the metric on the resamples, shape (N_RESAMPLES,); nan if undefined.
        n_clusters: Number of clusters that are not empty.
        method: ``PERCENTILE``, or ``NORMAL`` (value and standard error) for means of absolute differences. Resampling
            adds noise to each absolute difference, so percentiles of their mean would not be centred on the value.

    Returns:
        The interval and None, or None and the reason.
    """
    if n_clusters < 2:
        return None, f"an interval needs at least 2 clusters, there are {n_clusters}"
    defined = resampled[~np.isnan(resampled)]
    # A few undefined resamples, such as those without a right answer, are left out. With many, the interval would be
    # that of another quantity: the value on condition that it is defined.
    undefined_rate = 1 - len(defined) / len(resampled)
    if undefined_rate > _MAX_UNDEFINED:
        return None, f"undefined on {undefined_rate:.0%} of the resamples"
    tail = (1 - LEVEL) / 2
    if method == PERCENTILE:
        low, high = quantiles(defined, (tail, 1 - tail))
    else:
        # Imported here because scipy takes longer to load than most commands that import this module take in all.
        from scipy.special import ndtri

        half_width = -float(ndtri(tail)) * float(np.std(defined, ddof=1))
        low, high = value - half_width, value + half_width
    interval = Interval(
        low=float(low),
        high=float(high),
        level=LEVEL,
        method=method,
        n_clusters=n_clusters,
        n_resamples=len(resampled),
    )
    return interval, None


def quantiles(values: FloatArray, shares: Sequence[float]) -> list[float]:
    """Return linearly interpolated quantiles, bitwise equal to those of ``numpy.quantile`` in a tenth of its time.

    Args:
        values: Finite values, shape (n,), n >= 1.
        shares: Shares of the values below each quantile, in [0, 1].
    """
    ordered = np.sort(values)
    results = []
    for share in shares:
        position = share * (len(ordered) - 1)
        below = int(position)
        low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
        weight = position - below
        step = high - low
        # Like numpy, interpolate from the nearer end: the two formulas round differently.
        results.append(low + step * weight if weight < 0.5 else high - step * (1 - weight))
    return results


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the quotient; nan if the denominator is not positive. An undefined value is never replaced by 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)
