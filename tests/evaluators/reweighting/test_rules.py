"""Weights and membership functions, the objectives on what they predict, and counts that follow single changes."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasboard.ground.columns import IntArray
from evaluators.calibration.reweighting.problem import Objective, ObjectiveName
from evaluators.calibration.reweighting.rules import N_FUNCTIONS, TRIANGLES, RuleSet, membership, prepared
from evaluators.calibration.reweighting.top_two import TopTwo
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, tied

FULL = RuleSet()


def test_every_rule_has_its_published_number() -> None:
    assert [*TRIANGLES] == oracle.TRIANGLES
    assert (N_FUNCTIONS, TRIANGLES[17]) == (19, (1, 1))
    assert (FULL.n_rules, RuleSet(12).n_rules) == (49, 19 + 12)
    np.testing.assert_allclose(FULL.weights, oracle.weights(30), rtol=1e-15)


def test_functions_and_predictions_are_those_of_the_published_cases(cases: dict[str, Any]) -> None:
    rules = cases["membership"]["rules"]
    assert [rule["code_id"] for rule in rules] == list(range(19))
    points = np.array(cases["membership"]["points"], dtype=float)
    for rule in rules:
        number = rule["code_id"]
        assert TRIANGLES[number] == (rule["L"], rule["i"])
        corners = membership(number, np.array([rule["a"], rule["b"], rule["c"]]))
        assert corners.max() == corners[1] == 1
        np.testing.assert_array_equal(membership(number, points), rule["values"])
    for case in cases["predictions"]:
        of_case, rows = RuleSet(case["K"]).rules(np.array(case["xi"])), np.array(case["P"])
        np.testing.assert_allclose(of_case.transform(rows), case["corrected_before_fallback"], atol=1e-12)
        assert of_case.predict(rows).tolist() == case["pred"], case["id"]


@pytest.mark.parametrize(
    ("rules", "row", "values", "predicted"),
    [
        ([18, 17, 17], [0.9, 0.06, 0.04], [0.1, 0.06, 0.04], 0),
        # The right shoulder at level 8 is 0 below 7/8: the row itself decides, and of equal ones the first.
        ([16, 16, 16], [0.4, 0.4, 0.2], [0.0, 0.0, 0.0], 0),
        ([16, 16, 16], [0.04, 0.0, 0.96], [0.0, 0.0, 0.68], 2),
        # Weights of 1/2 and 1: half of one half is one quarter.
        ([33, 48, 48], [0.5, 0.25, 0.25], [0.25, 0.25, 0.25], 0),
    ],
)
def test_predictions_are_those_worked_out_by_hand(
    rules: list[int], row: list[float], values: list[float], predicted: int
) -> None:
    found, rows = FULL.rules(np.array(rules)), np.array([row])
    np.testing.assert_allclose(found.transform(rows), [values], atol=1e-12)
    assert found.predict(rows).tolist() == [predicted]
    shares = np.array(values if any(values) else row)
    np.testing.assert_allclose(found.shares(rows)[0], shares / shares.sum())


def test_rows_are_divided_by_their_sums_unless_rounding_alone_is_off() -> None:
    rows = np.array([[0.25, 0.25], [0.5, 0.5000005], [0.5, 0.50001], [3.0, 1.0], [0.0, 0.0]])
    found = prepared(rows, "full")
    np.testing.assert_array_equal(found[[0, 1, 3, 4]], [[0.5, 0.5], [0.5, 0.5000005], [0.75, 0.25], [0.0, 0.0]])
    assert found[2].sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(prepared(rows, "weights"), rows)


def objective(name: ObjectiveName, targets: list[int], predicted: list[int], n_classes: int, **choices: Any) -> float:
    pairs = [*zip(targets, predicted, strict=True)]
    right = np.array([pairs.count((one, one)) for one in range(n_classes)], dtype=float)
    return float(Objective(name, np.array(oracle.counted(targets, n_classes)), **choices)(right))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=40))
def test_objectives_are_those_of_plain_loops(pairs: list[tuple[int, int]]) -> None:
    targets, predicted = [0, 1, *(pair[0] for pair in pairs)], [0, 0, *(pair[1] for pair in pairs)]
    for name in get_args(ObjectiveName):
        expected = oracle.objective(name, targets, predicted, 4)
        assert objective(name, targets, predicted, 4) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", get_args(ObjectiveName))
def test_nothing_is_worse_than_being_never_right_and_a_mean_below_the_floor(name: ObjectiveName) -> None:
    for floor in (None, 0.5):
        assert objective(name, [0, 1, 2, 2], [1, 2, 0, 0], 3, floor=floor) == math.inf
        assert objective(name, [0, 1, 2, 2], [0, 0, 0, 0], 3, floor=floor) < math.inf
    free = objective(name, [0, 0, 1, 1], [0, 1, 1, 1], 2)
    for floor, cost in ((0.75, 0.0), (0.85, 1.0)):
        assert objective(name, [0, 0, 1, 1], [0, 1, 1, 1], 2, floor=floor) == pytest.approx(free + cost)
    # A single class has no bias.
    better, worse = (objective(name, [1] * 4, guess, 3) for guess in ([1, 1, 1, 0], [1, 1, 0, 0]))
    assert better <= worse < math.inf


def test_the_floor_counts_as_kept_despite_rounding() -> None:
    for floor in (1 / 3, np.nextafter(1 / 3, 1)):
        kept = Objective("sen", np.array([3, 3, 3]), floor=float(floor))
        assert kept.is_met(np.array([1.0, 1.0, 1.0]))
        assert not kept.is_met(np.array([1.0, 1.0, 0.0]))


def walk(made: Made, rule_set: RuleSet, n_moves: int, seed: int) -> int:
    """Change rules at random and compare after every move; return how many rows decided by their own probabilities."""
    rng = np.random.default_rng(seed)
    n_classes = made.probabilities.shape[1]
    numbers: IntArray = rng.integers(rule_set.n_rules, size=(n_classes,))
    values = rule_set.rules(numbers).transform(made.probabilities)
    top, order = TopTwo(made.probabilities, made.targets, values), np.argsort(made.targets, kind="stable")
    rows, targets, n_empty = made.probabilities.tolist(), made.targets.tolist(), 0
    for move in range(n_moves):
        one, number = int(rng.integers(n_classes)), int(rng.integers(rule_set.n_rules))
        new = values.copy()
        new[:, one] = rule_set.value(number, made.probabilities[:, one])
        right = [
            target
            for row, corrected, target in zip(rows, new.tolist(), targets, strict=True)
            if oracle.decide(row, corrected) == target
        ]
        expected = [float(n) for n in oracle.counted(right, n_classes)]
        assert top.trial(one, new[order, one]).tolist() == expected, (seed, move)
        if rng.random() < 0.7:
            top.accept(one, new[order, one])
            values = new
            assert top.n_right().tolist() == expected, (seed, move)
        n_empty += int((~values.any(axis=1)).sum())
    return n_empty


@pytest.mark.parametrize("n_classes", [2, 5])
def test_counts_with_and_without_ties_are_those_of_plain_loops(n_classes: int) -> None:
    # Multiples of 1 / 8 and weights k / 8 tie in most rows; corners of the functions give zeros.
    assert walk(tied(n_classes, 40, n_classes), RuleSet(8), 150, seed=n_classes) > 0
    walk(biased(7, 60, n_classes), FULL, 100, seed=n_classes)
    # Some classes have no rows.
    made = tied(5, 60, 6)
    walk(made._replace(targets=np.where(np.isin(made.targets, (0, 3)), 4, made.targets)), RuleSet(4), 100, seed=1)
