"""Predicts by the presets and by two corrections of one line, for rows that none of them was fitted on.

A correction that loses to a division by a column's mean is not worth its fit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.calibration.reweighting.fitting import PRESETS, UNCORRECTED, fit_rules, preset_settings
from evaluators.calibration.reweighting.rules import ClassRules, prepared


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
