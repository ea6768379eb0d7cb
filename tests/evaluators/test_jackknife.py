"""Intervals: against plain loops and formulas, and what clusters may and may not change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.evenness import N_FOLDS, products, squares
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
from evaluators.tasks.labels.label_measures import FoldSums, cobias, rsd, squared_cv
from evaluators.tasks.pronouns.family_rates import evenness
from tests.evaluators.label_data import measured, simple


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


def test_why_there_is_no_interval_and_how_one_of_a_single_number_is_shown() -> None:
    sums = np.array([[3, 4], [2, 4], [1, 4], [0, 4], [4, 4], [0, 0]], dtype=float)
    too_few = "an interval needs at least 6 clusters, there are 5"
    assert interval_of(0.5, deviations_of(sums, mean)) == (None, too_few)
    # Without the first cluster the second group has no item, so that its share is undefined.
    sums = np.array([[1.0, 2.0, 1.0, 1.0], *[[1.0, 2.0, 0.0, 0.0]] * 5])
    assert interval_of(0.5, deviations_of(sums, smaller_share)) == (None, "undefined without one of its clusters")
    alike = deviations_of(np.ones((6, 2)), mean)
    # 6 / (6 + t^2) with t of 5 degrees of freedom, 2.570582.
    for method, shown in ((STUDENT, "(all alike)"), (WILSON, "[0.48, 1.00]")):
        interval, _ = interval_of(1.0, alike, method=method)
        assert interval is not None
        assert interval.shown(lambda end: f"{end:.2f}") == shown


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


def test_products_are_those_of_all_pairs_of_answers_in_different_folds() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 5, size=(N_FOLDS, 3)).astype(float)
    right = np.floor(rng.random(n.shape) * (n + 1))
    of_folds = [(right[a], n[a], right[b], n[b]) for a, b in itertools.permutations(range(N_FOLDS), 2)]
    expected = [
        [sum(x[g] * y[h] for x, _, y, _ in of_folds) / sum(m[g] * k[h] for _, m, _, k in of_folds) for h in range(3)]
        for g in range(3)
    ]
    assert products(right, n) == pytest.approx(np.array(expected))
    assert squares(right, n) == pytest.approx(np.diagonal(expected))
    # Answers in a single fold give no product.
    alone = np.array([[1.0, 2.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    assert np.isnan(squares(alone, alone)).tolist() == [True, False]


def family_sums(right: FloatArray) -> FloatArray:
    """Statistics of right answers, shape (..., N_FOLDS, n_families), of four answers each."""
    return np.stack([right, np.full_like(right, 4.0)], axis=-3).reshape(*right.shape[:-2], -1)


def test_evenness_and_measures_of_labels_by_hand() -> None:
    # Without noise: accuracies .75 and .25, mean .5, variance .0625 (population) or .125 (sample).
    constant = np.tile([3.0, 1.0], (N_FOLDS, 1))
    assert evenness(family_sums(constant), ddof=0) == pytest.approx(1 / (1 + 0.0625 / 0.25))
    assert evenness(family_sums(constant), ddof=1) == pytest.approx(1 / (1 + 0.125 / 0.25))
    # The same accuracies in each fold, however much the folds differ.
    assert evenness(family_sums(np.array([[4.0, 4], [0, 0], [3, 3], [1, 1]])), ddof=1) == pytest.approx(1.0)
    # Differences d of -.5, .5, -.5, .5: their products over the 12 pairs of folds are 4 · .25 - 8 · .25, so that d² is
    # estimated as -1/12, and the variance as a quarter of it; the mean is .5.
    noisy = np.array([[1.0, 3], [3, 1], [1, 3], [3, 1]])
    assert evenness(family_sums(noisy), ddof=0) == pytest.approx(1 + (1 / 48) / (1 / 4 + 1 / 48))
    assert np.isnan(evenness(family_sums(np.zeros((N_FOLDS, 2))), ddof=1))
    # Accuracies .75 and .25 of four and eight items in each fold, without noise; the accuracy is 5/12.
    sums = FoldSums(np.tile([3.0, 2.0], (N_FOLDS, 1)), np.tile([4.0, 8.0], (N_FOLDS, 1)))
    assert cobias(sums) == pytest.approx(0.25)
    assert squared_cv(sums) == pytest.approx(0.0625 / 0.25)
    assert rsd(sums) == pytest.approx(((3 / 4 - 5 / 12) ** 2 + (1 / 4 - 5 / 12) ** 2) / 2 / (5 / 12) ** 2)


def test_spreads_lose_what_chance_adds_to_classes_of_unequal_sizes_and_to_their_mean() -> None:
    n = np.array([[2.0, 5, 9], [3, 4, 9], [2, 5, 8], [2, 5, 8]])
    right = np.array([[1.0, 4, 2], [3, 1, 3], [0, 5, 1], [2, 2, 4]])

    def across(c: int, n_folds: int) -> float:
        """The mean product of so many answers about a class, no two of which are in one fold."""
        folds = [list(places) for places in itertools.permutations(range(N_FOLDS), n_folds)]
        return float(sum(right[each, c].prod() for each in folds) / sum(n[each, c].prod() for each in folds))

    p, total, right_in_all = right.sum(axis=0) / n.sum(axis=0), n.sum(axis=0), right.sum(axis=0)
    noise = p**2 - [across(c, 2) for c in range(3)]
    # The accuracy times its noise: squares within a fold times the others, less what has no noise.
    of_folds = right**2 * (right_in_all - right) / (total - n) - n**2 * [across(c, 3) for c in range(3)]
    for measure, weights in ((rsd, total / total.sum()), (squared_cv, np.full(3, 1 / 3))):
        mean, away = weights @ p, np.eye(3) - weights
        slopes = 2 / 3 * away.T @ away
        spread = p @ slopes @ p / 2 - noise @ np.diag(slopes) / 2
        covariances = slopes * np.outer(noise, p)
        np.fill_diagonal(covariances, np.diag(slopes) * of_folds.sum(axis=0) / total**2)
        chance = weights**2 @ noise / mean**2
        shared = 2 * weights @ covariances.sum(axis=1)
        expected = spread / mean**2 / (1 + 3 * chance) + shared / mean**3 / (1 + 6 * chance)
        assert measure(FoldSums(right, n)) == pytest.approx(expected)


def test_a_class_with_one_item_is_left_out() -> None:
    shares = {"a": {"a": 0.6, "b": 0.3, "c": 0.1}, "b": {"a": 0.3, "b": 0.6, "c": 0.1}}
    rows = [("a", "a"), ("a", "b"), ("a", "a"), ("b", "b"), ("b", "b"), ("c", "a")]
    records = [simple("test", number, target, shares[told]) for number, (target, told) in enumerate(rows)]
    with_c, without_c = measured(records), measured(records[:-1])
    for name, of_paper in {"rsd": "rsd_paper", "cobias": "cobias_paper", "squared_cv": "gini"}.items():
        assert with_c[name].value == without_c[name].value is not None
        assert with_c[of_paper].value != without_c[of_paper].value
    single = measured([records[0], records[3]])["squared_cv"]
    assert (single.value, single.reason) == (None, "nothing is right, or fewer than two classes have two items")
