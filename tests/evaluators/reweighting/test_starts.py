"""Weights of the balanced logistic model, against general optimisers of the same loss, and two other simple ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from biasboard.ground.columns import FloatArray
from evaluators.calibration.reweighting.solvers import SOLVERS, balanced_log_weights, equalising_steps
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, problem_of


def loss(made: Made, slope: float, biases: FloatArray) -> float:
    """Return the mean over classes of the mean negative log-likelihood of their rows."""
    scores = slope * np.log(made.probabilities) + biases
    scores -= scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    right = logs[np.arange(len(logs)), made.targets]
    return -float(np.mean([right[made.targets == one].mean() for one in np.unique(made.targets)]))


class Minimum(NamedTuple):
    """The place and the value of a smallest loss."""

    place: FloatArray
    value: float


def smallest(function: Callable[[FloatArray], float], start: list[float], *, has_slope: bool = True) -> Minimum:
    """Minimise by a general optimiser; the first parameter is a slope, which the model bounds by 0.05."""
    bounds: list[tuple[float | None, float | None]] = [(0.05 if has_slope else None, None)]
    bounds += [(None, None)] * (len(start) - 1)
    found = minimize(function, np.array(start), bounds=bounds, options={"maxiter": 2000, "maxfun": 10**6}, tol=1e-12)
    return Minimum(np.asarray(found.x), float(found.fun))


def best_slope(made: Made, log_weights: FloatArray) -> float:
    """Return the smallest loss with these weights: biases are the slope times their logarithms."""
    return smallest(lambda a: loss(made, float(a[0]), a[0] * log_weights), [1.0]).value


@pytest.mark.parametrize("n_classes", [2, 4, 9])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_general_optimiser_finds_no_lower_loss(n_classes: int, seed: int) -> None:
    made = biased(seed, 300, n_classes, skew=0.3)
    found = balanced_log_weights(problem_of(made))
    general = smallest(lambda x: loss(made, float(x[0]), x[1:]), [1.0] + [0.0] * n_classes)
    assert best_slope(made, found) <= general.value + 1e-6
    slope, biases = general.place[0], general.place[1:]
    np.testing.assert_allclose(found, (biases - biases.mean()) / slope, atol=2e-2)


def test_where_right_classes_are_the_least_probable_the_slope_stays_positive() -> None:
    base = biased(2, 200, 3)
    made = Made(base.probabilities, base.probabilities.argmin(axis=1))
    found = balanced_log_weights(problem_of(made))
    general = smallest(lambda b: loss(made, 0.05, np.array([0.0, *b])), [0.0, 0.0], has_slope=False)
    assert np.isfinite(found).all()
    assert best_slope(made, found) <= general.value + 1e-6


def test_of_two_classes_it_is_scikit_learns_balanced_logistic_regression() -> None:
    made = biased(5, 400, 2, skew=1.0)
    odds = np.log(made.probabilities[:, 1] / made.probabilities[:, 0])[:, None]
    model = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-10, max_iter=1000).fit(odds, made.targets)
    border = float(model.intercept_[0] / model.coef_[0, 0])
    found = balanced_log_weights(problem_of(made))
    assert found[1] - found[0] == pytest.approx(border, abs=1e-3)


def test_classes_that_the_model_separates_stay_finite() -> None:
    for sharpness in (8.0, 40.0):
        made = biased(1, 60, 3, sharpness=sharpness)
        assert made.probabilities.argmax(axis=1).tolist() == made.targets.tolist()
        assert np.isfinite(balanced_log_weights(problem_of(made))).all()
    certain = Made(np.eye(3)[np.array([0, 1, 2, 0])], np.array([0, 1, 2, 0]))
    assert np.isfinite(balanced_log_weights(problem_of(certain))).all()


def test_the_size_of_a_rows_numbers_does_not_matter() -> None:
    made = biased(3, 200, 4)
    tiny = Made(made.probabilities * 10.0 ** np.random.default_rng(0).integers(-200, 200, size=(200, 1)), made.targets)
    np.testing.assert_allclose(
        balanced_log_weights(problem_of(tiny)), balanced_log_weights(problem_of(made)), atol=1e-8
    )


def test_a_class_without_rows_gets_the_mean_of_the_others() -> None:
    base = biased(3, 200, 4)
    problem = problem_of(Made(base.probabilities, np.where(base.targets == 1, 0, base.targets)))
    for log_weights in (balanced_log_weights(problem), *(step[0] for step in equalising_steps(problem))):
        assert log_weights[1] == 0
        assert log_weights[[0, 2, 3]].mean() == pytest.approx(0, abs=1e-12)


def test_steps_to_equal_accuracies_are_those_of_plain_loops() -> None:
    made = biased(4, 60, 3)
    rows, targets = made.probabilities.tolist(), made.targets.tolist()
    logs = [0.0, 0.0, 0.0]
    values = []
    for step in range(400):
        shares = oracle.accuracies(targets, oracle.weighted(rows, np.exp(logs).tolist()), 3)
        values.append((1 - oracle.sen(shares), -oracle.mean(shares)))
        moved = [
            log + 2 / (1 + step / 20) * (oracle.mean(shares) - share) for log, share in zip(logs, shares, strict=True)
        ]
        logs = [log - sum(moved) / 3 for log in moved]
    problem = problem_of(made)
    np.testing.assert_allclose(equalising_steps(problem)[-1][0], logs, atol=1e-9)
    even = SOLVERS["coordinate"].solve(problem).candidates[0].rules
    best = oracle.accuracies(targets, oracle.weighted(rows, even.weights.tolist()), 3)
    assert (1 - oracle.sen(best), -oracle.mean(best)) == pytest.approx(min(values), abs=1e-12)


def test_the_path_runs_from_nothing_to_one_and_to_the_other() -> None:
    made = biased(4, 200, 4)
    problem = problem_of(made)
    middle, end = balanced_log_weights(problem), equalising_steps(problem)[-1][0]
    points = [np.log(one.rules.weights) for one in SOLVERS["path"].solve(problem).candidates]
    assert len(points) == 40
    for place, point in enumerate(points, start=1):
        first = min(place, 20) / 20 * middle
        expected = first + max(place - 20, 0) / 20 * (end - middle)
        np.testing.assert_allclose(point - point.max(), expected - expected.max(), atol=1e-9)
