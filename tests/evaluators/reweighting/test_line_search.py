"""The exact line search over one weight, against every weight between any two thresholds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasboard.ground.columns import FloatArray
from evaluators.calibration.reweighting.problem import OBJECTIVES, ObjectiveName
from evaluators.calibration.reweighting.solvers import coordinate as solve
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, problem_of, tied


def every_weight(made: Made, weights: FloatArray, one: int) -> list[float]:
    """Return a weight of one class in every interval between its thresholds, in which no prediction changes."""
    values = made.probabilities * weights
    thresholds = []
    for row, shares in zip(values.tolist(), made.probabilities.tolist(), strict=True):
        others = [value for place, value in enumerate(row) if place != one]
        if shares[one] > 0 and max(others) > 0:
            thresholds.append(max(others) / shares[one])
    marks = sorted(set(thresholds))
    apart = [low for low, high in zip(marks, [*marks[1:], np.inf], strict=True) if high > low * (1 + 1e-9)]
    firsts = [marks[0], *[high for low, high in itertools.pairwise(marks) if high > low * (1 + 1e-9)]]
    between = [(low * high) ** 0.5 for low, high in zip(apart, firsts[1:], strict=False)]
    return [marks[0] / 10, *between, marks[-1] * 10]


def value(made: Made, weights: FloatArray, name: ObjectiveName) -> float:
    predicted = oracle.weighted(made.probabilities.tolist(), weights.tolist())
    return oracle.objective(name, made.targets.tolist(), predicted, made.probabilities.shape[1])


def best_by_hand(made: Made, weights: FloatArray, one: int, name: ObjectiveName) -> float:
    tried = []
    for weight in every_weight(made, weights, one):
        changed = weights.copy()
        changed[one] = weight
        tried.append(value(made, changed, name))
    return min(tried)


def ends(made: Made, name: ObjectiveName) -> list[FloatArray]:
    """Return the weights that the search ends with, from each of its starts."""
    candidates = solve(problem_of(made, name)).candidates
    return [one.rules.weights for one in candidates if one.name.startswith("from ")]


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("seed", range(5))
def test_of_two_classes_it_finds_the_best_ratio_of_all(name: ObjectiveName, seed: int) -> None:
    made = biased(seed, 80, 2, sharpness=1.0, skew=0.5)
    best = best_by_hand(made, np.ones(2), 0, name)
    found = ends(made, name)
    assert len(found) == 2
    assert [value(made, weights, name) for weights in found] == pytest.approx([best, best], abs=1e-9)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from(OBJECTIVES))
def test_of_two_classes_it_finds_the_best_ratio_among_ties_and_zeros(seed: int, name: ObjectiveName) -> None:
    made = tied(seed, 15, 2)
    best = best_by_hand(made, np.ones(2), 0, name)
    for weights in ends(made, name):
        assert value(made, weights, name) <= best + 1e-9


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(("n_classes", "seed"), [(3, 0), (3, 1), (4, 20), (5, 3)])
def test_at_the_end_no_single_weight_can_be_improved(name: ObjectiveName, n_classes: int, seed: int) -> None:
    made = biased(seed, 80, n_classes)
    for weights in ends(made, name):
        reached = value(made, weights, name)
        for one in range(n_classes):
            assert reached <= best_by_hand(made, weights, one, name) + 1e-9, one


def test_the_search_never_ends_worse_than_it_starts() -> None:
    for seed in range(10):
        made = biased(seed, 70, 4)
        found = {one.name: one.rules for one in solve(problem_of(made)).candidates}
        for start in ("equal accuracies", "convex"):
            before, after = (value(made, rules.weights, "sen") for rules in (found[start], found[f"from {start}"]))
            assert after <= before + 1e-9


def test_a_class_that_is_never_probable_is_left_alone() -> None:
    made = Made(np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.5, 0.5, 0.0]]), np.array([0, 1, 2]))
    for candidate in solve(problem_of(made)).candidates:
        assert np.isfinite(candidate.rules.weights).all()
        assert candidate.rules.predict(made.probabilities)[:2].tolist() == [0, 1]
