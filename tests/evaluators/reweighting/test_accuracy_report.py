"""Reports on predictions, against plain loops and known intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evaluators.calibration.reweighting.accuracy_report import TITLES, accuracy_report, changes, losses, wilson
from evaluators.statistics.class_accuracies import gini_noise_floor
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import biased


def smallest(values: list[float]) -> float:
    return min(oracle.known(values))


ORACLES: dict[str, Callable[[list[float]], float]] = {
    "mean_class_accuracy": oracle.mean,
    "gini": oracle.gini,
    "cobias": oracle.cobias,
    "sen_welfare": oracle.sen,
    "top_class_dominance": oracle.dominance,
    "smallest_class_accuracy": smallest,
}


@given(st.integers(1, 200), st.data())
def test_intervals_are_those_of_scipy(n: int, data: st.DataObject) -> None:
    n_right = data.draw(st.integers(0, n))
    expected = binomtest(n_right, n).proportion_ci(method="wilson")
    assert tuple(wilson(n_right, n)) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_table_of_classes_is_that_of_plain_loops() -> None:
    made = biased(0, 90, 3)
    predicted = made.probabilities.argmax(axis=1)
    found = accuracy_report(made.targets, predicted, ["a", "b", "c", "never"], n_resamples=0)
    shares = oracle.accuracies(made.targets.tolist(), predicted.tolist(), 4)
    assert [one.name for one in found.classes] == ["a", "b", "c", "never"]
    assert [one.n_rows for one in found.classes] == oracle.counted(made.targets.tolist(), 4)
    assert [one.n_predicted for one in found.classes] == oracle.counted(predicted.tolist(), 4)
    assert [one.value for one in found.classes] == [None if math.isnan(share) else share for share in shares]
    assert (found.classes[3].low, found.classes[3].reason) == (None, "no row is of this class")
    assert {one.name for one in found.measures} == set(TITLES)
    for name, measure in ORACLES.items():
        assert found.value(name) == pytest.approx(measure(shares), abs=1e-12), name
    assert found.value("accuracy") == pytest.approx(float(np.mean(predicted == made.targets)))
    supports = oracle.counted(made.targets.tolist(), 4)
    assert found.value("gini_noise_floor") == pytest.approx(float(gini_noise_floor(shares, supports)))


def test_intervals_cover_the_measures_and_can_be_repeated() -> None:
    made = biased(0, 300, 4)
    predicted = made.probabilities.argmax(axis=1)
    labels = list("abcd")
    one, other = (accuracy_report(made.targets, predicted, labels, n_resamples=500, seed=1) for _ in range(2))
    assert one == other
    for measure in one.measures:
        assert (measure.low is None) == (measure.name == "gini_noise_floor")
        if measure.low is not None and measure.value is not None and measure.high is not None:
            assert measure.low <= measure.value <= measure.high, measure.name
    wider = accuracy_report(made.targets[::4], predicted[::4], labels, n_resamples=500, seed=1)
    ginis = [next(each for each in some.measures if each.name == "gini") for some in (one, wider)]
    widths = [each.high - each.low for each in ginis if each.high is not None and each.low is not None]
    assert widths[1] > 1.3 * widths[0]


def test_a_measure_that_does_not_exist_has_a_reason() -> None:
    never = accuracy_report(np.array([0, 1]), np.array([1, 0]), ["a", "b"], n_resamples=50)
    gini = next(one for one in never.measures if one.name == "gini")
    assert (gini.value, gini.low) == (None, None)
    assert "nothing is right" in str(gini.reason)
    assert never.value("sen_welfare") == 0
    single = accuracy_report(np.array([0, 0]), np.array([0, 1]), ["a", "b"], n_resamples=0)
    assert "fewer than two classes" in str(next(one for one in single.measures if one.name == "cobias").reason)


def test_every_loss_is_told() -> None:
    targets = np.array([0] * 10 + [1] * 10 + [2] * 2)
    before, after = targets.copy(), targets.copy()
    before[20:] = 0
    after[:6] = 2
    old, new = (accuracy_report(targets, predicted, ["a", "b", "c"], n_resamples=0) for predicted in (before, after))
    told = list(losses(old, new))
    assert told == [
        "the accuracy over all rows falls by 0.1818, from 0.9091 to 0.7273",
        "1 of 3 classes lose and 1 gain; 'a' loses most, from 1.0000 to 0.4000",
    ]
    assert "smallest class accuracy 0.0000 to 0.4000" in changes(old, new)
    assert list(losses(old, old)) == []


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 20), (4, 100), (100, 40), (100, 3)])
def test_intervals_hold_their_values_and_cover_what_as_many_rows_give(n_classes: int, n_rows: int) -> None:
    rng = np.random.default_rng(n_classes)
    targets = np.repeat(np.arange(n_classes), n_rows)
    names = [str(number) for number in range(n_classes)]
    summaries = []
    for seed in range(40):
        wrong = (targets + 1) % n_classes
        predicted = np.where(rng.random(len(targets)) < 0.7, targets, wrong)
        summaries.append(accuracy_report(targets, predicted, names, n_resamples=300, seed=seed))
    for name in ("mean_class_accuracy", "gini", "sen_welfare", "cobias"):
        found = [next(one for one in summary.measures if one.name == name) for summary in summaries]
        expected = np.mean([one.value for one in found if one.value is not None])
        covered = 0
        for one in found:
            assert one.value is not None
            assert one.low is not None
            assert one.high is not None
            assert one.low <= one.value <= one.high
            covered += int(one.low <= expected <= one.high)
        assert covered >= 33, f"{name}: {covered} of 40 intervals of 95 %"
