"""Probabilities of classifiers that prefer some classes, with known right classes, and the best that weights can do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.problem import DEFAULT_SCHEDULE, Annealing, Objective, ObjectiveName, Problem
from evaluators.calibration.reweighting.rules import PAPER_RULES, RuleSet


class Made(NamedTuple):
    """Rows with known classes."""

    probabilities: FloatArray
    """Probability of each class in each row, shape (n, n_classes)."""
    targets: IntArray
    """Index of the right class of each row, shape (n,)."""


def biased(
    seed: int, n_rows: int, n_classes: int, *, bias: float = 1.0, sharpness: float = 1.5, skew: float = 0.0
) -> Made:
    """Return the softmax of noise, raised for the right class, with a constant preference for some classes.

    Args:
        seed: Seed of everything.
        n_rows: Number of rows; the first ones have each class once.
        n_classes: Number of classes.
        bias: Standard deviation of the preferences.
        sharpness: Number that the right class has more.
        skew: Number by which the logarithms of the frequencies of neighbouring classes differ.
    """
    rng = np.random.default_rng(seed)
    shares = np.exp(-skew * np.arange(n_classes))
    targets = rng.choice(n_classes, size=n_rows, p=shares / shares.sum())
    targets[:n_classes] = np.arange(min(n_classes, n_rows))
    logits = rng.normal(size=(n_rows, n_classes)) + rng.normal(scale=bias, size=n_classes)
    logits[np.arange(n_rows), targets] += sharpness
    odds = np.exp(logits)
    return Made(odds / odds.sum(axis=1, keepdims=True), targets)


def tied(seed: int, n_rows: int, n_classes: int, levels: int = 8) -> Made:
    """Return rows whose probabilities are few multiples of 1 / levels, zeros among them, so that many are equal."""
    rng = np.random.default_rng(seed)
    shares = rng.multinomial(levels, np.full(n_classes, 1 / n_classes), size=n_rows)
    targets = rng.integers(n_classes, size=n_rows)
    targets[: min(n_classes, n_rows)] = np.arange(min(n_classes, n_rows))
    return Made(shares / levels, targets)


def problem_of(
    made: Made,
    objective: ObjectiveName = "sen",
    rule_set: RuleSet = PAPER_RULES,
    annealing: Annealing = DEFAULT_SCHEDULE,
    *,
    floor: float | None = None,
    seed: int = 0,
) -> Problem:
    supports = np.bincount(made.targets, minlength=made.probabilities.shape[1])
    return Problem(made.probabilities, made.targets, Objective(objective, supports, floor), rule_set, annealing, seed)
