"""Incremental counts after thousands of random changes of rules, against counting everything anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.rules import RuleSet
from evaluators.calibration.reweighting.top_two import TopTwo
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, tied


class Walk(NamedTuple):
    """A walk through the rules of classes."""

    made: Made
    rule_set: RuleSet
    n_moves: int
    seed: int


def recounted(made: Made, values: FloatArray) -> list[float]:
    """Count the right rows of each class from the whole table of corrected values."""
    n_classes = values.shape[1]
    rows = zip(made.probabilities.tolist(), values.tolist(), strict=True)
    predicted = [oracle.decide(row, of_row) for row, of_row in rows]
    hits = [one for one, target in zip(predicted, made.targets.tolist(), strict=True) if one == target]
    return [float(n) for n in oracle.counted(hits, n_classes)]


def walk(plan: Walk) -> int:
    """Walk at random and compare after every move; return how many rows were decided by their own probabilities."""
    made, rule_set = plan.made, plan.rule_set
    rng = np.random.default_rng(plan.seed)
    n_classes = made.probabilities.shape[1]
    numbers: IntArray = rng.choice(rule_set.numbers, size=n_classes)
    values = rule_set.rules(numbers).transform(made.probabilities)
    top = TopTwo(made.probabilities, made.targets, values)
    order = np.argsort(made.targets, kind="stable")
    n_empty = 0
    for move in range(plan.n_moves):
        one, number = int(rng.integers(n_classes)), int(rng.choice(rule_set.numbers))
        new = values.copy()
        new[:, one] = rule_set.value(number, made.probabilities[:, one])
        expected = recounted(made, new)
        changed = new[order, one]
        assert top.trial(one, changed).tolist() == expected, (plan.seed, move)
        if rng.random() < 0.7:
            top.accept(one, changed)
            values = new
            assert top.n_right().tolist() == expected, (plan.seed, move)
        n_empty += int((~values.any(axis=1)).sum())
    return n_empty


@pytest.mark.parametrize("has_functions", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4, 14])
def test_counts_with_ties_are_those_of_plain_loops(n_classes: int, has_functions: bool) -> None:
    # Multiples of 1 / 8 and weights k / 8 tie in most rows; corners of the functions give zeros.
    n_moves = 300 if n_classes == 14 else 500
    n_empty = walk(Walk(tied(n_classes, 40, n_classes), RuleSet(8, has_functions), n_moves, seed=n_classes))
    assert (n_empty > 0) == has_functions


@pytest.mark.parametrize(("n_classes", "n_moves"), [(2, 400), (4, 400), (14, 300), (50, 100)])
def test_counts_without_ties_are_those_of_plain_loops(n_classes: int, n_moves: int) -> None:
    walk(Walk(biased(7, max(60, 2 * n_classes), n_classes), RuleSet(), n_moves, seed=n_classes))


def test_counts_are_right_when_classes_have_no_rows() -> None:
    made = tied(5, 60, 6)
    some = Made(made.probabilities, np.where(np.isin(made.targets, (0, 3)), 4, made.targets))
    walk(Walk(some, RuleSet(4), 300, seed=1))
    of_last = Made(made.probabilities, np.full(60, 5))
    walk(Walk(of_last, RuleSet(4), 100, seed=2))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 12), st.booleans())
def test_counts_of_small_tables_are_those_of_plain_loops(
    seed: int, n_classes: int, n_rows: int, has_functions: bool
) -> None:
    walk(Walk(tied(seed, n_rows, n_classes, levels=4), RuleSet(4, has_functions), 25, seed))


def test_the_best_of_all_other_classes_is_that_of_plain_loops() -> None:
    made = tied(11, 80, 5)
    order = np.argsort(made.targets, kind="stable")
    top = TopTwo(made.probabilities, made.targets, made.probabilities)
    for one in range(5):
        others = top.others(one)
        for row, (shares, target) in enumerate(zip(made.probabilities[order].tolist(), top.targets, strict=True)):
            rest = [-1.0 if place == one else share for place, share in enumerate(shares)]
            best = oracle.first_largest(rest)
            assert (others.values[row], others.classes[row]) == (rest[best], best)
            assert others.are_right[row] == (best == target)


def test_rows_keep_their_class_in_another_order() -> None:
    made = biased(1, 30, 4)
    top = TopTwo(made.probabilities, made.targets, made.probabilities)
    for one in range(4):
        assert set(top.targets[top.own_rows(one)]) == {one}
    expected = made.probabilities[np.argsort(made.targets, kind="stable")].T
    np.testing.assert_array_equal(top.probabilities, expected)
