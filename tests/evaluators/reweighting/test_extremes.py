"""Probabilities that are hardly any: next to nothing, exactly zero, of any sum, all alike, or of very few rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evaluators.calibration.reweighting.fitting import FitSettings, fit_rules
from evaluators.calibration.reweighting.problem import OBJECTIVES, Annealing, ObjectiveName
from evaluators.calibration.reweighting.rules import prepared
from evaluators.calibration.reweighting.solvers import SOLVERS
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased

SHORT = Annealing(cooling=0.75, stop_ratio=1e-2, moves_per_level=40, n_restarts=1)


def scaled(factor: float, *, of_column: int | None = None) -> Made:
    made = biased(0, 200, 4)
    factors = np.full(4, factor) if of_column is None else np.where(np.arange(4) == of_column, factor, 1.0)
    return Made(made.probabilities * factors, made.targets)


def with_zeros() -> Made:
    probabilities, targets = biased(0, 200, 4)
    probabilities[::2, 1] = 0
    probabilities[1::3, 0] = 0
    return Made(probabilities, targets)


def near_the_smallest_number() -> Made:
    probabilities, targets = biased(0, 200, 4)
    probabilities[:3] = [[1, 5e-324, 0, 0], [5e-324, 1e-310, 1, 0], [0, 0, 5e-324, 0]]
    return Made(probabilities, targets)


def of_any_sum() -> Made:
    probabilities, targets = biased(0, 200, 4)
    return Made(probabilities * np.resize([7.0, 1.0, 1e-9], 200)[:, None], targets)


def twins() -> Made:
    probabilities, targets = biased(0, 200, 2)
    return Made(np.repeat(probabilities, 2, axis=1), 2 * targets + np.arange(200) % 2)


CASES: dict[str, Callable[[], Made]] = {
    "a column of 1e-300": lambda: scaled(1e-300, of_column=1),
    "a column of zeros": lambda: scaled(0.0, of_column=1),
    "some zeros": with_zeros,
    "all tiny": lambda: scaled(1e-310),
    "all huge": lambda: scaled(1e300),
    "the smallest numbers": near_the_smallest_number,
    "rows of any sum": of_any_sum,
    "identical columns": twins,
    "identical rows": lambda: Made(np.full((40, 4), 0.25), np.arange(40) % 4),
    "certain and right": lambda: Made(np.eye(4)[np.arange(40) % 4], np.arange(40) % 4),
    "certain and wrong": lambda: Made(np.eye(4)[(np.arange(40) + 1) % 4], np.arange(40) % 4),
    "two rows": lambda: Made(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1])),
    "two equal rows": lambda: Made(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1])),
    "a row for each of 50 classes": lambda: Made(np.random.default_rng(0).dirichlet(np.ones(50), 50), np.arange(50)),
}


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("case", CASES)
def test_fits_end_with_sound_rules_that_keep_the_floor(case: str, objective: ObjectiveName) -> None:
    made = CASES[case]()
    n_classes = made.probabilities.shape[1]
    targets = made.targets.tolist()
    before = oracle.mean(oracle.accuracies(targets, made.probabilities.argmax(axis=1).tolist(), n_classes))
    for solver in SOLVERS:
        settings = FitSettings(objective=objective, annealing=SHORT, solver=solver)
        fit = fit_rules(made.probabilities, made.targets, settings)
        weights = fit.rules.weights[fit.rules.functions < 0]
        assert np.isfinite(weights).all(), solver
        assert (weights >= 0).all(), solver
        predicted = fit.rules.predict(prepared(made.probabilities, settings.map))
        after = oracle.mean(oracle.accuracies(targets, predicted.tolist(), n_classes))
        assert after >= before - 1e-12, solver


def test_numbers_of_any_size_are_corrected_as_well_as_shares() -> None:
    # Products of the probabilities of tokens are that small, and unequal in length.
    made = biased(2, 400, 4)
    tiny = Made(made.probabilities * 10.0 ** -np.random.default_rng(0).integers(10, 200, size=(400, 1)), made.targets)
    for solver in ("shrunk", "convex", "coordinate", "path"):
        settings = FitSettings(solver=solver)
        one, other = (fit_rules(*some, settings).rules.predict(made.probabilities) for some in (made, tiny))
        assert (one == other).mean() > 0.99, solver


@pytest.mark.slow
def test_weights_do_not_drift_apart_where_no_weight_is_enough() -> None:
    # A class that is never the likeliest pulls its weight up in every sweep.
    for seed in range(6):
        made = biased(seed, 300, 6, bias=6.0, sharpness=0.3)
        for objective in OBJECTIVES:
            settings = FitSettings(solver="coordinate", objective=objective, has_floor=False)
            weights = fit_rules(*made, settings).rules.weights
            assert weights.min() > 1e-13, (seed, objective)
