"""What is refused, with the row and the remedy, and what a fit says about its doubts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluators.calibration.reweighting.estimator import Reweighter
from evaluators.calibration.reweighting.fitting import FitSettings, fit_rules
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, unequal

P = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
Y = ["a", "b", "b"]


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        ([[0.9, 0.1], [0.8, math.nan], [0.3, 0.7]], r"row 1, column 1 is missing \(nan\); leave the row out"),
        ([[0.9, 0.1], [0.8, math.inf], [0.3, 0.7]], "row 1, column 1 is inf; give probabilities, not odds"),
        ([[0.9, 0.1], [0.8, 0.2], [0.3, -0.7]], "row 2, column 1 is -0.7; give probabilities; exponentiate"),
        ([[0.9, 0.1], [0.0, 0.0], [0.3, 0.7]], "row 1 has nothing but zeros; leave it out"),
        ([[0.9, 0.1], [0.8, 0.1, 0.1], [0.3, 0.7]], "inhomogeneous shape"),
        ([[0.9, 0.1], [0.8, "x"], [0.3, 0.7]], "could not convert string to float: 'x'"),
        ([[0.9], [0.8], [0.3]], "while a minimum of 2 is required"),
        ([[0.5, 0.3, 0.2]] * 3, "3 columns, and 2 classes occur; name each column by 'classes'"),
    ],
)
def test_bad_probabilities_are_refused_by_row(probabilities: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Reweighter().fit(probabilities, Y)
    fitted = Reweighter().fit(P * 20, Y * 20)
    of_width = f"has 3 features|{said}"
    with pytest.raises(ValueError, match=of_width):
        fitted.predict(probabilities)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (["a", "a", "a"], "all rows are of one class, 'a'; give rows of at least two classes"),
        (["a", "b", "c"], "2 columns, and 3 classes occur; name each column"),
        ([0, math.nan, 1], "Input y contains NaN"),
        (np.array(["a", None, "b"], dtype=object), "mixes texts with others, or has None"),
        (pd.Series(["a", "b", pd.NA]), "Input contains NaN"),
        (
            np.array(["a", 1, "b"], dtype=object),
            "mixes texts with others, or has None; give all classes as texts or as integers",
        ),
        ([0.5, 1.0, 1.0], "Unknown label type: continuous"),
    ],
)
def test_bad_classes_are_refused_by_row(targets: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Reweighter().fit(P, targets)


@pytest.mark.parametrize(
    ("classes", "targets", "said"),
    [
        (["a", "b"], ["a", "b", "c"], "the class of row 2 is 'c', which is no column; have: 'a', 'b'"),
        (["0", "1"], [0, 1, 1], "the class of row 0 is 0, which is no column; have: '0', '1'"),
        (["a", "a"], Y, r"2 columns, and 'classes' is \['a', 'a'\]; name each column"),
        (["a", "b", "c"], Y, r"2 columns, and 'classes' is \['a', 'b', 'c'\]; name each"),
        ([["a"], ["b"]], Y, r"2 columns, and 'classes' is \[\['a'\], \['b'\]\]; name each"),
        (["a", "b"], ["b", "b", "b"], "all rows are of one class, 'b'"),
    ],
)
def test_classes_that_do_not_fit_the_columns_are_refused(classes: Any, targets: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Reweighter(classes=classes).fit(P, targets)


def test_tables_of_another_shape_are_refused() -> None:
    for bad, said in ((0.5, "2D array"), ([], "2D array"), (np.empty((0, 2)), "0 sample"), ("x", "could not convert")):
        with pytest.raises(ValueError, match=said):
            Reweighter().fit(bad, Y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[3, 2\]"):
        Reweighter().fit(P, ["a", "b"])


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"preset": "x"}, "preset 'x' does not exist; have: default, balanced, paper"),
        ({"preset": ""}, "preset '' does not exist"),
        ({"preset": None}, "preset 'None' does not exist"),
        ({"random_state": -1}, "the seed is -1; give a whole number from 0"),
        ({"random_state": 0.5}, "the seed is 0.5; give a whole number"),
        ({"random_state": True}, "the seed is True; give a whole number"),
        ({"random_state": "1"}, "the seed is 1; give a whole number"),
    ],
)
def test_choices_that_mean_nothing_are_refused(choices: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Reweighter(**choices).fit(P, Y)


def notes(made: Made, **choices: Any) -> str:
    return " / ".join(fit_rules(made.probabilities, made.targets, FitSettings(**choices)).report.notes)


@pytest.mark.parametrize(("n_rows", "is_few"), [(98, True), (100, False)])
def test_searches_that_follow_rows_warn_of_fewer_than_fifty(n_rows: int, is_few: bool) -> None:
    made = Made(biased(1, n_rows, 2).probabilities, np.arange(n_rows) % 2)
    said = "the smallest class has 49 rows, fewer than 50: a search that follows single rows overfits here"
    assert (said in notes(made, solver="coordinate")) == is_few
    for solver in ("shrunk", "convex", "path"):
        assert "fewer than 50" not in notes(made, solver=solver)


def test_falls_of_accuracies_are_told_with_their_numbers() -> None:
    base = biased(3, 2000, 4, skew=0.9, bias=0.0)
    # A classifier that knows how frequent classes are: even accuracies cost it accuracy over all rows.
    made = Made(base.probabilities * np.bincount(base.targets), base.targets)
    fit = fit_rules(
        made.probabilities, made.targets, FitSettings(solver="coordinate", objective="gini", has_floor=False)
    )
    targets = made.targets.tolist()
    before = made.probabilities.argmax(axis=1).tolist()
    after = fit.rules.predict(made.probabilities).tolist()
    one, other = (oracle.accuracies(targets, guesses, 4) for guesses in (before, after))
    assert fit.report.class_accuracies_before == tuple(one)
    assert fit.report.class_accuracies_after == tuple(other)
    micro = [np.mean([a == b for a, b in zip(targets, guesses, strict=True)]) for guesses in (before, after)]
    assert micro[1] < micro[0]
    said = " / ".join(fit.report.notes)
    assert (
        f"on the fitted rows the accuracy over all rows falls by {micro[0] - micro[1]:.4f}, from {micro[0]:.4f}" in said
    )
    n_falling = sum(b < a for a, b in zip(one, other, strict=True))
    worst = max(range(4), key=lambda place: one[place] - other[place])
    assert n_falling > 0
    assert f"{n_falling} of 4 classes lose" in said
    assert f"from {one[worst]:.4f} to {other[worst]:.4f}" in said


def test_a_fall_of_the_mean_is_told_where_no_floor_holds_it() -> None:
    made = unequal(0)
    targets = made.targets
    free = fit_rules(made.probabilities, targets, FitSettings(solver="coordinate", objective="gini", has_floor=False))
    before = oracle.mean(oracle.accuracies(targets.tolist(), made.probabilities.argmax(axis=1).tolist(), 4))
    after = oracle.mean(oracle.accuracies(targets.tolist(), free.rules.predict(made.probabilities).tolist(), 4))
    assert after < before - 0.02
    told = f"the mean class accuracy falls by {before - after:.4f}, from {before:.4f} to {after:.4f}"
    assert told in " / ".join(free.report.notes)
    assert "mean class accuracy" not in notes(made, solver="coordinate", objective="gini")


def test_a_fit_without_doubts_says_nothing() -> None:
    made = biased(0, 300, 3, sharpness=40.0)
    assert notes(made) == ""


def test_the_estimator_warns_what_the_fit_notes() -> None:
    made = biased(0, 60, 3)
    with pytest.warns(UserWarning, match="classes lose") as caught:
        fitted = Reweighter().fit(made.probabilities, made.targets)
    assert tuple(str(one.message) for one in caught) == fitted.fit_.report.notes


def test_notes_of_a_fit_name_the_class_that_loses() -> None:
    rng = np.random.default_rng(3)
    targets = rng.integers(3, size=300)
    scores = rng.normal(0, 1, (300, 3)) + np.array([0.0, 0.0, 1.5])
    scores[np.arange(300), targets] += 1.5
    odds = np.exp(scores)
    fit = fit_rules(odds / odds.sum(axis=1, keepdims=True), targets, FitSettings(), ["red", "green", "blue"])
    assert any("'blue' loses most, from " in note for note in fit.report.notes)
