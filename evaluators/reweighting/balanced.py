"""Weights from a logistic model in which all classes count alike: one bias for each class, and one temperature.

The model is convex, so that its solution is unique. It has few parameters and follows all rows, not only those near a
border, so that it overfits least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluators.reweighting.problem import Problem
from evaluators.statistics.bootstrap import FloatArray, IntArray

_SMALLEST_SHARE = 1e-12
"""Share of the largest probability of its row below which a probability counts as this share, as 0 does."""
_RIDGE = 1e-6
"""Strength with which biases are held near 0, so that classes that the model separates entirely stay finite."""
_SMALLEST_SLOPE = 0.05
_MOST_STEPS = 100
_MOST_HALVINGS = 40
_SUFFICIENT = 1e-10


def balanced_log_weights(problem: Problem) -> FloatArray:
    """Return the logarithms of the weights of classes that a balanced logistic model gives, shape (n_classes,).

    The model is ``softmax(a · log p + b)``, fitted by Newton's method to the mean over classes of the mean
    log-likelihood of their rows. Its largest value is that of ``log p + b / a``, hence the weights ``exp(b / a)``.
    """
    occurs = problem.objective.supports > 0
    probabilities = problem.probabilities[:, occurs]
    largest = probabilities.max(axis=1, keepdims=True)
    shares_of_largest = np.divide(probabilities, largest, out=np.ones_like(probabilities), where=largest > 0)
    log_odds = np.log(np.maximum(shares_of_largest, _SMALLEST_SHARE))
    targets = (np.cumsum(occurs) - 1)[problem.targets]
    shares = 1.0 / (occurs.sum() * problem.objective.supports[problem.targets])
    model = _Logistic(log_odds, targets, shares)
    parameters = np.concatenate([np.zeros(int(occurs.sum())), [1.0]])
    value = model.loss(parameters)
    for _ in range(_MOST_STEPS):
        new, new_value = model.step(parameters, value)
        if value - new_value <= _SUFFICIENT:
            break
        parameters, value = new, new_value
    log_weights = np.zeros(problem.n_classes)
    log_weights[occurs] = parameters[:-1] / parameters[-1]
    return problem.neutral(log_weights)


class _Logistic(NamedTuple):
    """A logistic model with biases and a slope, on some rows."""

    log_odds: FloatArray
    targets: IntArray
    shares: FloatArray
    """Weight of each row, which sum to 1."""

    def loss(self, parameters: FloatArray) -> float:
        """Return the negative log-likelihood of the biases and the slope, shape (n_classes + 1,)."""
        scores = self._scores(parameters)
        rows = np.arange(len(scores))
        ridge = _RIDGE / 2 * float((parameters[:-1] ** 2).sum())
        return float(self.shares @ (np.log(np.exp(scores).sum(axis=1)) - scores[rows, self.targets])) + ridge

    def step(self, parameters: FloatArray, value: float) -> tuple[FloatArray, float]:
        """Return the parameters after a step of Newton's method that does not raise the loss, and their loss."""
        gradient, curvature = self._derivatives(parameters)
        if parameters[-1] <= _SMALLEST_SLOPE and gradient[-1] > 0:
            # The bound holds the slope, and only the biases can move.
            gradient[-1] = curvature[-1, :-1] = curvature[:-1, -1] = 0.0
        move = np.linalg.solve(curvature, -gradient)
        for halvings in range(_MOST_HALVINGS):
            new = parameters + move / 2**halvings
            new[-1] = max(new[-1], _SMALLEST_SLOPE)
            new_value = self.loss(new)
            if new_value <= value:
                return new, new_value
        return parameters, value

    def _scores(self, parameters: FloatArray) -> FloatArray:
        """Return the logarithms of odds of each row, shape (n, n_classes), of which the largest is 0."""
        scores: FloatArray = parameters[-1] * self.log_odds + parameters[:-1]
        scores -= scores.max(axis=1, keepdims=True)
        return scores

    def _derivatives(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        odds = np.exp(self._scores(parameters))
        q = odds / odds.sum(axis=1, keepdims=True)
        weighted = q * self.shares[:, None]
        expected = (q * self.log_odds).sum(axis=1)
        n = q.shape[1]
        gradient, curvature = np.empty(n + 1), np.empty((n + 1, n + 1))
        of_targets = np.bincount(self.targets, self.shares, minlength=n)
        gradient[:n] = weighted.sum(axis=0) - of_targets + _RIDGE * parameters[:n]
        gradient[n] = self.shares @ (expected - self.log_odds[np.arange(len(q)), self.targets])
        curvature[:n, :n] = np.diag(weighted.sum(axis=0) + _RIDGE) - q.T @ weighted
        curvature[n, :n] = curvature[:n, n] = (weighted * (self.log_odds - expected[:, None])).sum(axis=0)
        curvature[n, n] = self.shares @ ((q * self.log_odds**2).sum(axis=1) - expected**2) + _RIDGE
        return gradient, curvature
