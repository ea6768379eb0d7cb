"""Intervals: against plain loops and formulas, and what clusters may and may not change."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.jackknife import (
    CROSSED,
    STUDENT,
    WILSON,
    Crossing,
    Deviations,
    deviations_of,
    draws,
    interval_of,
    joined,
)
from evaluators.statistics.record_tables import mean


def known(deviations: Deviations | str) -> Deviations:
    assert isinstance(deviations, Deviations), deviations
    return deviations


def smaller_share(sums: FloatArray) -> FloatArray:
    """Return the smaller of two shares: the accuracies of two groups, from right answers and numbers."""
    with np.errstate(invalid="ignore"):
        return np.minimum(sums[..., 0] / sums[..., 1], sums[..., 2] / sums[..., 3])


def made_cells(rng: np.random.Generator, n_first: int, n_second: int, n_cells: int) -> tuple[FloatArray, Crossing]:
    """Return right answers and numbers of two groups in cells, with an effect of each factor on all of its items."""
    flat = np.sort(rng.choice(n_first * n_second, size=n_cells, replace=False))
    first, second = np.divmod(flat, n_second)
    levels = rng.normal(size=n_first)[first] * 0.7 + rng.normal(size=n_second)[second] * 0.7 + 1
    numbers = np.full(n_cells, 4)
    right = [rng.binomial(numbers, 1 / (1 + np.exp(-levels - shift))) for shift in (0.0, 0.3)]
    clusters, crossing = Crossing.of(first, second)
    assert crossing is not None
    assert clusters.tolist() == list(range(n_cells))
    return np.column_stack([right[0], numbers, right[1], numbers]).astype(float), crossing


def by_loop(sums: FloatArray, factor: IntArray, aggregate: Callable[[FloatArray], FloatArray]) -> float:
    """Return the jackknife variance over the clusters of a factor."""
    value, n = float(aggregate(sums.sum(axis=0))), len(set(factor.tolist()))
    left_out = [float(aggregate(sums[factor != cluster].sum(axis=0))) for cluster in sorted(set(factor.tolist()))]
    return (n - 1) / n * sum((value - each) ** 2 for each in left_out)


@pytest.mark.parametrize("seed", range(2))
def test_the_variance_is_that_of_loops_which_leave_out_clusters(seed: int) -> None:
    sums, crossing = made_cells(np.random.default_rng(seed), 9, 7, 40)
    first, second, cells = (
        by_loop(sums, factor, smaller_share) for factor in (crossing.first, crossing.second, np.arange(len(sums)))
    )
    deviations = known(deviations_of(sums, smaller_share, crossing))
    assert deviations.variance == pytest.approx(max(first, second, first + second - cells), rel=1e-12)
    assert deviations.n_clusters == 7
    assert known(deviations_of(sums, smaller_share)).variance == pytest.approx(cells, rel=1e-12)


def test_a_factor_within_the_other_is_no_second_factor() -> None:
    template, item = np.array([0, 0, 1, 1, 2, 2]), np.arange(6)
    for first, second in ((item, template), (template, item)):
        clusters, crossing = Crossing.of(first, second)
        assert crossing is None
        assert clusters.tolist() == template.tolist()


def test_why_there_is_no_interval() -> None:
    sums = np.array([[3, 4], [2, 4], [1, 4], [0, 4], [4, 4], [0, 0]], dtype=float)
    too_few = "an interval needs at least 6 clusters, there are 5"
    assert interval_of(0.5, deviations_of(sums, mean)) == (None, too_few)
    # Without the first cluster the second group has no item, so that its share is undefined.
    sums = np.array([[1.0, 2.0, 1.0, 1.0], *[[1.0, 2.0, 0.0, 0.0]] * 5])
    assert interval_of(0.5, deviations_of(sums, smaller_share)) == (None, "undefined without one of its clusters")


@pytest.mark.parametrize(("n_right", "n_clusters"), [(0, 10), (10, 10), (120, 395)])
def test_the_interval_of_a_share_is_wilsons_with_students_t(n_right: int, n_clusters: int) -> None:
    right = np.arange(n_clusters) < n_right
    sums = np.column_stack([right, np.ones(n_clusters)]).astype(float)
    share = n_right / n_clusters
    interval, _ = interval_of(share, deviations_of(sums, mean))
    assert interval is not None
    assert (interval.method, interval.n_clusters) == (WILSON, n_clusters)
    # Shares whose distance to the value is t standard errors of their own; the jackknife divides by n - 1.
    n = n_clusters - 1 if 0 < n_right < n_clusters else n_clusters
    t = stats.t.ppf(0.975, n_clusters - 1)
    for end in {interval.low, interval.high} - {0.0, 1.0}:
        assert abs(share - end) == pytest.approx(t * math.sqrt(end * (1 - end) / n), rel=1e-9)
    assert interval.low < interval.high


def test_an_interval_of_one_number_is_shown_as_clusters_that_are_alike() -> None:
    alike = deviations_of(np.ones((6, 2)), mean)
    # 6 / (6 + t^2) with t of 5 degrees of freedom, 2.570582.
    for method, shown in ((STUDENT, "(all alike)"), (WILSON, "[0.48, 1.00]")):
        interval, _ = interval_of(1.0, alike, method=method)
        assert interval is not None
        assert interval.shown(lambda end: f"{end:.2f}") == shown


def test_a_wider_range_scales_the_interval() -> None:
    sums = np.column_stack([np.arange(20) % 3 == 0, np.ones(20)]).astype(float)
    of_share, _ = interval_of(0.35, deviations_of(sums, mean))
    of_double, _ = interval_of(2 * 0.35 - 1, deviations_of(sums, lambda s: 2 * mean(s) - 1), minimum=-1.0)
    assert of_share is not None
    assert of_double is not None
    assert (of_double.low, of_double.high) == pytest.approx((2 * of_share.low - 1, 2 * of_share.high - 1))


def test_the_other_method_is_the_value_and_its_standard_error() -> None:
    sums, crossing = made_cells(np.random.default_rng(1), 30, 20, 300)
    deviations = known(deviations_of(sums, smaller_share, crossing))
    value = float(smaller_share(sums.sum(axis=0)))
    interval, _ = interval_of(value, deviations, maximum=None, method=STUDENT)
    assert interval is not None
    assert interval.method == CROSSED + STUDENT
    # No sizes are given, so that each cell counts as one item.
    n_effective = min(300**2 / (np.bincount(factor) ** 2).sum() for factor in (crossing.first, crossing.second))
    assert deviations.n_effective == pytest.approx(n_effective)
    assert 15 < n_effective < deviations.n_clusters == 20
    half = stats.t.ppf(0.975, n_effective - 1) * math.sqrt(deviations.variance)
    assert (interval.low, interval.high) == pytest.approx((value - half, value + half))
    clipped, _ = interval_of(value, deviations * 100, method=STUDENT)
    assert clipped is not None
    assert (clipped.low, clipped.high) == (0.0, 1.0)


def test_draws_vary_as_the_values_do_and_together() -> None:
    rng = np.random.default_rng(2)
    sums, crossing = made_cells(rng, 30, 20, 300)
    other = np.where(rng.random(sums.shape) < 0.9, sums, np.minimum(sums + 1, 4))
    both = [known(deviations_of(each, smaller_share, crossing)) for each in (sums, other)]
    drawn = draws(both, 20_000)
    for deviations, values in zip(both, drawn, strict=True):
        assert values.std() == pytest.approx(math.sqrt(deviations.variance), rel=0.03)
    # Draws of both factors contain the noise of single items twice. That of a single value is taken off, but a
    # difference of two has a larger share of it.
    spread, error = (drawn[0] - drawn[1]).std(), math.sqrt((both[0] - both[1]).variance)
    assert 0.97 * error < spread < 1.2 * error
    assert draws(both[:1], 5) == pytest.approx(draws(both, 5)[:1])


def test_an_only_factor_counts_as_either_of_two_beside_crossed_values() -> None:
    sums, crossing = made_cells(np.random.default_rng(1), 9, 7, 40)
    crossed = known(deviations_of(sums, smaller_share, crossing))
    single = known(deviations_of(np.column_stack([np.random.default_rng(1).random(8), np.ones(8)]), mean))
    both = joined([single, crossed])
    assert both.blocks.tolist() == [[8, 9], [8, 7]]
    for part, own in zip(both.parts, crossed.parts, strict=True):
        np.testing.assert_array_equal(part, [*single.first, *own])
    assert (both.n_clusters, both.n_effective) == (7, crossed.n_effective)
    # Values from other items add their variances.
    assert joined([single, single]).variance == pytest.approx(2 * single.variance)
