"""Weights that need no search over single rows: a balanced logistic model, and steps towards equal accuracies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.problem import Problem, Score
from evaluators.statistics.class_accuracies import mean_accuracy

N_STEPS = 400
"""Number of steps towards equal accuracies."""
_FIRST_STEP = 2.0
# Number of steps after which the step size is halved.
_SLOWING = 20.0
# Share of the largest probability of its row below which a probability counts as this share, as 0 does.
_SMALLEST_SHARE = 1e-12
# Strength with which biases are held near 0, so that classes that the model separates entirely stay finite.
_RIDGE = 1e-6
# Where the right classes are the least probable ones, the likelihood wants a slope of 0 or less, and b / a explodes.
_SMALLEST_SLOPE = 0.05
_MOST_STEPS, _MOST_HALVINGS, _SUFFICIENT = 100, 40, 1e-10


class Equalised(NamedTuple):
    """The logarithms of weights along the steps towards equal accuracies, each of shape (n_classes,)."""

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
        log_weights = problem.centred(log_weights + _FIRST_STEP / (1 + step / _SLOWING) * change)
    return Equalised(best, log_weights)


def balanced_log_weights(problem: Problem) -> FloatArray:
    """Return the logarithms of the weights of classes that a balanced logistic model gives, shape (n_classes,).

    The model is ``softmax(a · log p + b)``, fitted by Newton's method to the mean over classes of the mean
    log-likelihood of their rows. Its largest value is that of ``log p + b / a``, hence the weights ``exp(b / a)``. It
    is convex, so that its solution is unique; and it follows all rows with few parameters, so that it overfits least:
    with 10 rows in each of 14 classes its Gini index was no worse on other rows than on the fitted ones, where that of
    searches that follow single rows went from 0.03 to 0.09.
    """
    occurs = problem.objective.supports > 0
    probabilities = problem.probabilities[:, occurs]
    largest = probabilities.max(axis=1, keepdims=True)
    shares_of_largest = np.divide(probabilities, largest, out=np.ones_like(probabilities), where=largest > 0)
    model = _Logistic(
        log_odds=np.log(np.maximum(shares_of_largest, _SMALLEST_SHARE)),
        targets=(np.cumsum(occurs) - 1)[problem.targets],
        row_weights=1.0 / (occurs.sum() * problem.objective.supports[problem.targets]),
    )
    parameters = np.concatenate([np.zeros(int(occurs.sum())), [1.0]])
    loss = model.loss(parameters)
    for _ in range(_MOST_STEPS):
        new, new_loss = model.step(parameters, loss)
        if loss - new_loss <= _SUFFICIENT:
            break
        parameters, loss = new, new_loss
    log_weights = np.zeros(problem.n_classes)
    log_weights[occurs] = parameters[:-1] / parameters[-1]
    return problem.centred(log_weights)


class _Logistic(NamedTuple):
    """A logistic model of the classes that occur; its parameters are their biases and then the slope."""

    log_odds: FloatArray
    targets: IntArray
    row_weights: FloatArray
    """Weights of the rows, which sum to 1."""

    def loss(self, parameters: FloatArray) -> float:
        """Return the negative log-likelihood of parameters, shape (n_classes + 1,)."""
        scores = self._scores(parameters)
        rows = np.arange(len(scores))
        ridge = _RIDGE / 2 * float((parameters[:-1] ** 2).sum())
        return float(self.row_weights @ (np.log(np.exp(scores).sum(axis=1)) - scores[rows, self.targets])) + ridge

    def step(self, parameters: FloatArray, loss: float) -> tuple[FloatArray, float]:
        """Return the parameters after a step of Newton's method that does not raise the loss, and their loss."""
        gradient, curvature = self._derivatives(parameters)
        if parameters[-1] <= _SMALLEST_SLOPE and gradient[-1] > 0:
            # The bound holds the slope, and only the biases can move.
            gradient[-1] = curvature[-1, :-1] = curvature[:-1, -1] = 0.0
        move = np.linalg.solve(curvature, -gradient)
        for halvings in range(_MOST_HALVINGS):
            new = parameters + move / 2**halvings
            new[-1] = max(new[-1], _SMALLEST_SLOPE)
            new_loss = self.loss(new)
            if new_loss <= loss:
                return new, new_loss
        return parameters, loss

    def _scores(self, parameters: FloatArray) -> FloatArray:
        """Return the logarithms of odds of each row, shape (n, n_classes), of which the largest is 0."""
        scores: FloatArray = parameters[-1] * self.log_odds + parameters[:-1]
        scores -= scores.max(axis=1, keepdims=True)
        return scores

    def _derivatives(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        odds = np.exp(self._scores(parameters))
        q = odds / odds.sum(axis=1, keepdims=True)
        weighted = q * self.row_weights[:, None]
        expected = (q * self.log_odds).sum(axis=1)
        n = q.shape[1]
        gradient, curvature = np.empty(n + 1), np.empty((n + 1, n + 1))
        of_targets = np.bincount(self.targets, self.row_weights, minlength=n)
        gradient[:n] = weighted.sum(axis=0) - of_targets + _RIDGE * parameters[:n]
        gradient[n] = self.row_weights @ (expected - self.log_odds[np.arange(len(q)), self.targets])
        curvature[:n, :n] = np.diag(weighted.sum(axis=0) + _RIDGE) - q.T @ weighted
        curvature[n, :n] = curvature[:n, n] = (weighted * (self.log_odds - expected[:, None])).sum(axis=0)
        curvature[n, n] = self.row_weights @ ((q * self.log_odds**2).sum(axis=1) - expected**2) + _RIDGE
        return gradient, curvature
