"""Reports on predictions, against plain loops and known intervals."""

from __future__ import annotations

import math

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
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import biased


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
