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
from evaluators.calibration.reweighting.fitting import PRESETS, FitSettings, fit_rules, preset_settings
from evaluators.calibration.reweighting.problem import Annealing, Objective
from evaluators.calibration.reweighting.rules import PAPER_RULES, ClassRules, prepared
from evaluators.calibration.reweighting.top_two import TopTwo
from evaluators.statistics.class_accuracies import class_accuracies, gini_index, mean_accuracy, sen_welfare
from tests.evaluators.reweighting.imbalanced import NAMES, imbalanced
from tests.evaluators.reweighting.made import Made, biased

SEEDS = range(100, 100 + int(os.environ.get("REWEIGHTING_SEEDS", "5")))
N_MOVES, ROUNDS = 100, 5


def mean_division(probabilities: FloatArray, targets: IntArray) -> ClassRules:
    """Return the weights that divide each class by its mean probability; the right classes are not looked at.

    Args:
        probabilities: Probability of each class in each row, shape (n, n_classes); each row counts alike, whatever its
            sum.
        targets: Index of the right class of each row, shape (n,).
    """
    return _divided_by((probabilities / probabilities.sum(axis=1, keepdims=True)).mean(axis=0))


def prior_division(probabilities: FloatArray, targets: IntArray) -> ClassRules:
    """Return the weights that divide each class by its share of the labelled rows.

    Args:
        probabilities: Probability of each class in each row, shape (n, n_classes), of which only the width counts.
        targets: Index of the right class of each row, shape (n,).
    """
    return _divided_by(np.bincount(targets, minlength=probabilities.shape[1]) / len(targets))


def _divided_by(shares: FloatArray) -> ClassRules:
    # A class that never occurs cannot be divided by 0; it gets the mean weight, in logarithms, of the others.
    occurs = shares > 0
    typical = np.exp(np.log(shares[occurs]).mean())
    safe = np.where(occurs, shares, typical)
    return ClassRules.of_weights(safe.min() / safe)


ONE_LINERS: dict[str, Callable[[FloatArray, IntArray], ClassRules]] = {
    "divided by the mean": mean_division,
    "divided by the prior": prior_division,
}
"""The corrections of one line: functions from probabilities and right classes to rules."""
UNCORRECTED = "uncorrected"
METHODS = (UNCORRECTED, *ONE_LINERS, *PRESETS)
"""What is compared, in this order."""


def predicted_by(
    method: str, probabilities: FloatArray, targets: IntArray, judged: FloatArray, *, seed: int = 0
) -> IntArray:
    """Fit a method on some rows and return what it predicts for others, shape (n_judged,).

    Args:
        method: One of :data:`METHODS`.
        probabilities: Probability of each class in the rows to fit on, shape (n, n_classes).
        targets: Index of their right classes, shape (n,).
        judged: Probability of each class in the rows to predict, shape (n_judged, n_classes).
        seed: Seed of the search of ``paper``.
    """
    if method == UNCORRECTED:
        return ClassRules.of_weights(np.ones(judged.shape[1])).predict(judged)
    if method in ONE_LINERS:
        return ONE_LINERS[method](probabilities, targets).predict(judged)
    settings = preset_settings(method, seed)
    return fit_rules(probabilities, targets, settings).rules.predict(prepared(judged, settings.map))


def held_out_by(method: str, probabilities: FloatArray, targets: IntArray, *, seed: int = 0) -> IntArray:
    """Return what a method predicts for each row when it is fitted on the half without that row, shape (n,).

    Args:
        method: One of :data:`METHODS`.
        probabilities: Probability of each class in each row, shape (n, n_classes).
        targets: Index of the right class of each row, shape (n,); each class that occurs has two rows at least.
        seed: Seed of the halves and of the search of ``paper``.
    """
    predicted = np.empty(len(targets), dtype=np.int64)
    half = random_half(targets, seed)
    for fitted in (half, ~half):
        predicted[~fitted] = predicted_by(
            method, probabilities[fitted], targets[fitted], probabilities[~fitted], seed=seed
        )
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


def held_out(made: Made, seed: int) -> dict[str, Reached]:
    """Return what each method reaches on the half that it was not fitted on, for both halves together."""
    return {method: Reached.by(made, held_out_by(method, *made, seed=seed)) for method in METHODS}


def print_held_out(title: str, found: list[dict[str, Reached]]) -> None:
    """Print means and standard errors, and of the default's lead in Sen welfare over each method."""
    print(f"\n{title}, {len(found)} seeds, held out")
    print(f"{'':21} {'Sen welfare':>13} {'mean class acc.':>15} {'Gini':>13} {'lead of the default':>20}")
    for method in METHODS:
        columns = [told([getattr(each[method], name) for each in found]) for name in ("sen", "mean", "gini")]
        lead = told([each["default"].sen - each[method].sen for each in found])
        print(f"{method:21} {columns[0]:>13} {columns[1]:>15} {columns[2]:>13} {lead:>20}")


@pytest.mark.parametrize("are_labels_rare", [False, True])
@pytest.mark.parametrize("name", NAMES)
def bench_one_liners(name: str, are_labels_rare: bool) -> None:
    """Presets beside divisions by the mean and by the prior, on data sets with planted imbalance."""
    found = [held_out(imbalanced(name, seed, are_labels_rare=are_labels_rare), seed) for seed in SEEDS]
    where = "in training and labels" if are_labels_rare else "in training"
    print_held_out(f"{name}, classes rare {where}", found)


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


@pytest.mark.parametrize(("n_classes", "least"), [(4, 2.5), (14, 7.0), (100, 100.0)])
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

    def evaluated(accepts: bool) -> list[float]:
        found = []
        for one, number in moves:
            values = PAPER_RULES.value(number, top.probabilities[one])
            found.append(float(objective(top.trial(one, values))))
            if accepts:
                top.accept(one, values)
        return found

    def recomputed() -> list[float]:
        found = []
        for one, number in moves:
            changed = numbers.copy()
            changed[one] = number
            columns = [PAPER_RULES.value(rule, made.probabilities[:, n]) for n, rule in enumerate(changed.tolist())]
            values = np.column_stack(columns)
            found.append(gini_of(full_counts(values, made), top.supports))
        return found

    np.testing.assert_allclose(evaluated(False), [np.inf if np.isnan(one) else one for one in recomputed()], atol=1e-9)
    taken: dict[str, list[float]] = {"full": [], "trial": [], "accepted": []}
    for _ in range(ROUNDS):
        for name, call in (
            ("full", recomputed),
            ("trial", lambda: evaluated(False)),
            ("accepted", lambda: evaluated(True)),
        ):
            start = time.process_time()
            call()
            taken[name].append((time.process_time() - start) / N_MOVES * 1e6)
    full, trial, accepted = (statistics.median(taken[name]) for name in taken)
    print(f"\nN={n_classes}: full {full:.0f} us, incremental {trial:.0f} us ({full / trial:.1f} times)", end="")
    print(f", with acceptance {accepted:.0f} us ({full / accepted:.1f} times)")
    assert full / trial >= least


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n_rows", "n_classes"), [(10_000, 14), (10_000, 100), (1_000_000, 4)])
def bench_default_fit(n_rows: int, n_classes: int) -> None:
    """Time of whole fits of each solver on larger tables."""
    made = biased(1, n_rows, n_classes, bias=1.5)
    for solver in ("shrunk", "convex", "path", *(["anneal"] if n_rows <= 10_000 else [])):
        settings = FitSettings(solver=solver, annealing=Annealing(n_restarts=1))
        start = time.process_time()
        fit = fit_rules(made.probabilities, made.targets, settings)
        seconds = time.process_time() - start
        print(f"\n{n_rows} x {n_classes}, {solver}: {seconds:.1f} s of CPU", end="")
        assert any(fit.report.class_accuracies_after)
