"""Summaries of predictions, against plain loops and known intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evaluators.reweighting.summary import MEASURES, summarise, wilson
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
    found = summarise(made.targets, predicted, ["a", "b", "c", "never"])
    shares = oracle.accuracies(made.targets.tolist(), predicted.tolist(), 4)
    assert [one.label for one in found.classes] == ["a", "b", "c", "never"]
    assert [one.n_rows for one in found.classes] == oracle.counted(made.targets.tolist(), 4)
    assert [one.n_predicted for one in found.classes] == oracle.counted(predicted.tolist(), 4)
    assert [one.accuracy for one in found.classes] == [None if math.isnan(share) else share for share in shares]
    assert found.classes[3].interval is None
    assert {one.name for one in found.measures} == set(MEASURES)
    for name, measure in ORACLES.items():
        assert found.value(name) == pytest.approx(measure(shares), abs=1e-12), name
    assert found.value("accuracy") == pytest.approx(float(np.mean(predicted == made.targets)))
    supports = [one.n_rows for one in found.classes]
    assert found.value("gini_noise_floor") == pytest.approx(float(gini_noise_floor(shares, supports)))


def test_intervals_cover_the_measures_and_can_be_repeated() -> None:
    made = biased(0, 300, 4)
    predicted = made.probabilities.argmax(axis=1)
    labels = list("abcd")
    one, other = (summarise(made.targets, predicted, labels, n_resamples=500, seed=1) for _ in range(2))
    assert one == other
    for measure in one.measures:
        assert (measure.interval is None) == (measure.name == "gini_noise_floor")
        if measure.interval is not None and measure.value is not None:
            assert measure.interval.low <= measure.value <= measure.interval.high, measure.name
    wider = summarise(made.targets[::4], predicted[::4], labels, n_resamples=500, seed=1)
    ginis = [next(each for each in some.measures if each.name == "gini") for some in (one, wider)]
    widths = [each.interval.high - each.interval.low for each in ginis if each.interval is not None]
    assert widths[1] > 1.3 * widths[0]


def test_a_measure_that_does_not_exist_has_a_reason() -> None:
    never = summarise(np.array([0, 1]), np.array([1, 0]), ["a", "b"], n_resamples=50)
    gini = next(one for one in never.measures if one.name == "gini")
    assert (gini.value, gini.interval) == (None, None)
    assert "nothing is right" in str(gini.reason)
    assert never.value("sen_welfare") == 0
    single = summarise(np.array([0, 0]), np.array([0, 1]), ["a", "b"])
    assert "fewer than two classes" in str(next(one for one in single.measures if one.name == "cobias").reason)
