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
    class_accuracies,
    cobias,
    gini_index,
    gini_noise_floor,
    gini_of_cobias,
    lorenz_curve,
    mean_accuracy,
    mean_difference,
    sen_welfare,
    top_class_dominance,
)
from tests.evaluators.reweighting import oracle

MEASURES: dict[str, Callable[..., Any]] = {
    "mean": mean_accuracy,
    "gini": gini_index,
    "cobias": cobias,
    "sen": sen_welfare,
    "top_rel": top_class_dominance,
}
ORACLES: dict[str, Callable[[list[float]], float]] = {
    "mean": oracle.mean,
    "gini": oracle.gini,
    "cobias": oracle.cobias,
    "sen": oracle.sen,
    "top_rel": oracle.dominance,
}
PRINTED_WITHIN = 0.0051
"""Tolerance of a table that prints two decimals; the paper rounds one COBias of .065 down."""
BY_HAND: list[tuple[list[float], dict[str, float]]] = [
    ([1, 0, 0, 0], {"mean": 1 / 4, "gini": 3 / 4, "cobias": 1 / 2, "sen": 1 / 16, "top_rel": 4}),
    ([0.8, 0.2, 0, 0], {"mean": 1 / 4, "gini": 13 / 20, "cobias": 13 / 30, "sen": 7 / 80, "top_rel": 16 / 5}),
    ([1, 1, 0, 0], {"mean": 1 / 2, "gini": 1 / 2, "cobias": 2 / 3, "sen": 1 / 4, "top_rel": 2}),
    ([0.9, 0.5], {"mean": 0.7, "gini": 1 / 7, "cobias": 0.4, "sen": 0.6, "top_rel": 9 / 7}),
    ([0.85, 0.98, 0.97, 0.19], {"mean": 299 / 400, "gini": 249 / 1196, "cobias": 83 / 200, "sen": 947 / 1600}),
    ([0, 0.87, 0.03, 0.04, 0.2], {"mean": 57 / 250, "gini": 191 / 285, "cobias": 191 / 500, "sen": 47 / 625}),
    ([0.4], {"mean": 0.4, "gini": 0.0, "sen": 0.4, "top_rel": 1.0}),
]
accuracy = st.floats(0, 1, allow_subnormal=False)
some_accuracies = st.lists(accuracy, min_size=1, max_size=8)


@pytest.mark.parametrize(("values", "expected"), BY_HAND)
def test_measures_are_those_worked_out_by_hand(values: list[float], expected: dict[str, float]) -> None:
    for name, wanted in expected.items():
        assert MEASURES[name](values) == pytest.approx(wanted, abs=1e-12), name
        assert ORACLES[name](values) == pytest.approx(wanted, abs=1e-12), name


def test_measures_are_those_of_the_published_tables(cases: dict[str, Any]) -> None:
    checked = 0
    for case in cases["tables"]:
        for name, measure in MEASURES.items():
            assert measure(case["class_acc"]) == pytest.approx(case["expected"][name], abs=1e-12), (case["id"], name)
        for name, told in case["printed"].items():
            of_name = {"top_dominance": "top_rel", "top": "top_rel"}.get(name, name)
            found = float(MEASURES[of_name](case["class_acc"]))
            assert abs(found - float(told["printed"])) <= (PRINTED_WITHIN if told["decimals"] == 2 else 0.051)
            checked += 1
    assert checked == 29
    for case in cases["properties"]:
        for name in MEASURES.keys() & case.keys():
            assert MEASURES[name](case["class_acc"]) == pytest.approx(case[name], abs=1e-12), (case["id"], name)


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


def test_relative_improvements_follow_from_the_printed_values(cases: dict[str, Any]) -> None:
    for row in cases["relative_improvements"]:
        percent = 100 * abs(row["debiased"] - row["original"]) / row["original"]
        assert round(percent) == row["printed_percent"], row


def test_a_table_without_class_accuracies_agrees_with_itself(cases: dict[str, Any]) -> None:
    for row in cases["table7"]["rows"]:
        found = float(gini_of_cobias(row["cobias"], row["mean"], 100))
        assert found == pytest.approx(row["implied"], abs=1e-12)
        assert abs(found - float(row["printed_gini"])) <= PRINTED_WITHIN


def test_accuracies_of_released_supports_give_the_accuracy_over_all_rows(cases: dict[str, Any]) -> None:
    supports = cases["ddi"]["test_support"]
    tables = {case["id"]: case["class_acc"] for case in cases["tables"]}
    for name, wanted in (("T4_DDI_orig", "micro_before"), ("T6_DDI_deb", "micro_after")):
        shares = tables[name]
        micro = sum(n * share for n, share in zip(supports, shares, strict=True)) / sum(supports)
        assert micro == pytest.approx(cases["ddi"][wanted], abs=5e-3)


@given(some_accuracies)
def test_measures_are_those_of_plain_loops(values: list[float]) -> None:
    for name, measure in MEASURES.items():
        assert float(measure(values)) == pytest.approx(ORACLES[name](values), abs=1e-9, nan_ok=True), name


@given(some_accuracies, st.integers(0, 8))
def test_a_class_without_rows_is_left_out(values: list[float], place: int) -> None:
    with_gap = [*values[:place], math.nan, *values[place:]]
    for name, measure in MEASURES.items():
        assert float(measure(with_gap)) == pytest.approx(float(measure(values)), abs=1e-12, nan_ok=True), name


@given(st.lists(accuracy, min_size=2, max_size=8))
def test_the_measures_hang_together(values: list[float]) -> None:
    n, mean, difference = len(values), float(mean_accuracy(values)), float(mean_difference(values))
    assert float(cobias(values)) == pytest.approx(difference * 2 * n / (n - 1), abs=1e-12)
    assert float(sen_welfare(values)) == pytest.approx(mean - difference, abs=1e-12)
    if mean > 1e-9:
        assert float(gini_index(values)) == pytest.approx((n - 1) / (2 * n) * float(cobias(values)) / mean, abs=1e-9)
        assert float(sen_welfare(values)) == pytest.approx(mean * (1 - float(gini_index(values))), abs=1e-12)
        assert float(gini_of_cobias(cobias(values), mean, n)) == pytest.approx(float(gini_index(values)), abs=1e-9)


@given(st.integers(2, 100), st.floats(0.01, 1))
def test_the_largest_gini_is_that_of_one_class(n_classes: int, share: float) -> None:
    assert float(gini_index([share] + [0.0] * (n_classes - 1))) == pytest.approx((n_classes - 1) / n_classes)


@given(st.lists(accuracy, min_size=2, max_size=8), st.integers(0, 7), accuracy)
def test_sen_welfare_rises_with_every_class(values: list[float], place: int, raised: float) -> None:
    place %= len(values)
    better = [*values]
    better[place] = max(raised, values[place])
    assert float(sen_welfare(better)) >= float(sen_welfare(values)) - 1e-12


@given(st.lists(accuracy, min_size=2, max_size=8), st.integers(0, 7), accuracy, st.floats(0, 0.5))
def test_mean_less_cobias_rises_with_every_class_up_to_one_half(
    values: list[float], place: int, raised: float, share: float
) -> None:
    place %= len(values)
    better = [*values]
    better[place] = max(raised, values[place])
    before, after = (float(mean_accuracy(one)) - share * float(cobias(one)) for one in (values, better))
    assert after >= before - 1e-12


@pytest.mark.parametrize("share", [0.51, 1.0, 2.7])
def test_beyond_one_half_it_pays_to_break_the_best_class(share: float) -> None:
    before, after = [0.5, 0.5, 0.6], [0.5, 0.5, 0.55]
    assert mean_accuracy(after) - share * cobias(after) > mean_accuracy(before) - share * cobias(before)


def test_gini_rewards_levelling_down_and_sen_does_not() -> None:
    before, after = [0.85, 0.98, 0.85, 0.85], [0.85, 0.85, 0.85, 0.85]
    assert float(gini_index(before)) == pytest.approx(0.02762039660056657, abs=1e-12)
    assert float(gini_index(after)) == 0
    assert (float(sen_welfare(before)), float(sen_welfare(after))) == pytest.approx((0.858125, 0.85))


def test_a_classifier_that_is_never_right_has_no_gini() -> None:
    for name in ("gini", "top_rel"):
        assert math.isnan(float(MEASURES[name]([0.0, 0.0, 0.0]))), name
    assert float(sen_welfare([0.0, 0.0])) == 0


def test_measures_take_many_classifiers_at_once() -> None:
    rows = np.random.default_rng(1).random((5, 3, 6))
    rows[2, 1, 4] = math.nan
    for name, measure in MEASURES.items():
        expected = [[ORACLES[name](row) for row in block] for block in rows.tolist()]
        np.testing.assert_allclose(measure(rows), expected, err_msg=name)


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


def test_the_noise_floor_is_its_formula(cases: dict[str, Any]) -> None:
    for case in cases["noise_floor"]:
        rows = np.full(case["N"], case["n_per_class"])
        found = gini_noise_floor(np.full(case["N"], case["p"]), rows)
        assert float(found) == pytest.approx(case["value"], abs=1e-9)


@pytest.mark.parametrize(("p", "n", "n_classes", "wanted"), [(0.69, 100, 100, 0.0374), (0.88, 1250, 4, 0.0044)])
def test_the_noise_floor_is_what_chance_gives(p: float, n: int, n_classes: int, wanted: float) -> None:
    assert oracle.noise_floor(p, n, n_classes) == pytest.approx(wanted, abs=5e-5)
    floor = float(gini_noise_floor(np.full(n_classes, p), np.full(n_classes, n)))
    assert floor == pytest.approx(wanted, abs=5e-5)
    drawn = np.random.default_rng(3).binomial(n, p, size=(2000, n_classes)) / n
    simulated = np.array([oracle.gini(row) for row in drawn[:60].tolist()] if n_classes > 50 else gini_index(drawn))
    assert simulated.mean() == pytest.approx(floor, abs=4 * simulated.std() / math.sqrt(len(simulated)) + 2e-4)


def test_the_noise_floor_of_unequal_classes_is_what_chance_gives() -> None:
    supports = np.array([40, 80, 400, 2000, 0])
    shares = np.array([0.7, 0.7, 0.7, 0.7, math.nan])
    drawn = np.random.default_rng(4).binomial(supports[:4], 0.7, size=(20_000, 4)) / supports[:4]
    assert float(gini_noise_floor(shares, supports)) == pytest.approx(float(gini_index(drawn).mean()), rel=0.02)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_class_accuracies_are_those_of_plain_loops(pairs: list[tuple[int, int]]) -> None:
    targets, predicted = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = class_accuracies(targets, predicted, 4)
    np.testing.assert_array_equal(found.accuracies, oracle.accuracies(targets, predicted, 4))
    assert found.supports.tolist() == oracle.counted(targets, 4)
