"""Measures of class accuracies: the tables of the paper, cases by hand, plain loops and properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evaluators.calibration.reweighting.accuracy_report import (
    TITLES,
    AccuracyReport,
    ReportedValue,
    accuracy_report,
    losses,
    wilson,
)
from evaluators.statistics.class_accuracies import (
    cobias,
    gini_index,
    gini_noise_floor,
    mean_accuracy,
    quarter_accuracy,
    sen_welfare,
    top_class_dominance,
)
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import biased

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
    assert gini_index(values) == pytest.approx(oracle.gini(values), abs=1e-9, nan_ok=True)
    if sum(values):
        shares_of_sum = np.cumsum([0.0, *sorted(values)]) / sum(values)
        area = (shares_of_sum[:-1] + shares_of_sum[1:]).mean() / 2
        assert 2 * (0.5 - area) == pytest.approx(gini_index(values), abs=1e-9)


def test_quarters_of_classes_are_means_of_their_sorted_accuracies() -> None:
    # A class in two quarters counts by its part of each, and one without items not at all.
    three = [quarter_accuracy([0.9, math.nan, 0.1, 0.5], quarter) for quarter in range(4)]
    assert three == pytest.approx([0.1, (0.1 + 2 * 0.5) / 3, (2 * 0.5 + 0.9) / 3, 0.9])
    assert np.isnan(quarter_accuracy([math.nan] * 2, 0))


def test_the_noise_floor_of_unequal_classes_is_what_chance_gives() -> None:
    unequal, shares = np.array([40, 80, 400, 2000, 0]), np.array([0.7, 0.7, 0.7, 0.7, math.nan])
    drawn = np.random.default_rng(4).binomial(unequal[:4], 0.7, size=(20_000, 4)) / unequal[:4]
    assert float(gini_noise_floor(shares, unequal)) == pytest.approx(float(gini_index(drawn).mean()), rel=0.02)


@given(st.integers(1, 200), st.data())
def test_intervals_are_those_of_scipy(n: int, data: st.DataObject) -> None:
    n_right = data.draw(st.integers(0, n))
    expected = binomtest(n_right, n).proportion_ci(method="wilson")
    assert tuple(wilson(n_right, n)) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_table_of_classes_is_that_of_plain_loops() -> None:
    made = biased(0, 90, 3)
    predicted = made.probabilities.argmax(axis=1)
    found = accuracy_report(made.targets, predicted, ["a", "b", "c", "never"])
    shares = oracle.accuracies(made.targets.tolist(), predicted.tolist(), 4)
    classes, measures = found[:4], found[4:]
    assert [one.name for one in classes] == ["a", "b", "c", "never"]
    assert [one.n_rows for one in classes] == oracle.counted(made.targets.tolist(), 4)
    assert [one.n_predicted for one in classes] == oracle.counted(predicted.tolist(), 4)
    assert [one.value for one in classes] == [None if math.isnan(share) else share for share in shares]
    assert (classes[3].low, classes[3].reason) == (None, "no row is of this class")
    mean, supports = oracle.mean(shares), oracle.counted(made.targets.tolist(), 3)
    pairs = [math.sqrt(1 / supports[i] + 1 / supports[j]) for i in range(3) for j in range(3) if i != j]
    expected = {
        "mean_class_accuracy": mean,
        "accuracy": float(np.mean(predicted == made.targets)),
        "gini": oracle.gini(shares),
        "gini_noise_floor": math.sqrt(mean * (1 - mean) * 2 / math.pi) * sum(pairs) / (2 * 3**2 * mean),
        "cobias": oracle.cobias(shares),
        "sen_welfare": oracle.sen(shares),
        "top_class_dominance": oracle.dominance(shares),
        "smallest_class_accuracy": min(oracle.known(shares)),
    }
    assert {one.name: one.value for one in measures} == pytest.approx(expected, abs=1e-12)
    assert {*expected} == {*TITLES}


def of_name(report: AccuracyReport, name: str) -> ReportedValue:
    return next(one for one in report if one.name == name)


def test_a_measure_that_does_not_exist_has_a_reason() -> None:
    never = accuracy_report(np.array([0, 1]), np.array([1, 0]), ["a", "b"])
    gini = of_name(never, "gini")
    assert (gini.value, gini.low) == (None, None)
    assert "nothing is right" in str(gini.reason)
    assert of_name(never, "sen_welfare").value == 0
    single = accuracy_report(np.array([0, 0]), np.array([0, 1]), ["a", "b"])
    assert "fewer than two classes" in str(of_name(single, "cobias").reason)


def test_every_loss_is_told() -> None:
    targets = np.array([0] * 10 + [1] * 10 + [2] * 2)
    before, after = targets.copy(), targets.copy()
    before[20:] = 0
    after[:6] = 2
    assert [*losses(targets, before, after, ["a", "b", "c"])] == [
        "the accuracy over all rows falls by 0.1818, from 0.9091 to 0.7273",
        "1 of 3 classes lose and 1 gain; 'a' loses most, from 1.0000 to 0.4000",
    ]
    assert [*losses(targets, before, before, ["a", "b", "c"])] == []


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 20), (100, 3)])
def test_intervals_hold_their_values_and_cover_what_as_many_rows_give(n_classes: int, n_rows: int) -> None:
    rng = np.random.default_rng(n_classes)
    targets = np.repeat(np.arange(n_classes), n_rows)
    names = [str(number) for number in range(n_classes)]
    reports = []
    for seed in range(40):
        predicted = np.where(rng.random(len(targets)) < 0.7, targets, (targets + 1) % n_classes)
        reports.append(accuracy_report(targets, predicted, names, seed=seed))
    assert accuracy_report(targets, predicted, names, seed=39) == reports[-1]
    for name in ("mean_class_accuracy", "gini", "sen_welfare", "cobias"):
        rows = np.array([of_name(report, name)[2:5] for report in reports], dtype=float)
        values, lows, highs = rows.T
        assert ((lows <= values) & (values <= highs)).all()
        n_covered = int(((lows <= values.mean()) & (values.mean() <= highs)).sum())
        assert n_covered >= 33, f"{name}: {n_covered} of 40 intervals of 95 %"
    assert [one.name for one in reports[0] if one.low is None] == ["gini_noise_floor"]
