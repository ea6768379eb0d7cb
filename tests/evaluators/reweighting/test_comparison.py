"""The corrections of one line, and that the default loses to none of them."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from tests.bench.reweighting_rivals import (
    METHODS,
    ONE_LINERS,
    held_out_by,
    mean_division,
    predicted_by,
    prior_division,
    random_half,
)
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.imbalanced import NAMES, imbalanced
from tests.evaluators.reweighting.made import Made, biased

ROWS = np.array([[0.6, 0.4, 0.0], [0.5, 0.3, 0.2], [0.1, 0.1, 0.0]])


def test_a_division_by_the_mean_is_that_worked_out_by_hand() -> None:
    # The rows have the shares .6 .4 0, .5 .3 .2 and .5 .5 0, whose means are 1.6 / 3, 1.2 / 3 and .2 / 3.
    weights = mean_division(ROWS, np.array([0, 0, 1])).weights
    np.testing.assert_allclose(weights, [0.2 / 1.6, 0.2 / 1.2, 1.0])


def test_a_division_by_the_prior_is_that_worked_out_by_hand() -> None:
    # Classes 0 and 1 have 2/3 and 1/3 of the rows; class 2 has none and gets the mean weight.
    weights = prior_division(ROWS, np.array([0, 0, 1])).weights
    np.testing.assert_allclose(weights / weights[1], [0.5, 1.0, 0.5**0.5])


@pytest.mark.parametrize("seed", range(3))
def test_divisions_predict_as_plain_loops_do(seed: int) -> None:
    made, fresh = biased(seed, 60, 4, skew=0.5), biased(seed + 10, 80, 4).probabilities.tolist()
    rows, n = made.probabilities.tolist(), len(made.targets)
    means = [sum(row[one] / sum(row) for row in rows) / n for one in range(4)]
    priors = [sum(target == one for target in made.targets) / n for one in range(4)]
    for name, shares in zip(ONE_LINERS, (means, priors), strict=True):
        expected = [oracle.first_largest([p / share for p, share in zip(row, shares, strict=True)]) for row in fresh]
        assert predicted_by(name, *made, np.array(fresh)).tolist() == expected


def test_divisions_stand_columns_of_next_to_nothing() -> None:
    made = biased(0, 50, 3)
    for factor in (0.0, 5e-324, 1e-300):
        weights = mean_division(made.probabilities * np.array([1.0, factor, 1.0]), made.targets).weights
        assert np.isfinite(weights).all()
        assert weights.max() == 1
    assert np.isfinite(mean_division(made.probabilities * 1e-305, made.targets).weights).all()


@pytest.mark.parametrize("method", [method for method in METHODS if method != "paper"])
def test_each_half_is_predicted_by_the_other(method: str) -> None:
    made = biased(4, 90, 3, skew=0.7)
    half = random_half(made.targets, seed=3)
    for one in range(3):
        n = int((made.targets == one).sum())
        assert int(half[made.targets == one].sum()) == n // 2
    found = held_out_by(method, *made, seed=3)
    for fitted in (half, ~half):
        expected = predicted_by(method, made.probabilities[fitted], made.targets[fitted], made.probabilities[~fitted])
        assert found[~fitted].tolist() == expected.tolist()


def test_labels_of_held_out_rows_do_not_matter() -> None:
    made = biased(5, 80, 3)
    half = random_half(made.targets, seed=0)
    wrong = Made(made.probabilities, np.where(half, made.targets, (made.targets + 1) % 3))
    for method in ("default", "balanced", *ONE_LINERS):
        first, other = (
            predicted_by(method, each.probabilities[half], each.targets[half], made.probabilities)
            for each in (made, wrong)
        )
        assert first.tolist() == other.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("are_labels_rare", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_default_loses_to_no_division(name: str, are_labels_rare: bool) -> None:
    """Over ten seeds, by no more than a standard error, on rows that nothing was fitted on."""
    welfare: dict[str, list[float]] = {method: [] for method in ("default", "uncorrected", *ONE_LINERS)}
    means: dict[str, list[float]] = {"default": [], "uncorrected": []}
    for seed in range(10):
        made = imbalanced(name, seed, are_labels_rare=are_labels_rare)
        n_classes = made.probabilities.shape[1]
        for method in welfare:
            predicted = held_out_by(method, *made, seed=seed)
            shares = oracle.accuracies(made.targets.tolist(), predicted.tolist(), n_classes)
            welfare[method].append(oracle.sen(shares))
            if method in means:
                means[method].append(oracle.mean(shares))
    for division in ONE_LINERS:
        assert_not_behind(welfare["default"], welfare[division])
    assert_not_behind(means["default"], means["uncorrected"])


def assert_not_behind(ours: list[float], theirs: list[float]) -> None:
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    error = statistics.stdev(differences) / len(differences) ** 0.5
    assert statistics.mean(differences) >= -error, (differences, error)
