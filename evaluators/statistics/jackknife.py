"""How sure a value is: every cluster of items is left out in turn, and the value is computed from the others.

Items stand for a larger population: another set of sentences would have given another value. Clusters are what that
population consists of, such as occupation pairs. Where a dataset crosses two factors, such as occupation pairs and
sentence frames, both are drawn from a population, and intervals that know only one of them are far too narrow::

    sums per cell (pair and frame)         deviations                           variance
      pair 0, frame 3 │ 4 1     ──sum──>   first:  one per occupation pair  ──┐
      pair 0, frame 7 │ 2 0     ──sum──>   second: one per frame            ──┼──> first + second - cells
      pair 1, frame 3 │ 4 4     ───────>   cells:  one per cell             ──┘

On 6,320 simulated answers with effects of pairs and frames, intervals of 95 % over pairs alone cover the true accuracy
in 79 %, these in 95 %. Where only one factor or none has an effect they cover 93 to 98 %. A bootstrap that draws both
factors (Owen 2007) counts the noise of single items three times, and the sum of both variances twice.

References:
    Cameron, Gelbach & Miller 2011, "Robust Inference with Multiway Clustering", for the variance; MacKinnon, Nielsen &
    Webb 2024, "Jackknife inference with two-way clustering", for leaving out clusters and for the larger of the three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.statistics.cluster_sums import ratio
from schemas.documents.result import Interval, within

LEVEL = 0.95
WILSON = "cluster jackknife, Wilson"
"""Interval of a value whose ends are reached only if every unit is at that end, such as an accuracy."""
STUDENT = "cluster jackknife, t"
"""Interval of any other value, such as 1 minus a mean of absolute differences."""
SMALLEST = "smallest of cluster jackknife, Wilson"
"""Interval of the smallest of several means, whose sums and numbers alternate in the columns."""
CROSSED = "crossed "
"""Beginning of the method's name if two factors are crossed."""
METHODS = frozenset(prefix + method for prefix in ("", CROSSED) for method in (WILSON, STUDENT, SMALLEST))
"""Methods of the intervals that are computed now; results made earlier name others."""
SEED = 20250523
"""Fixed seed, so that anybody draws the same."""
_CLUSTERS_AT_A_TIME = 1024
_MAX_VALUES = 1 << 22
"""Number of sums to aggregate at a time; 32 MB."""

Aggregate = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Crossing:
    """The clusters of two crossed factors that each cell lies in."""

    first: IntArray
    """Index of each cell's cluster in the first factor, shape (n_cells,)."""
    second: IntArray
    """The same in the second factor."""

    @classmethod
    def of(cls, first: IntArray, second: IntArray) -> tuple[IntArray, Crossing | None]:
        """Return the cell of each row, shape (n,), and the clusters of each cell.

        There is no crossing if a factor has a single cluster, or if each cluster of one factor lies in a single cluster
        of the other: the coarser factor then contains all that the two have in common, and its clusters are the cells.

        Args:
            first: Index of each row's cluster in the first factor, shape (n,).
            second: The same in the second factor.
        """
        width = int(second.max(initial=0)) + 1
        codes, cells = np.unique(first * width + second, return_inverse=True)
        of_first, of_second = np.divmod(codes, width)
        n_first, n_second = len(np.unique(of_first)), len(np.unique(of_second))
        if n_second <= 1 or len(codes) == n_second:
            return first, None
        if n_first <= 1 or len(codes) == n_first:
            return second, None
        return cells.reshape(-1).astype(np.int64), cls(of_first, of_second)

    @cached_property
    def _orders(self) -> tuple[tuple[IntArray, IntArray], ...]:
        orders = []
        for factor in (self.first, self.second):
            order = np.argsort(factor, kind="stable")
            orders.append((order, np.flatnonzero(np.diff(factor[order], prepend=-1))))
        return tuple(orders)

    def sums(self, cell_sums: FloatArray) -> tuple[FloatArray, ...]:
        """Return the sums over each cluster of both factors, shapes (n_first, n_columns) and (n_second, n_columns)."""
        return tuple(np.add.reduceat(cell_sums[order], starts, axis=0) for order, starts in self._orders)


@dataclass(frozen=True, eq=False)
class Deviations:
    """How far a value moves if a cluster is left out, scaled so that the squares add up to a variance.

    Results on the same items have deviations of the same clusters, so that the deviations of a difference are the
    differences of the deviations.
    """

    first: FloatArray
    """Deviations for the clusters of the first factor, shape (n_first,); 0 for those without data."""
    second: FloatArray
    """The same for the second factor; empty if there is one factor."""
    cells: FloatArray
    """The same for the cells in which both factors meet; empty if there is one factor."""
    n_clusters: int
    """Number of clusters with data, of the factor that has fewer."""

    @classmethod
    def of(cls, parts: Iterable[FloatArray], n_clusters: int) -> Deviations:
        """Make deviations from those for one factor, or for two factors and their cells."""
        first, *others = parts
        second, cells = others or (np.zeros(0), np.zeros(0))
        return cls(first, second, cells, n_clusters)

    @property
    def variance(self) -> float:
        """The squared standard error of the value."""
        return float(variance_of(*(float(part @ part) for part in self.parts)))

    @property
    def is_crossed(self) -> bool:
        """True if there are two factors."""
        return bool(len(self.cells))

    def __add__(self, other: Deviations) -> Deviations:
        """Return the deviations of the sum of two values that come from the same items."""
        parts = (a + b for a, b in zip(self.parts, other.parts, strict=True))
        return Deviations.of(parts, min(self.n_clusters, other.n_clusters))

    def __mul__(self, factor: float) -> Deviations:
        """Return the deviations of a multiple of the value."""
        return Deviations.of((factor * part for part in self.parts), self.n_clusters)

    def __sub__(self, other: Deviations) -> Deviations:
        """Return the deviations of the difference of two values that come from the same items."""
        return self + other * -1.0

    @property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The deviations for the first factor, the second and the cells."""
        return self.first, self.second, self.cells

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of clusters in the first factor, in the second and of cells: equal for the same items."""
        return tuple(len(part) for part in self.parts)


def joined(parts: Sequence[Deviations]) -> Deviations:
    """Return the deviations of the sum of values that come from different items."""
    columns = zip(*(part.parts for part in parts), strict=True)
    return Deviations.of((np.concatenate(column) for column in columns), min(part.n_clusters for part in parts))


def variance_of(first: FloatArray | float, second: FloatArray | float, cells: FloatArray | float) -> FloatArray:
    """Return variances from the sums of squares of the deviations for two factors and for their cells.

    Both factors contain the variance of the cells, which is therefore taken off once. By chance that can leave less
    than one factor alone has, which counts then.
    """
    larger: FloatArray = np.maximum(np.maximum(first, second), np.add(first, second) - cells)
    return larger


def draws(values: Sequence[Deviations], n: int) -> FloatArray:
    """Return normal deviations of values from the same items, drawn together, shape (n_values, n).

    Args:
        values: Deviations of each value.
        n: Number of draws.
    """
    drawn = np.zeros((len(values), n))
    squares = np.zeros(len(values))
    for number, factor in enumerate(zip(*(value.parts[:2] for value in values), strict=True)):
        generator = np.random.default_rng((SEED, number))
        stacked = np.array(factor)
        # In blocks of clusters: the draws of 16,000 clusters at once would take 256 MB.
        for start in range(0, stacked.shape[1], _CLUSTERS_AT_A_TIME):
            block = stacked[:, start : start + _CLUSTERS_AT_A_TIME]
            drawn += block @ generator.standard_normal((block.shape[1], n))
        squares += (stacked**2).sum(axis=1)
    # Both factors contain the noise of single items, so that together they vary more than the values do.
    variances = np.array([value.variance for value in values])
    scale = np.sqrt(np.divide(variances, squares, out=np.zeros(len(values)), where=squares > 0))
    scaled: FloatArray = drawn * scale[:, None]
    return scaled


def deviations_of(cell_sums: FloatArray, aggregate: Aggregate, crossing: Crossing | None = None) -> Deviations | str:
    """Return the deviations of a value, or the reason why there are none.

    Args:
        cell_sums: Sufficient statistics of each cluster, or of each cell if two factors are crossed, shape
            (n_cells, n_columns).
        aggregate: Function from sums of shape (..., n_columns) to values of shape (...,); nan if undefined.
        crossing: The clusters of each cell; None if each row is a cluster of the only factor.
    """
    total = cell_sums.sum(axis=0)
    factors = (cell_sums,) if crossing is None else (*crossing.sums(cell_sums), cell_sums)
    parts, numbers = [], []
    value = aggregate(total)
    for sums in factors:
        has_data: BoolArray = np.any(sums != 0, axis=1)
        n = int(np.count_nonzero(has_data))
        if n < 2:
            return f"an interval needs at least 2 clusters, there are {n}"
        without = _aggregated(total - sums[has_data], aggregate)
        if np.isnan(without).any():
            return "undefined without one of its clusters"
        deviations = np.zeros(len(sums))
        deviations[has_data] = np.sqrt((n - 1) / n) * (value - without)
        parts.append(deviations)
        numbers.append(n)
    return Deviations.of(parts, min(numbers))


def _aggregated(sums: FloatArray, aggregate: Aggregate) -> FloatArray:
    step = max(1, _MAX_VALUES // max(1, sums.shape[1]))
    return np.concatenate([aggregate(sums[start : start + step]) for start in range(0, len(sums), step)])


def interval_of(
    value: float,
    deviations: Deviations | str,
    *,
    minimum: float = 0.0,
    maximum: float | None = 1.0,
    method: str = WILSON,
    level: float = LEVEL,
) -> tuple[Interval | None, str | None]:
    """Return the interval of a value, or the reason why there is none.

    Args:
        value: Value of the metric.
        deviations: Its deviations, or the reason why there are none.
        minimum: Smallest value that is possible.
        maximum: Largest value that is possible; None if there is none, which takes method ``STUDENT``.
        method: ``WILSON`` or ``STUDENT``. Both have Student's t with one degree of freedom less than clusters, since
            the standard error is itself estimated from them.
        level: How often it covers the true value.

    References:
        Dean & Pagano 2015, "Evaluating Confidence Interval Methods for Binomial Proportions in Clustered Surveys", for
        Wilson's interval with the effective number of items.
    """
    if isinstance(deviations, str):
        return None, deviations
    if method == WILSON and maximum is not None:
        width = maximum - minimum
        share, error = (value - minimum) / width, deviations.variance / width**2
        low, high = (minimum + width * end for end in _wilson(share, error, deviations.n_clusters, level))
    else:
        half_width = half_width_of(deviations, level)
        low, high = value - half_width, value + half_width
    interval = Interval(
        low=within(low, minimum, maximum),
        high=within(high, minimum, maximum),
        level=level,
        method=(CROSSED if deviations.is_crossed else "") + method,
        n_clusters=deviations.n_clusters,
        n_resamples=None,
    )
    return interval, None


def interval_of_smallest(cell_sums: FloatArray, crossing: Crossing | None = None) -> tuple[Interval | None, str | None]:
    """Return the interval of the smallest of several means, or the reason why there is none.

    Which mean is the smallest can change with a single item, where the jackknife knows nothing about the others. So
    each mean has Wilson's interval. The true smallest is not below the smallest lower end if its own interval holds,
    and not above the smallest upper end if those of all k hold, each of which therefore may fail k times less often.

    Args:
        cell_sums: Sum and number of each mean in turn, per cluster or cell, shape (n_cells, 2 * k).
        crossing: The clusters of each cell; None if each row is a cluster of the only factor.
    """
    intervals = []
    k = cell_sums.shape[1] // 2
    for sums in np.hsplit(cell_sums, k):
        value, deviations = float(_mean(sums.sum(axis=0))), deviations_of(sums, _mean, crossing)
        for level in (LEVEL, 1 - (1 - LEVEL) / k):
            interval, reason = interval_of(value, deviations, level=level)
            if interval is None:
                return None, f"{reason} with one of the groups"
            intervals.append(interval)
    smallest = replace(
        min(intervals, key=lambda interval: interval.n_clusters),
        low=min(interval.low for interval in intervals[::2]),
        high=min(interval.high for interval in intervals[1::2]),
        level=LEVEL,
        method=("" if crossing is None else CROSSED) + SMALLEST,
    )
    return smallest, None


def _mean(sums: FloatArray) -> FloatArray:
    return ratio(sums[..., 0], sums[..., 1])


def half_width_of(deviations: Deviations, level: float = LEVEL) -> float:
    """Return half the length of the interval of a value or of a difference, by Student's t."""
    return student(deviations.n_clusters, level) * float(deviations.variance**0.5)


def student(n_clusters: int, level: float = LEVEL) -> float:
    """Return the quantile of Student's t for an interval, with one degree of freedom less than clusters."""
    # Imported here because scipy takes longer to load than most commands that import this module take in all.
    from scipy.special import stdtrit

    return float(stdtrit(n_clusters - 1, (1 + level) / 2))


def _wilson(share: float, variance: float, n_clusters: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval of a share with a variance.

    Near 0 and 1 the interval value ± t · standard error is far too short: of 44 clusters with an accuracy of .998 it
    covers 69 %, and this one 97 %; for accuracies of .7 they differ by 1 % of their length.
    """
    # The number of independent items that would give the same standard error. If all clusters are at one end of the
    # range there is none, and each cluster counts as one item.
    spread = share * (1 - share)
    inverse = variance / spread if spread > 0 else 1 / n_clusters
    weight = student(n_clusters, level) ** 2 * inverse
    middle = (share + weight / 2) / (1 + weight)
    half = (weight * spread + weight**2 / 4) ** 0.5 / (1 + weight)
    return middle - half, middle + half
