"""Measures of class accuracies: the tables of the paper, cases by hand, plain loops and properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.statistics.class_accuracies import (
    cobias,
    gini_index,
    gini_noise_floor,
    lorenz_curve,
    mean_accuracy,
    quarter_accuracy,
    sen_welfare,
    top_class_dominance,
)
from tests.evaluators.reweighting import oracle

MEASURES: dict[str, Callable[..., Any]] = {
    "mean": mean_accuracy,
    "gini": gini_index,
    "cobias": cobias,
    "sen": sen_welfare,
    "top": top_class_dominance,
}
BY_HAND: list[tuple[list[float], dict[str, float]]] = [
    ([0.8, 0.2, math.nan, 0, 0], {"mean": 1 / 4, "gini": 13 / 20, "cobias": 13 / 30, "sen": 7 / 80, "top": 16 / 5}),
    ([0.4], {"mean": 0.4, "gini": 0.0, "sen": 0.4, "top": 1.0}),
]
accuracy = st.floats(0, 1, allow_subnormal=False)


@pytest.mark.parametrize(("values", "expected"), BY_HAND)
def test_measures_are_those_worked_out_by_hand(values: list[float], expected: dict[str, float]) -> None:
    for name, wanted in expected.items():
        assert float(MEASURES[name](values)) == pytest.approx(wanted, abs=1e-12), name


def test_relative_improvements_follow_from_the_printed_values(cases: dict[str, Any]) -> None:
    for row in cases["relative_improvements"]:
        percent = 100 * abs(row["debiased"] - row["original"]) / row["original"]
        assert round(percent) == row["printed_percent"], row


@pytest.mark.slow
@given(st.integers(2, 100), st.floats(0.01, 1))
def test_the_largest_gini_is_that_of_one_class(n_classes: int, share: float) -> None:
    assert float(gini_index([share] + [0.0] * (n_classes - 1))) == pytest.approx((n_classes - 1) / n_classes)


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=8), st.floats(0.05, 1))
def test_gini_and_cobias_differ_as_table_2_says(values: list[float], factor: float) -> None:
    scaled = [factor * value for value in values]
    assert float(gini_index(scaled)) == pytest.approx(float(gini_index(values)), abs=1e-9)
    assert float(cobias(scaled)) == pytest.approx(factor * float(cobias(values)), abs=1e-9)
    n = len(values)
    extremes = [[1.0] * n_right + [0.0] * (n - n_right) for n_right in range(1, n + 1)]
    assert max(extremes, key=lambda each: float(gini_index(each))) == extremes[0]
    # Rounded, since of five classes two and three are equally far from half.
    largest = max(round(float(cobias(each)), 9) for each in extremes)
    assert largest == round(float(cobias(extremes[n // 2 - 1])), 9)


def test_measures_are_those_of_the_case_file(cases: dict[str, Any]) -> None:
    for case in cases["tables"]:
        for name, measure in MEASURES.items():
            wanted = case["expected"]["top_rel" if name == "top" else name]
            assert measure(case["class_acc"]) == pytest.approx(wanted, abs=1e-12), (case["id"], name)
    for case in cases["properties"]:
        for name in MEASURES.keys() & case.keys():
            assert MEASURES[name](case["class_acc"]) == pytest.approx(case[name], abs=1e-12), (case["id"], name)
    for row in cases["table7"]["rows"]:
        # Equation 5, with 100 classes.
        found = row["cobias"] * 99 / 200 / row["mean"]
        assert found == pytest.approx(row["implied"], abs=1e-12)
        assert found == pytest.approx(float(row["printed_gini"]), abs=0.0051)
    for case in cases["noise_floor"]:
        size = case["N"]
        found = float(gini_noise_floor(np.full(size, case["p"]), np.full(size, case["n_per_class"])))
        assert found == pytest.approx(case["value"], abs=1e-9)


@given(st.lists(accuracy, min_size=1, max_size=10))
def test_twice_the_area_between_lorenz_curve_and_diagonal_is_the_gini_index(values: list[float]) -> None:
    shares, of_sum = lorenz_curve(values)
    if math.isnan(oracle.gini(values)):
        assert np.isnan(of_sum).all()
        return
    assert (shares[0], shares[-1], of_sum[0]) == (0, 1, 0)
    assert of_sum[-1] == pytest.approx(1)
    assert (of_sum <= shares + 1e-9).all()
    area = sum((of_sum[i] + of_sum[i + 1]) / 2 * (shares[i + 1] - shares[i]) for i in range(len(values)))
    assert 2 * (0.5 - area) == pytest.approx(oracle.gini(values), abs=1e-9)


def test_quarters_of_classes_are_means_of_their_sorted_accuracies() -> None:
    # A class in two quarters counts by its part of each, and one without items not at all.
    three = [quarter_accuracy([0.9, math.nan, 0.1, 0.5], quarter) for quarter in range(4)]
    assert three == pytest.approx([0.1, (0.1 + 2 * 0.5) / 3, (2 * 0.5 + 0.9) / 3, 0.9])
    assert np.isnan(quarter_accuracy([math.nan] * 2, 0))


def test_the_noise_floor_of_unequal_classes_is_what_chance_gives() -> None:
    unequal, shares = np.array([40, 80, 400, 2000, 0]), np.array([0.7, 0.7, 0.7, 0.7, math.nan])
    drawn = np.random.default_rng(4).binomial(unequal[:4], 0.7, size=(20_000, 4)) / unequal[:4]
    assert float(gini_noise_floor(shares, unequal)) == pytest.approx(float(gini_index(drawn).mean()), rel=0.02)
