"""Evenness without the differences that chance gives: plain loops, and cases worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray
from evaluators.statistics.evenness import N_FOLDS, products, squares
from evaluators.tasks.labels.label_measures import FoldSums, cobias, rsd, squared_cv
from evaluators.tasks.pronouns.family_rates import evenness
from tests.evaluators.label_data import measured, simple


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


def test_evenness_by_hand() -> None:
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


def test_measures_of_labels_by_hand() -> None:
    # Accuracies .75 and .25 of four and eight items in each fold, without noise; the accuracy is 5/12.
    sums = FoldSums(np.tile([3.0, 2.0], (N_FOLDS, 1)), np.tile([4.0, 8.0], (N_FOLDS, 1)))
    assert cobias(sums) == pytest.approx(0.25)
    assert squared_cv(sums) == pytest.approx(0.0625 / 0.25)
    assert rsd(sums) == pytest.approx(((3 / 4 - 5 / 12) ** 2 + (1 / 4 - 5 / 12) ** 2) / 2 / (5 / 12) ** 2)
    # Both classes are right in half of the items, the first in whole folds: (1 · 1 · 2) / 12 is its squared accuracy,
    # 1/12 less than 1/4. That is the noise of the difference, and a quarter of it that of the mean.
    uneven_folds = FoldSums(np.array([[4.0, 2], [0, 2], [4, 2], [0, 2]]), np.full((N_FOLDS, 2), 4.0))
    assert cobias(uneven_folds) == pytest.approx(-1 / 12)
    # The mean has a noise of 1/48, a twelfth of its square, so that 1 over its square is a quarter too large by chance.
    assert squared_cv(uneven_folds) == pytest.approx(-1 / 48 / 0.25 / (1 + 3 / 12))
    assert rsd(uneven_folds) == squared_cv(uneven_folds)


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
