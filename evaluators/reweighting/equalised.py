"""Weights by raising those of classes below the mean accuracy and lowering the others, again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluators.reweighting.problem import Problem, Score
from evaluators.statistics.bootstrap import FloatArray
from evaluators.statistics.class_accuracies import mean_accuracy

N_STEPS = 400
_FIRST_STEP = 2.0
_SLOWING = 20.0
"""Number of steps after which the step size is halved."""


class Equalised(NamedTuple):
    """The logarithms of weights along a search, each of shape (n_classes,)."""

    best: FloatArray
    """Those with the best objective."""
    last: FloatArray


def equalised_log_weights(problem: Problem) -> Equalised:
    """Return weights under which classes are about equally accurate.

    The logarithm of a class's weight rises by ``2 / (1 + t / 20)`` times the distance of its accuracy below the mean
    accuracy in step t, in the manner of multiplicative weights.
    """
    supports = problem.objective.supports
    log_weights = np.zeros(problem.n_classes)
    best, best_score = log_weights, Score(np.inf, 0.0)
    for step in range(N_STEPS):
        weights = np.exp(log_weights - log_weights.max())
        counts = problem.counts_of((problem.probabilities * weights).argmax(axis=1))
        score = problem.score(counts)
        if score < best_score:
            best, best_score = log_weights, score
        accuracies = np.where(supports > 0, counts.right / np.maximum(supports, 1), np.nan)
        change = np.nan_to_num(mean_accuracy(accuracies) - accuracies)
        log_weights = problem.neutral(log_weights + _FIRST_STEP / (1 + step / _SLOWING) * change)
    return Equalised(best, log_weights)
