"""Other ways to choose a rule per class, written from their descriptions, and data to compare them on."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.calibration.reweighting.fitting import PRESETS, UNCORRECTED, fit_rules, preset_settings
from evaluators.calibration.reweighting.problem import PAPER_RULES
from evaluators.calibration.reweighting.rules import ClassRules, prepared
from tests.evaluators.reweighting.made import Made


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


class Schedule(NamedTuple):
    """The annealing that the authors of DCS (arXiv:2503.05157) published, for objectives that count rows."""

    accepted_per_level: int
    """Accepted moves after which a level ends."""
    proposals_per_level: int
    temperature: float = 200_000.0
    cooling: float = 0.95
    stop: float = 200.0


FIRST_COMMIT = Schedule(150, 300)
LAST_COMMIT = Schedule(3, 6)


class Split(NamedTuple):
    """Probabilities to fit a correction on, and others to test it on."""

    fitted: Made
    tested: Made


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


def published_annealing(made: Made, schedule: Schedule, seed: int) -> ClassRules:
    """Search the full map for a small Gini index times the number of rows, without a guard."""
    rng = random.Random(seed)
    n_rows, n_classes = made.probabilities.shape
    supports = np.bincount(made.targets, minlength=n_classes)
    numbers = np.full(n_classes, PAPER_RULES.identity)
    values = made.probabilities.copy()
    value = best = n_rows * gini_of(full_counts(values, made), supports)
    best_numbers = numbers.copy()
    temperature = schedule.temperature
    while temperature >= schedule.stop:
        accepted = 0
        for _ in range(schedule.proposals_per_level):
            one = rng.randrange(n_classes)
            number = rng.choice([rule for rule in range(len(PAPER_RULES.numbers)) if rule != numbers[one]])
            kept = values[:, one].copy()
            values[:, one] = PAPER_RULES.value(number, made.probabilities[:, one])
            new = n_rows * gini_of(full_counts(values, made), supports)
            # Where nothing is right the value is nan, which compares as no better: the move is not accepted.
            if new <= value or rng.random() < math.exp(min(0.0, (value - new) / temperature)):
                accepted += 1
                value, numbers[one] = new, number
                if value < best:
                    best, best_numbers = value, numbers.copy()
            else:
                values[:, one] = kept
            if accepted >= schedule.accepted_per_level:
                break
        temperature *= schedule.cooling
    return PAPER_RULES.rules(best_numbers)


class Constant:
    """A classifier of which tunethresholds asks the names of the classes alone."""

    def __init__(self, n_classes: int) -> None:
        self.classes_ = np.arange(n_classes)


def tuned_thresholds(made: Made, seed: int) -> ClassRules:
    """Return the weights of the package tunethresholds, by differential evolution on the correlation of Matthews."""
    model = importlib.import_module("tunethresholds").AdjustedProbabilitiesDerivedModel
    # It takes its randomness from NumPy's global generator.
    np.random.seed(seed)
    tuned = model.adjust_model_decision_thresholds(
        Constant(made.probabilities.shape[1]),
        made.targets,
        predicted_probabilities_validation=made.probabilities,
    )
    return ClassRules.of_weights(np.asarray(tuned.class_weights, dtype=np.float64))


def synthetic(seed: int, n_classes: int, skew: float) -> Split:
    """Return 10,000 rows to fit on and 20,000 to test on.

    Classes have skewed frequencies and are told apart unequally well, and the classifier prefers some of them.
    """
    rng = np.random.default_rng(seed)
    shares = np.exp(-skew * np.arange(n_classes))
    targets = rng.choice(n_classes, size=30_000, p=shares / shares.sum())
    logits = rng.normal(size=(30_000, n_classes)) + rng.normal(size=n_classes)
    logits[np.arange(30_000), targets] += rng.uniform(1.2, 3.0, size=n_classes)[targets]
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    return Split(*(Made(probabilities[rows], targets[rows]) for rows in (slice(10_000), slice(10_000, None))))


def page_example() -> Made:
    """Return the rows of the file ``fit.csv`` of the example on the page about reweighting."""
    images, targets = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    noisy = images + rng.normal(0, 6, images.shape)
    skewed = np.flatnonzero(rng.random(600) < np.where(targets[:600] < 5, 0.3, 0.03))
    model = LogisticRegression(max_iter=1000).fit(noisy[skewed], targets[skewed])
    rows = slice(600, 1200)
    return Made(model.predict_proba(noisy[rows]), targets[rows])


def digits(seed: int) -> Split:
    """Return the probabilities of a weak logistic model of digits, trained on few noisy rows of skewed classes."""
    pixels, targets = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    noisy = pixels + rng.normal(scale=6.0, size=pixels.shape)
    order = rng.permutation(len(targets))
    frequency = np.exp(-0.35 * rng.permutation(10))
    chosen = rng.choice(order, size=200, replace=False, p=frequency[targets[order]] / frequency[targets[order]].sum())
    # Each class has two rows at least to be trained on.
    few = np.concatenate([np.flatnonzero(targets == one)[:2] for one in range(10)])
    train = np.union1d(chosen, few)
    model = LogisticRegression(C=1e-3, max_iter=2000).fit(noisy[train], targets[train])
    rest = np.setdiff1d(order, train)
    rng.shuffle(rest)
    probabilities = model.predict_proba(noisy[rest])
    half = len(rest) // 2
    return Split(*(Made(probabilities[rows], targets[rest][rows]) for rows in (slice(half), slice(half, None))))
