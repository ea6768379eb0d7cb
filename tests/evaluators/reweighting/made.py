"""Probabilities of classifiers that prefer some classes, with known right classes, and the best that weights can do."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.problem import (
    DEFAULT_SCHEDULE,
    PAPER_RULES,
    Annealing,
    Objective,
    ObjectiveName,
    Problem,
)
from evaluators.calibration.reweighting.rules import RuleSet


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


def unequal(seed: int, n_per_class: int = 200) -> Made:
    """Return rows of four classes of which two are told apart by hardly more than chance.

    Accuracies are even only where the two other classes fall too.
    """
    rng = np.random.default_rng(seed)
    targets = np.repeat(np.arange(4), n_per_class)
    rows = np.arange(len(targets))
    logits = rng.normal(size=(len(targets), 4))
    logits[rows, targets] += np.array([3.0, 3.0, 0.2, 0.2])[targets]
    logits[2 * n_per_class :, 2:] += 3.0
    odds = np.exp(logits)
    return Made(odds / odds.sum(axis=1, keepdims=True), targets)


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
    return Problem(
        made.probabilities,
        made.targets,
        Objective(objective, supports, floor),
        rule_set,
        annealing,
        seed,
    )


def best_of_all(made: Made, n_weights: int) -> dict[str, float]:
    """Return the smallest Gini index and the smallest ``1 - Sen welfare`` of all n_weights ** n_classes combinations.

    Of each combination of the weights of all classes but the first, all weights of the first are tried together.
    """
    weights = np.arange(1, n_weights + 1) / n_weights
    n_classes = made.probabilities.shape[1]
    targets = np.eye(n_classes)[made.targets]
    supports = targets.sum(axis=0)
    of_first = weights[:, None] * made.probabilities[:, 0]
    rows = np.arange(len(made.targets))
    best = {"gini": np.inf, "sen": np.inf}
    for rest in itertools.product(weights.tolist(), repeat=n_classes - 1):
        others = made.probabilities[:, 1:] * np.array(rest)
        winner = others.argmax(axis=1)
        # The first class has the lowest index, which wins a tie.
        wins = of_first >= others[rows, winner]
        other_is_right = targets * (winner + 1 == made.targets)[:, None]
        right = np.where(wins, 0.0, 1.0) @ other_is_right
        right[:, 0] = wins.astype(np.float64) @ targets[:, 0]
        gini, sen = _objectives(right / supports)
        best = {"gini": min(best["gini"], gini), "sen": min(best["sen"], sen)}
    return best


def _objectives(accuracies: FloatArray) -> tuple[float, float]:
    """Return the smallest values over rows of class accuracies, shape (n, n_classes)."""
    n = accuracies.shape[1]
    pairs = np.abs(accuracies[:, :, None] - accuracies[:, None, :]).sum(axis=(1, 2)) / (2 * n**2)
    means = accuracies.mean(axis=1)
    is_some = means > 0
    gini = (pairs[is_some] / means[is_some]).min() if is_some.any() else np.inf
    return float(gini), float((1 - (means - pairs)).min())
