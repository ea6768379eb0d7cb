"""Measures how fast and how well corrections of class probabilities are found.

Run it with ``make bench ARGS='-k bench_reweighting'``. CPU seconds count, since machines are shared.
``REWEIGHTING_SEEDS`` chooses how many seeds.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.calibration.reweighting.fitting import PRESETS, fit_rules, preset_settings
from evaluators.calibration.reweighting.problem import Objective
from evaluators.calibration.reweighting.rules import PAPER_RULES, ClassRules, prepared
from evaluators.calibration.reweighting.top_two import TopTwo
from evaluators.statistics.class_accuracies import class_accuracies, gini_index, mean_accuracy, sen_welfare
from tests.evaluators.reweighting.imbalanced import NAMES, imbalanced
from tests.evaluators.reweighting.made import Made, biased

SEEDS = range(100, 100 + int(os.environ.get("REWEIGHTING_SEEDS", "5")))
N_MOVES, ROUNDS = 100, 5


def divided_by(shares: FloatArray) -> ClassRules:
    # A class that never occurs cannot be divided by 0; it gets the mean weight, in logarithms, of the others.
    occurs = shares > 0
    typical = np.exp(np.log(shares[occurs]).mean())
    safe = np.where(occurs, shares, typical)
    return ClassRules.of_weights(safe.min() / safe)


def mean_division(probabilities: FloatArray, targets: IntArray) -> ClassRules:
    """Divide each class by its mean probability, where each row counts alike, whatever its sum."""
    return divided_by((probabilities / probabilities.sum(axis=1, keepdims=True)).mean(axis=0))


def prior_division(probabilities: FloatArray, targets: IntArray) -> ClassRules:
    """Divide each class by its share of the labelled rows."""
    return divided_by(np.bincount(targets, minlength=probabilities.shape[1]) / len(targets))


UNCORRECTED = "uncorrected"
ONE_LINERS: dict[str, Callable[[FloatArray, IntArray], ClassRules]] = {
    UNCORRECTED: lambda probabilities, targets: ClassRules.of_weights(np.ones(probabilities.shape[1])),
    "divided by the mean": mean_division,
    "divided by the prior": prior_division,
}
"""Corrections of one line, from probabilities, shape (n, n_classes), and right classes, shape (n,)."""
METHODS = (*ONE_LINERS, *PRESETS)


def predicted_by(method: str, probabilities: FloatArray, targets: IntArray, judged: FloatArray, seed: int) -> IntArray:
    """Fit a method on some rows and return what it predicts for others, shape (n_judged,)."""
    if method in ONE_LINERS:
        return ONE_LINERS[method](probabilities, targets).predict(judged)
    settings = preset_settings(method, seed)
    return fit_rules(probabilities, targets, settings).rules.predict(prepared(judged, settings.map))


def held_out_by(method: str, probabilities: FloatArray, targets: IntArray, seed: int) -> IntArray:
    """Return what a method predicts for each row when it is fitted on the half without that row, shape (n,)."""
    predicted = np.empty(len(targets), dtype=np.int64)
    half = random_half(targets, seed)
    for fitted in (half, ~half):
        predicted[~fitted] = predicted_by(method, probabilities[fitted], targets[fitted], probabilities[~fitted], seed)
    return predicted


def random_half(targets: IntArray, seed: int) -> BoolArray:
    """Return the mask of a random half of the rows of each class, rounded down, shape (n,)."""
    mask = np.zeros(len(targets), dtype=np.bool_)
    rng = np.random.default_rng(seed)
    for of_class in np.unique(targets):
        rows = rng.permutation(np.flatnonzero(targets == of_class))
        mask[rows[: len(rows) // 2]] = True
    return mask


class Reached(NamedTuple):
    """What predictions reach."""

    sen: float
    mean: float
    gini: float

    @classmethod
    def by(cls, made: Made, predicted: IntArray) -> Reached:
        shares, _ = class_accuracies(made.targets, predicted, made.probabilities.shape[1])
        sen, mean, gini = (float(measure(shares)) for measure in (sen_welfare, mean_accuracy, gini_index))
        return cls(sen, mean, gini)


def told(values: list[float]) -> str:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.3f} ±{error:.3f}"


@pytest.mark.parametrize("are_labels_rare", [False, True])
@pytest.mark.parametrize("name", NAMES)
def bench_one_liners(name: str, are_labels_rare: bool) -> None:
    """Presets beside divisions by the mean and by the prior, on data sets with planted imbalance."""
    found = []
    for seed in SEEDS:
        made = imbalanced(name, seed, are_labels_rare=are_labels_rare)
        found.append({method: Reached.by(made, held_out_by(method, *made, seed)) for method in METHODS})
    where = "in training and labels" if are_labels_rare else "in training"
    print(f"\n{name}, classes rare {where}, {len(found)} seeds, held out")
    print(f"{'':21} {'Sen welfare':>13} {'mean class acc.':>15} {'Gini':>13} {'lead of the default':>20}")
    for method in METHODS:
        columns = [told([getattr(each[method], measure) for each in found]) for measure in Reached._fields]
        lead = told([each["default"].sen - each[method].sen for each in found])
        print(f"{method:21} {columns[0]:>13} {columns[1]:>15} {columns[2]:>13} {lead:>20}")


def full_counts(values: FloatArray, made: Made) -> IntArray:
    """Count the right rows of each class from the whole table of corrected values."""
    predicted = values.argmax(axis=1)
    is_empty = ~values.any(axis=1)
    if is_empty.any():
        predicted[is_empty] = made.probabilities[is_empty].argmax(axis=1)
    return np.bincount(made.targets[predicted == made.targets], minlength=values.shape[1])


def gini_of(right: IntArray, supports: IntArray) -> float:
    """Return the Gini index of sorted accuracies; nan where nothing is right."""
    shares = np.sort(right / supports)
    n = len(shares)
    total = shares.sum()
    return float((2 * np.arange(1, n + 1) - n - 1) @ shares / (n * total)) if total else math.nan


def cpu_microseconds(call: Callable[[], object]) -> float:
    """Time a call that makes all moves, and return the microseconds of one."""
    start = time.process_time()
    call()
    return (time.process_time() - start) / N_MOVES * 1e6


@pytest.mark.parametrize(("n_classes", "least"), [(4, 2.5), (14, 7.0), (100, 70.0)])
def bench_moves(n_classes: int, least: float) -> None:
    """Time of one move: the counts that follow from a changed class, and all values of all classes anew."""
    made = biased(0, 10_000, n_classes)
    rng = np.random.default_rng(1)
    numbers = rng.integers(PAPER_RULES.n_rules, size=n_classes)
    top = TopTwo(made.probabilities, made.targets, PAPER_RULES.rules(numbers).transform(made.probabilities))
    objective = Objective("gini", top.supports)
    moves = list(
        zip(rng.integers(n_classes, size=N_MOVES).tolist(), rng.integers(49, size=N_MOVES).tolist(), strict=True)
    )

    def evaluated() -> list[float]:
        return [
            float(objective(top.trial(one, PAPER_RULES.value(number, top.probabilities[one])))) for one, number in moves
        ]

    def recomputed() -> list[float]:
        found = []
        for one, number in moves:
            changed = numbers.copy()
            changed[one] = number
            columns = [PAPER_RULES.value(rule, made.probabilities[:, n]) for n, rule in enumerate(changed.tolist())]
            values = np.column_stack(columns)
            found.append(gini_of(full_counts(values, made), top.supports))
        return found

    np.testing.assert_allclose(evaluated(), [np.inf if np.isnan(one) else one for one in recomputed()], atol=1e-9)
    timed = [[cpu_microseconds(call) for call in (recomputed, evaluated)] for _ in range(ROUNDS)]
    full, trial = (statistics.median(each) for each in zip(*timed, strict=True))
    print(f"\nN={n_classes}: full {full:.0f} us, incremental {trial:.0f} us ({full / trial:.1f} times)")
    assert full / trial >= least
