"""Weights and membership functions: the published numbers, the closed form at every point, ties and rows of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evaluators.calibration.reweighting.rules import N_FUNCTIONS, TRIANGLES, ClassRules, RuleSet, prepared
from tests.evaluators.reweighting import oracle

POINTS = np.sort(np.concatenate([np.arange(8001) / 8000, np.random.default_rng(0).random(9)]))
"""8,010 points from 0 to 1, all corners among them."""
SHARES = arrays.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=st.integers(0, 8).map(float))
FULL = RuleSet()


def test_there_are_nineteen_functions_in_the_published_order() -> None:
    assert [(one.level, one.position) for one in TRIANGLES] == oracle.TRIANGLES
    assert N_FUNCTIONS == 19
    assert TRIANGLES[17] == (1, 1)


@pytest.mark.parametrize("number", range(19))
def test_the_closed_form_is_the_triangle_at_every_point(number: int) -> None:
    assert len(POINTS) == 8010
    found = TRIANGLES[number](POINTS)
    expected = [oracle.membership(number, point) for point in POINTS.tolist()]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert found.min() >= 0
    assert found.max() == 1


def test_functions_are_those_of_the_published_cases(cases: dict[str, Any]) -> None:
    points = np.array(cases["membership"]["points"], dtype=np.float64)
    rules = cases["membership"]["rules"]
    assert [rule["code_id"] for rule in rules] == list(range(19))
    for rule in rules:
        triangle = TRIANGLES[rule["code_id"]]
        assert (triangle.level, triangle.position) == (rule["L"], rule["i"])
        assert (
            triangle(np.array([rule["a"], rule["b"], rule["c"]])).max() == triangle(np.array([rule["b"]])).item() == 1
        )
        np.testing.assert_array_equal(triangle(points), rule["values"])


def test_predictions_are_those_of_the_published_cases(cases: dict[str, Any]) -> None:
    for case in cases["predictions"]:
        rules = RuleSet(case["K"]).rules(np.array(case["xi"]))
        rows = np.array(case["P"])
        np.testing.assert_allclose(rules.transform(rows), case["corrected_before_fallback"], atol=1e-12)
        assert rules.predict(rows).tolist() == case["pred"], case["id"]


@pytest.mark.parametrize(
    ("rules", "row", "values", "predicted"),
    [
        ([48, 48, 48], [0.6, 0.3, 0.1], [0.6, 0.3, 0.1], 0),
        ([17, 17, 17], [0.2, 0.5, 0.3], [0.2, 0.5, 0.3], 1),
        ([18, 17, 17], [0.9, 0.06, 0.04], [0.1, 0.06, 0.04], 0),
        # The right shoulder at level 8 is 0 below 7/8: the row itself decides, and of equal ones the first.
        ([16, 16, 16], [0.4, 0.4, 0.2], [0.0, 0.0, 0.0], 0),
        ([16, 16, 16], [0.1, 0.4, 0.5], [0.0, 0.0, 0.0], 2),
        ([16, 16, 16], [0.04, 0.0, 0.96], [0.0, 0.0, 0.68], 2),
        # Weights of 1/2 and 1: half of one half is one quarter.
        ([33, 48, 48], [0.5, 0.25, 0.25], [0.25, 0.25, 0.25], 0),
        ([48, 48, 33], [0.25, 0.25, 0.5], [0.25, 0.25, 0.25], 0),
    ],
)
def test_predictions_are_those_worked_out_by_hand(
    rules: list[int], row: list[float], values: list[float], predicted: int
) -> None:
    found = FULL.rules(np.array(rules))
    np.testing.assert_allclose(found.transform(np.array([row])), [values], atol=1e-12)
    assert found.predict(np.array([row])).tolist() == [predicted]


def test_every_rule_of_a_set_has_its_published_number() -> None:
    assert FULL.numbers.tolist() == list(range(49))
    assert RuleSet(has_functions=False).numbers.tolist() == list(range(19, 49))
    assert (FULL.identity, RuleSet(12).identity) == (48, 19 + 11)
    np.testing.assert_allclose(FULL.weights, oracle.weights(30), rtol=1e-15)
    assert FULL.weights[-1] == 1


@given(SHARES, st.lists(st.integers(0, 48), min_size=4, max_size=4))
def test_predictions_are_those_of_plain_loops(shares: np.ndarray, numbers: list[int]) -> None:
    rows = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
    rules = FULL.rules(np.array(numbers))
    of_weights = FULL.weights.tolist()
    expected = [oracle.corrected(row, numbers, of_weights) for row in rows.tolist()]
    np.testing.assert_allclose(rules.transform(rows), expected, atol=1e-14)
    # The oracle decides about the same values: what rounding ties is not its matter.
    values = rules.transform(rows).tolist()
    assert rules.predict(rows).tolist() == [oracle.decide(*pair) for pair in zip(rows.tolist(), values, strict=True)]


@given(SHARES, st.lists(st.integers(0, 48), min_size=4, max_size=4))
def test_shares_sum_to_one_and_have_the_same_winner(shares: np.ndarray, numbers: list[int]) -> None:
    rows = (shares + 1) / (shares + 1).sum(axis=1, keepdims=True)
    rules = FULL.rules(np.array(numbers))
    found = rules.shares(rows)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found >= 0).all()
    winners = found[np.arange(len(rows)), rules.predict(rows)]
    assert (winners >= found.max(axis=1) - 1e-12).all()


def test_shares_of_a_row_without_values_are_the_row() -> None:
    rules = FULL.rules(np.array([16, 16, 16]))
    found = rules.shares(np.array([[0.4, 0.4, 0.2], [0.04, 0.0, 0.96]]))
    np.testing.assert_allclose(found, [[0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])


def test_one_rule_at_a_time_gives_what_all_rules_give() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(5), size=50)
    numbers = np.array([3, 20, 48, 18, 31])
    expected = np.column_stack([FULL.value(int(one), rows[:, place]) for place, one in enumerate(numbers)])
    np.testing.assert_array_equal(FULL.rules(numbers).transform(rows), expected)


def test_weights_are_scaled_so_that_the_largest_is_one() -> None:
    rules = ClassRules.of_weights(np.array([2.0, 8.0, 4.0]))
    assert rules.weights.tolist() == [0.25, 1.0, 0.5]
    assert not rules.has_functions
    assert FULL.rules(np.array([48, 3])).has_functions


def test_rows_are_divided_by_their_sums_unless_rounding_alone_is_off() -> None:
    rows = np.array([[0.25, 0.25], [0.5, 0.5000005], [0.5, 0.50001], [3.0, 1.0], [0.0, 0.0]])
    found = prepared(rows, "full")
    np.testing.assert_array_equal(found[[0, 1, 3, 4]], [[0.5, 0.5], [0.5, 0.5000005], [0.75, 0.25], [0.0, 0.0]])
    assert found[2].sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(prepared(rows, "weights"), rows)
