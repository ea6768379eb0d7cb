"""The best objectives among all combinations of linear weights, found by trying them all."""

from __future__ import annotations

import itertools

import numpy as np

from biasboard.ground.columns import FloatArray
from tests.evaluators.reweighting.made import Made


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
