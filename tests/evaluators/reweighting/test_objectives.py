"""The objectives, against published and hand-computed values and plain loops."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasboard.ground.columns import IntArray
from evaluators.calibration.reweighting.problem import OBJECTIVES, Counts, DcsWeights, Objective, ObjectiveName
from tests.evaluators.reweighting import oracle

guesses = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=40)
Y = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
GUESSED = [0, 0, 1, 2, 1, 1, 0, 2, 2, 0]


def counts_of(targets: IntArray, predicted: IntArray, n_classes: int) -> Counts:
    pairs = list(zip(targets.tolist(), predicted.tolist(), strict=True))
    right = [sum(pair == (one, one) for pair in pairs) for one in range(n_classes)]
    return Counts(np.array(right, dtype=float), np.array(oracle.counted(predicted.tolist(), n_classes), dtype=float))


def value(name: ObjectiveName, targets: IntArray, predicted: IntArray, n_classes: int, **choices: Any) -> float:
    supports = np.array(oracle.counted(targets.tolist(), n_classes))
    return float(Objective(name, supports, **choices)(counts_of(targets, predicted, n_classes)))


def test_the_names_are_those_of_the_type() -> None:
    assert get_args(ObjectiveName) == OBJECTIVES


def test_the_objective_of_dcs_is_that_worked_out_by_hand() -> None:
    terms = DcsWeights(1.0, 2.7, 0.2, 5.0)
    targets, predicted = np.array(Y), np.array(GUESSED)
    # 4 errors among 10 rows; accuracies 1/2, 2/3, 2/3, whose pairs differ by 1/6, 1/6 and 0: COBias 1/9. Class 0 has
    # 2 right of 4, and 4 predictions; classes 1 and 2 have 2 right of 3 and 3 predictions; k = 5 and N = 3.
    information = [math.log((7 / 55) / (9 / 25 * 9 / 25)), *[math.log((7 / 55) / (8 / 25 * 8 / 25))] * 2]
    wanted = 4 / 10 + 2.7 / 9 - 0.2 * sum(information)
    assert value("dcs", targets, predicted, 3, dcs=terms) == pytest.approx(wanted, abs=1e-12)
    assert oracle.dcs(Y, GUESSED, 3, (1.0, 2.7, 0.2, 5.0)) / 10 == pytest.approx(wanted, abs=1e-12)


def test_the_objective_of_dcs_is_that_of_the_published_case(cases: dict[str, Any]) -> None:
    case = cases["dnip_objective"]
    targets, predicted = np.array(case["y"]), np.array(case["pred"])
    terms = DcsWeights(case["alpha"], case["beta"], case["tau"], case["k"])
    assert value("dcs", targets, predicted, 3, dcs=terms) * len(targets) == pytest.approx(case["z"], abs=1e-9)
    objective = Objective("dcs", np.bincount(targets), dcs=terms)
    np.testing.assert_allclose(objective.pmi(counts_of(targets, predicted, 3)), case["pmi"], atol=1e-12)


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
    assert objective.is_met(Counts(np.array([1.0, 1.0, 1.0]), None))
    assert not objective.is_met(Counts(np.array([1.0, 1.0, 0.0]), None))


def test_only_sen_never_gets_worse_when_a_class_gets_better() -> None:
    supports = np.full(3, 10)
    level, best_better = Counts(np.array([5.0, 5.0, 5.0]), None), Counts(np.array([5.0, 5.0, 10.0]), None)
    worse = {
        name
        for name in ("sen", "gini", "cobias")
        if Objective(name, supports)(best_better) > Objective(name, supports)(level)
    }
    assert worse == {"gini", "cobias"}
    assert [name for name in OBJECTIVES if Objective(name, supports).is_monotone] == ["sen"]


@given(st.lists(st.integers(0, 10), min_size=4, max_size=4), st.integers(0, 3), st.sampled_from([None, 0.3, 0.8]))
def test_sen_never_gets_worse_when_a_class_gets_better(right: list[int], one: int, floor: float | None) -> None:
    objective = Objective("sen", np.full(4, 11), floor)
    better = [*right]
    better[one] += 1
    before, after = (objective(Counts(np.array(each, dtype=float), None)) for each in (right, better))
    assert after <= before + 1e-12


def test_values_of_many_counts_are_those_of_each() -> None:
    supports = np.array([4, 0, 5, 6])
    rng = np.random.default_rng(0)
    right = np.minimum(rng.integers(7, size=(20, 4)), supports).astype(float)
    predicted = rng.multinomial(15, np.full(4, 0.25), size=20).astype(float)
    for name in OBJECTIVES:
        objective = Objective(name, supports, floor=0.4)
        each = [float(objective(Counts(*pair))) for pair in zip(right, predicted, strict=True)]
        np.testing.assert_allclose(objective(Counts(right, predicted)), each, rtol=1e-12)


def test_counts_without_predictions_do_for_all_but_dcs() -> None:
    counts = Counts(np.array([1.0, 2.0]), None)
    for name in OBJECTIVES:
        objective = Objective(name, np.array([2, 2]))
        assert objective.needs_predicted == (name == "dcs")
    with pytest.raises(ValueError, match="count them"):
        Objective("dcs", np.array([2, 2]))(counts)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_single_occurring_class_has_no_bias(name: ObjectiveName) -> None:
    # Rows that are held out can be of one class alone.
    targets = np.array([1, 1, 1, 1])
    better, worse = (value(name, targets, np.array(guess), 3) for guess in ([1, 1, 1, 0], [1, 1, 0, 0]))
    assert math.isfinite(better)
    assert better <= worse
