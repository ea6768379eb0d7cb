"""Comparisons of corrections over splits, sentences about what was traded, and intervals of measures."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.reweighting.comparison import (
    COMPARED,
    Compared,
    Figures,
    Split,
    compared,
    differences,
    random_split,
)
from evaluators.reweighting.fitting import PAPER, Settings, fit_rules
from evaluators.reweighting.summary import MEASURES, TITLES, summarise
from evaluators.reweighting.traded import changes, lorenz_of, losses


def method(name: str, *values: float | None) -> Compared:
    """A method with these values of every measure on held-out rows."""
    return Compared(name, tuple(Figures({}, dict.fromkeys(COMPARED, value), 1.0) for value in values))


def test_differences_are_paired_by_split() -> None:
    # The differences are 0.1, 0.2 and 0.3: mean 0.2, standard deviation 0.1, error 0.1 / sqrt(3).
    pairs = differences([method("one", 0.5, 0.9, 0.4), method("other", 0.4, 0.7, 0.1)], COMPARED[0])
    assert [(pair.one, pair.other) for pair in pairs] == [("one", "other")]
    assert [pairs[0].mean, pairs[0].error] == pytest.approx([0.2, 0.1 / 3**0.5])
    assert pairs[0].is_clear
    (unclear,) = differences([method("one", 0.5, 0.9), method("other", 0.4, 1.0)], COMPARED[0])
    assert unclear.mean == pytest.approx(0.0)
    assert not unclear.is_clear


def test_a_measure_without_a_value_and_a_single_split_have_no_difference() -> None:
    assert differences([method("one", 0.5, None), method("other", 0.4, 0.1)], COMPARED[0]) == []
    assert differences([method("one", 0.5), method("other", 0.4)], COMPARED[0]) == []
    assert method("one", 0.5, None).mean(COMPARED[0]) is None
    assert method("one", 0.5).error(COMPARED[0]) is None


def data(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    targets = rng.integers(3, size=n)
    scores = rng.normal(0, 1, (n, 3)) + np.array([0.0, 0.0, 1.5])
    scores[np.arange(n), targets] += 1.5
    odds = np.exp(scores)
    return odds / odds.sum(axis=1, keepdims=True), targets


def test_random_splits_hold_out_a_share_of_each_class_and_share_no_row() -> None:
    shares, targets = data()
    split = random_split(shares, targets, 0.25, seed=1)
    for one in range(3):
        n = int((targets == one).sum())
        assert int((split.held_out_targets == one).sum()) == n // 4
        assert int((split.targets == one).sum()) == n - n // 4
    rows = {tuple(row) for row in split.probabilities.tolist()}
    assert rows.isdisjoint(tuple(row) for row in split.held_out_probabilities.tolist())
    assert not np.array_equal(random_split(shares, targets, 0.25, seed=2).targets, split.targets) or not np.array_equal(
        random_split(shares, targets, 0.25, seed=2).probabilities, split.probabilities
    )


def test_a_method_has_the_figures_of_its_own_fit() -> None:
    shares, targets = data()
    split = Split(shares[:200], targets[:200], shares[200:], targets[200:], seed=5)
    calls: list[int] = []
    plain, fitted = compared([split], {"path": Settings(solver="path")}, lambda: calls.append(1))
    rules = fit_rules(shares[:200], targets[:200], Settings(solver="path", seed=5)).rules
    for found, predicted in (
        (plain, shares[200:].argmax(axis=1)),
        (fitted, rules.predict(shares[200:])),
    ):
        accuracies = [float((predicted[targets[200:] == one] == one).mean()) for one in range(3)]
        assert found.mean("mean_class_accuracy") == pytest.approx(sum(accuracies) / 3)
        assert found.mean("smallest_class_accuracy") == pytest.approx(min(accuracies))
        assert found.mean("accuracy") == pytest.approx((predicted == targets[200:]).mean())
    assert (plain.name, plain.seconds, len(calls)) == ("uncorrected", 0.0, 1)
    assert fitted.seconds > 0


def test_choices_are_checked_before_anything_is_fitted() -> None:
    shares, targets = data()
    calls: list[int] = []
    split = Split(shares, targets, shares, targets)
    with pytest.raises(ValueError, match="solver 'none' does not exist"):
        compared([split], {"a": Settings(), "b": Settings(solver="none")}, lambda: calls.append(1))
    assert calls == []


def test_every_loss_is_told() -> None:
    targets = np.array([0] * 10 + [1] * 10 + [2] * 2)
    before, after = targets.copy(), targets.copy()
    before[20:] = 0
    after[:6] = 2
    old, new = (summarise(targets, predicted, ["a", "b", "c"]) for predicted in (before, after))
    told = list(losses(old, new))
    assert told == [
        "the accuracy over all rows falls by 0.1818, from 0.9091 to 0.7273",
        "1 of 3 classes lose and 1 gain; 'a' loses most, from 1.0000 to 0.4000",
    ]
    assert "smallest class accuracy 0.0000 to 0.4000" in changes(old, new)
    assert list(losses(old, old)) == []


def test_the_lorenz_curve_of_a_summary_is_that_of_its_accuracies() -> None:
    summary = summarise(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), ["a", "b", "c"])
    assert lorenz_of(summary) == [(0.0, 0.0), (0.5, pytest.approx(1 / 3)), (1.0, 1.0)]
    assert lorenz_of(summarise(np.array([0, 1]), np.array([1, 0]), ["a", "b"])) == []


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 20), (4, 100), (100, 40), (100, 3)])
def test_intervals_hold_their_values_and_cover_what_as_many_rows_give(n_classes: int, n_rows: int) -> None:
    rng = np.random.default_rng(n_classes)
    targets = np.repeat(np.arange(n_classes), n_rows)
    names = [str(number) for number in range(n_classes)]
    summaries = []
    for seed in range(40):
        wrong = (targets + 1) % n_classes
        predicted = np.where(rng.random(len(targets)) < 0.7, targets, wrong)
        summaries.append(summarise(targets, predicted, names, n_resamples=300, seed=seed))
    for name in ("mean_class_accuracy", "gini", "sen_welfare", "cobias"):
        found = [next(one for one in summary.measures if one.name == name) for summary in summaries]
        expected = np.mean([one.value for one in found if one.value is not None])
        covered = 0
        for one in found:
            assert one.value is not None
            assert one.interval is not None
            assert one.interval.low <= one.value <= one.interval.high
            covered += int(one.interval.low <= expected <= one.interval.high)
        assert covered >= 33, f"{name}: {covered} of 40 intervals of 95 %"


def test_every_measure_has_a_title_and_the_paper_its_choices() -> None:
    assert {*TITLES} == {*MEASURES}
    assert (PAPER.objective, PAPER.min_mean, PAPER.correction, PAPER.solver) == ("gini", None, "full", "anneal")
    assert (PAPER.n_weights, PAPER.grid) == (30, "linear")


def test_notes_of_a_fit_name_the_class_that_loses() -> None:
    shares, targets = data()
    found = fit_rules(shares, targets, Settings(), ["red", "green", "blue"])
    assert any("most 'blue': " in note for note in found.notes)
