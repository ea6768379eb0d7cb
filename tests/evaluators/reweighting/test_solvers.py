"""Every solver with every objective, against trying everything, general optimisers and plain loops."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from scipy.optimize import minimize

from biasboard.ground.columns import FloatArray
from evaluators.calibration.reweighting.fitting import Fit, FitSettings, fit_rules
from evaluators.calibration.reweighting.problem import Annealing, ObjectiveName
from evaluators.calibration.reweighting.rules import RuleSet, prepared
from evaluators.calibration.reweighting.solvers import SOLVERS, anneal, balanced_log_weights, equalising_steps
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, problem_of

SHORT = Annealing(cooling=0.75, stop_ratio=1e-2, moves_per_level=60, n_restarts=1)
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_objective = pytest.mark.parametrize("objective", get_args(ObjectiveName))


def fitted(made: Made, **choices: Any) -> Fit:
    return fit_rules(*made, FitSettings(**{"annealing": SHORT, **choices}))


def predicted(fit: Fit, made: Made) -> list[int]:
    return [int(one) for one in fit.rules.predict(made.probabilities)]


def mean_of(made: Made, guesses: list[int]) -> float:
    return oracle.mean(oracle.accuracies(made.targets.tolist(), guesses, made.probabilities.shape[1]))


def value(made: Made, weights: FloatArray, name: str) -> float:
    guesses = oracle.weighted(made.probabilities.tolist(), weights.tolist())
    return oracle.objective(name, made.targets.tolist(), guesses, made.probabilities.shape[1])


@every_solver
@every_objective
def test_a_fit_takes_the_best_candidate_that_keeps_the_floor_and_can_be_repeated(
    solver: str, objective: ObjectiveName
) -> None:
    made = biased(8, 150, 4, sharpness=0.7, skew=0.6)
    fit, again = (fitted(made, solver=solver, objective=objective, seed=5) for _ in range(2))
    np.testing.assert_array_equal(fit.rules.weights, again.rules.weights)
    np.testing.assert_array_equal(fit.rules.functions, again.rules.functions)
    assert fit.ranks == again.ranks
    _, chosen, negative_mean = min(fit.ranks)
    assert chosen == min(value for is_below, value, _ in fit.ranks if not is_below)
    guesses = predicted(fit, made)
    assert chosen == pytest.approx(oracle.objective(objective, made.targets.tolist(), guesses, 4), abs=1e-9)
    assert -negative_mean == pytest.approx(mean_of(made, guesses))
    assert mean_of(made, guesses) >= mean_of(made, made.probabilities.argmax(axis=1).tolist()) - 1e-12


@every_solver
def test_order_and_scale_of_probabilities_and_repeated_rows_change_nothing(solver: str) -> None:
    made, choices = biased(6, 150, 5), {"solver": solver}
    expected = predicted(fitted(made, **choices), made)
    permutation = np.random.default_rng(0).permutation(5)
    # Column j of the permuted table is column permutation[j] of the first one.
    permuted = Made(made.probabilities[:, permutation], np.argsort(permutation)[made.targets])
    assert [int(permutation[place]) for place in predicted(fitted(permuted, **choices), permuted)] == expected
    if solver != "shrunk":  # It trusts twice the rows more.
        twice = Made(np.repeat(made.probabilities, 2, axis=0), np.repeat(made.targets, 2))
        assert predicted(fitted(twice, **choices), made) == expected
    if solver != "anneal":
        scales = 2.0 ** np.random.default_rng(0).integers(-60, 60, size=(150, 1))
        assert predicted(fitted(Made(made.probabilities * scales, made.targets), **choices), made) == expected


def times(factors: Any) -> Made:
    """Return rows whose probabilities are multiplied by one number, or by one for each class or row."""
    probabilities, targets = biased(0, 200, 4)
    return Made(probabilities * factors, targets)


EXTREMES: dict[str, Made] = {
    "a column of 1e-300": times([1, 1e-300, 1, 1]),
    "a column of zeros": times([1, 0, 1, 1]),
    "all tiny": times(1e-310),
    "all huge": times(1e300),
    "rows of any sum": times(np.resize([7.0, 1.0, 1e-9], 200)[:, None]),
    "identical rows": Made(np.full((40, 4), 0.25), np.arange(40) % 4),
    "certain and wrong": Made(np.eye(4)[(np.arange(40) + 1) % 4], np.arange(40) % 4),
    "two rows": Made(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1])),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", EXTREMES)
def test_fits_of_extreme_rows_end_with_sound_rules_that_keep_the_floor(case: str) -> None:
    made = EXTREMES[case]
    before = mean_of(made, made.probabilities.argmax(axis=1).tolist())
    for solver in SOLVERS:
        choice = FitSettings(annealing=SHORT._replace(moves_per_level=40), solver=solver)
        fit = fit_rules(*made, choice)
        weights = fit.rules.weights[fit.rules.functions < 0]
        assert np.isfinite(weights).all(), solver
        assert (weights >= 0).all(), solver
        guesses = fit.rules.predict(prepared(made.probabilities, choice.map))
        assert mean_of(made, guesses.tolist()) >= before - 1e-12, solver


def loss(made: Made, slope: float, biases: FloatArray) -> float:
    """Return the mean over classes of the mean negative log-likelihood of their rows."""
    scores = slope * np.log(made.probabilities) + biases
    scores -= scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    right = logs[np.arange(len(logs)), made.targets]
    return -float(np.mean([right[made.targets == one].mean() for one in np.unique(made.targets)]))


def smallest(function: Callable[[FloatArray], float], start: list[float], *, has_slope: bool = True) -> Any:
    """Minimise by a general optimiser; the first parameter is a slope, which the model bounds by 0.05."""
    bounds: list[tuple[float | None, float | None]] = [(0.05 if has_slope else None, None)]
    bounds += [(None, None)] * (len(start) - 1)
    return minimize(function, np.array(start), bounds=bounds, options={"maxiter": 2000, "maxfun": 10**6}, tol=1e-12)


def best_slope(made: Made, log_weights: FloatArray) -> float:
    """Return the smallest loss with these weights: biases are the slope times their logarithms."""
    return float(smallest(lambda a: loss(made, float(a[0]), a[0] * log_weights), [1.0]).fun)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_of_balanced_weights_a_general_optimiser_finds_no_lower_loss(n_classes: int) -> None:
    made = biased(1, 300, n_classes, skew=0.3)
    found = balanced_log_weights(problem_of(made))
    general = smallest(lambda x: loss(made, float(x[0]), x[1:]), [1.0] + [0.0] * n_classes)
    assert best_slope(made, found) <= general.fun + 1e-6
    slope, biases = general.x[0], general.x[1:]
    np.testing.assert_allclose(found, (biases - biases.mean()) / slope, atol=2e-2)


def test_balanced_weights_stay_finite_whatever_the_size_of_numbers_and_of_a_class_without_rows_are_the_mean() -> None:
    base = biased(2, 200, 3)
    # Where right classes are the least probable, the slope stays positive.
    worst = Made(base.probabilities, base.probabilities.argmin(axis=1))
    found = balanced_log_weights(problem_of(worst))
    general = smallest(lambda b: loss(worst, 0.05, np.array([0.0, *b])), [0.0, 0.0], has_slope=False)
    assert np.isfinite(found).all()
    assert best_slope(worst, found) <= general.fun + 1e-6
    for separated in (biased(1, 60, 3, sharpness=40.0), Made(np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 0]))):
        assert np.isfinite(balanced_log_weights(problem_of(separated))).all()
    scales = 10.0 ** np.random.default_rng(0).integers(-200, 200, size=(200, 1))
    tiny = Made(base.probabilities * scales, base.targets)
    expected = balanced_log_weights(problem_of(base))
    np.testing.assert_allclose(balanced_log_weights(problem_of(tiny)), expected, atol=1e-8)
    # A class without rows gets the mean of the others.
    base = biased(3, 200, 4)
    problem = problem_of(Made(base.probabilities, np.where(base.targets == 1, 0, base.targets)))
    for log_weights in (balanced_log_weights(problem), *(step[0] for step in equalising_steps(problem))):
        assert log_weights[1] == 0
        assert log_weights[[0, 2, 3]].mean() == pytest.approx(0, abs=1e-12)


def test_steps_to_equal_accuracies_and_the_path_are_those_of_plain_loops() -> None:
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
    even, *_ = SOLVERS["coordinate"](problem)
    best = oracle.accuracies(targets, oracle.weighted(rows, even.weights.tolist()), 3)
    assert (1 - oracle.sen(best), -oracle.mean(best)) == pytest.approx(min(values), abs=1e-12)
    # From nothing to the balanced weights in twenty steps, and on to equal accuracies in as many.
    middle, end = balanced_log_weights(problem), np.array(logs)
    points = [np.log(one.weights) for one in SOLVERS["path"](problem)]
    assert len(points) == 40
    for place, point in enumerate(points, start=1):
        expected = min(place, 20) / 20 * middle + max(place - 20, 0) / 20 * (end - middle)
        np.testing.assert_allclose(point - point.max(), expected - expected.max(), atol=1e-9)


@pytest.mark.parametrize(("n_rows", "skew"), [(60, 0.0), (4000, 0.2)])
def test_the_default_lies_between_the_balanced_weights_and_the_best_search(n_rows: int, skew: float) -> None:
    made = biased(2, n_rows, 4, skew=skew)
    problem, targets = problem_of(made), made.targets.tolist()
    values = []
    for candidate in SOLVERS["coordinate"](problem):
        guesses = oracle.weighted(made.probabilities.tolist(), candidate.weights.tolist())
        shares = oracle.accuracies(targets, guesses, 4)
        values.append((1 - oracle.sen(shares), -oracle.mean(shares), candidate.weights))
    searched = np.log(min(values, key=lambda each: each[:2])[2])
    n_rarest = min(oracle.counted(targets, 4))
    trust = n_rarest / (n_rarest + 100)
    (shrunk,) = SOLVERS["shrunk"](problem)
    expected = trust * (searched - searched.mean()) + (1 - trust) * balanced_log_weights(problem)
    found = np.log(shrunk.weights)
    np.testing.assert_allclose(found - found.max(), expected - expected.max(), atol=1e-9)


def every_weight(made: Made, weights: FloatArray, one: int) -> list[float]:
    """Return a weight of one class in every interval between its thresholds, in which no prediction changes."""
    thresholds = set()
    for row, shares in zip((made.probabilities * weights).tolist(), made.probabilities.tolist(), strict=True):
        largest = max(other for place, other in enumerate(row) if place != one)
        if shares[one] > 0 and largest > 0:
            thresholds.add(largest / shares[one])
    marks = sorted(thresholds)
    between = [(low * high) ** 0.5 for low, high in itertools.pairwise(marks) if high > low * (1 + 1e-9)]
    return [marks[0] / 10, *between, marks[-1] * 10]


@every_objective
@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (4, 20)])
def test_at_the_end_of_line_searches_no_single_weight_can_be_improved(
    objective: ObjectiveName, n_classes: int, seed: int
) -> None:
    made = biased(seed, 80, n_classes, sharpness=1.0, skew=0.5)
    # The line searches end with every second candidate, one from each of their starts.
    found = [rules.weights for rules in SOLVERS["coordinate"](problem_of(made, objective))[1::2]]
    assert len(found) == 2
    for weights, one in itertools.product(found, range(n_classes)):
        others = (np.where(np.arange(n_classes) == one, each, weights) for each in every_weight(made, weights, one))
        best = min(value(made, changed, objective) for changed in others)
        assert value(made, weights, objective) <= best + 1e-9, one


@pytest.mark.slow
@every_objective
def test_annealing_finds_the_best_of_all_combinations_and_of_equal_ones_the_higher_mean(
    objective: ObjectiveName,
) -> None:
    # With equally many rows in both classes, several rules give the Gini index 0, at different means.
    rule_set, base = RuleSet(6), biased(0, 100, 2)
    chosen = np.concatenate([np.flatnonzero(base.targets == one)[:12] for one in range(2)])
    made = Made(base.probabilities[chosen], base.targets[chosen])
    rows, targets, weights = made.probabilities.tolist(), made.targets.tolist(), rule_set.weights.tolist()
    found = []
    for numbers in itertools.product(range(25), repeat=2):
        guesses = [oracle.predict(row, numbers, weights) for row in rows]
        shares = oracle.accuracies(targets, guesses, 2)
        found.append((round(oracle.objective(objective, targets, guesses, 2), 9), -round(oracle.mean(shares), 9)))
    problem = problem_of(made, objective, rule_set, Annealing(moves_per_level=30))
    scores = [problem.score(problem.n_right(rules)) for rules in anneal(problem)]
    assert tuple(min(scores)) == pytest.approx(min(found), abs=1e-8)
