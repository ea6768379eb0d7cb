"""The objectives, against published and hand-computed values and plain loops."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.problem import OBJECTIVES, Objective, ObjectiveName
from tests.evaluators.reweighting import oracle

guesses = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=40)


def right_of(targets: IntArray, predicted: IntArray, n_classes: int) -> FloatArray:
    pairs = list(zip(targets.tolist(), predicted.tolist(), strict=True))
    return np.array([sum(pair == (one, one) for pair in pairs) for one in range(n_classes)], dtype=float)


def value(name: ObjectiveName, targets: IntArray, predicted: IntArray, n_classes: int, **choices: Any) -> float:
    supports = np.array(oracle.counted(targets.tolist(), n_classes))
    return float(Objective(name, supports, **choices)(right_of(targets, predicted, n_classes)))


def test_the_names_are_those_of_the_type() -> None:
    assert get_args(ObjectiveName) == OBJECTIVES


@given(guesses)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_values_are_those_of_plain_loops(name: ObjectiveName, pairs: list[tuple[int, int]]) -> None:
    targets = np.array([0, 1, *[pair[0] for pair in pairs]])
    predicted = np.array([0, 0, *[pair[1] for pair in pairs]])
    expected = oracle.objective(name, targets.tolist(), predicted.tolist(), 4)
    assert value(name, targets, predicted, 4) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_nothing_is_worse_than_being_never_right(name: ObjectiveName) -> None:
    targets = np.array([0, 1, 2, 2])
    for floor in (None, 0.5):
        assert value(name, targets, np.array([1, 2, 0, 0]), 3, floor=floor) == math.inf
        assert value(name, targets, np.array([0, 0, 0, 0]), 3, floor=floor) < math.inf


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_mean_below_the_floor_costs_ten_times_the_distance(name: ObjectiveName) -> None:
    targets, predicted = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    free = value(name, targets, predicted, 2)
    assert value(name, targets, predicted, 2, floor=0.75) == pytest.approx(free)
    assert value(name, targets, predicted, 2, floor=0.85) == pytest.approx(free + 1.0)


def test_the_floor_counts_as_kept_despite_rounding() -> None:
    objective = Objective("sen", np.array([3, 3, 3]), floor=1 / 3)
    assert objective.is_met(np.array([1.0, 1.0, 1.0]))
    assert not objective.is_met(np.array([1.0, 1.0, 0.0]))


def test_only_sen_never_gets_worse_when_a_class_gets_better() -> None:
    supports = np.full(3, 10)
    level, best_better = np.array([5.0, 5.0, 5.0]), np.array([5.0, 5.0, 10.0])
    worse = {name for name in OBJECTIVES if Objective(name, supports)(best_better) > Objective(name, supports)(level)}
    assert worse == {"gini"}
    assert [name for name in OBJECTIVES if Objective(name, supports).is_monotone] == ["sen"]


@given(st.lists(st.integers(0, 10), min_size=4, max_size=4), st.integers(0, 3), st.sampled_from([None, 0.3, 0.8]))
def test_sen_never_gets_worse_when_a_class_gets_better(right: list[int], one: int, floor: float | None) -> None:
    objective = Objective("sen", np.full(4, 11), floor)
    better = [*right]
    better[one] += 1
    before, after = (objective(np.array(each, dtype=float)) for each in (right, better))
    assert after <= before + 1e-12


def test_values_of_many_counts_are_those_of_each() -> None:
    supports = np.array([4, 0, 5, 6])
    rng = np.random.default_rng(0)
    right = np.minimum(rng.integers(7, size=(20, 4)), supports).astype(float)
    for name in OBJECTIVES:
        objective = Objective(name, supports, floor=0.4)
        each = [float(objective(of_each)) for of_each in right]
        np.testing.assert_allclose(objective(right), each, rtol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_single_occurring_class_has_no_bias(name: ObjectiveName) -> None:
    targets = np.array([1, 1, 1, 1])
    better, worse = (value(name, targets, np.array(guess), 3) for guess in ([1, 1, 1, 0], [1, 1, 0, 0]))
    assert math.isfinite(better)
    assert better <= worse
