"""Improves the weight of one class after the other by an exact search over all values that change a prediction.

A class wins a row as soon as its weight exceeds the row's threshold, the best other value over its own probability.
Between two thresholds nothing changes, so that sorting them gives the counts at every weight::

    thresholds     0.2        0.5   0.6             1.4        rows in which it is the right class: 0.2 and 1.4
    weights   w0  -o-   w1   -x-   -x-     w2      -o-   w3    right rows of the class: 0 at w0, 1 at w1, w2, 2 at w3

For a monotone objective only w0, w1 and w3 can be best: between w1 and w2 the class wins rows of others, and none of
its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.problem import ROUNDING, Candidate, Counts, Problem, Solution
from evaluators.calibration.reweighting.rules import ClassRules
from evaluators.calibration.reweighting.starts import N_STEPS, balanced_log_weights, equalised_log_weights
from evaluators.calibration.reweighting.top_two import TopTwo

_MOST_SWEEPS = 50
# Relative distance of thresholds below which they are one, so that rounding cannot decide on which side a row is.
_SAME = 1e-9
# Weights between which the search looks; a row that needs more is never won, and one that needs less is never lost.
_LEAST, _MOST = 1e-13, 1e13


def solve(problem: Problem) -> Solution:
    """Return both starts, and where line searches over the weights of single classes end from each of them."""
    starts = {"equal accuracies": equalised_log_weights(problem).best, "convex": balanced_log_weights(problem)}
    candidates, n_evaluations = [], N_STEPS
    for name, log_weights in starts.items():
        start = ClassRules.of_weights(np.exp(log_weights))
        weights, n_tried = _improved(problem, start.weights)
        n_evaluations += n_tried
        candidates += [Candidate(name, start), Candidate(f"from {name}", ClassRules.of_weights(weights))]
    return Solution(tuple(candidates), n_evaluations)


def _improved(problem: Problem, start: FloatArray) -> tuple[FloatArray, int]:
    """Return weights of which no single one can be improved, and the number of weights that were tried."""
    objective, weights, n_tried = problem.objective, start.copy(), 0
    top = TopTwo(problem.probabilities, problem.targets, problem.probabilities * weights)

    def value() -> float:
        return float(objective(top.counts(with_predicted=objective.needs_predicted)))

    before = value()
    for _ in range(_MOST_SWEEPS):
        for place in problem.order.tolist():
            line = _line(top, place, objective.is_monotone, with_predicted=objective.needs_predicted)
            if line is None:
                continue
            n_tried += len(line.weights)
            values = objective(line.counts)
            best = np.flatnonzero(values <= values.min() + ROUNDING)
            # Of equally good weights that of higher mean accuracy, then the one nearest to the present weight.
            means = objective.mean(Counts(line.counts.right[best], None))
            best = best[means >= means.max() - ROUNDING]
            distances = np.abs(np.log(line.weights[best] / weights[place]))
            weights[place] = line.weights[best[np.argmin(distances)]]
            top.accept(place, top.probabilities[place] * weights[place])
        after = value()
        if not after < before - ROUNDING:
            break
        before = after
    return weights, n_tried


class _Line(NamedTuple):
    """The counts at all weights of one class that can be best."""

    weights: FloatArray
    """Weights, shape (n_points,)."""
    counts: Counts
    """Counts at each weight, shape (n_points, n_classes)."""


def _line(top: TopTwo, place: int, is_monotone: bool, *, with_predicted: bool) -> _Line | None:
    """Return the line of a class; None if no weight changes anything.

    Args:
        top: The present values.
        place: Index of the class.
        is_monotone: True if weights between two own rows of the class cannot be best, as in the picture above.
        with_predicted: True to count how often each class is predicted.
    """
    probabilities, others = top.probabilities[place], top.others(place)
    own = np.zeros(len(probabilities), dtype=np.bool_)
    own[top.own_rows(place)] = True
    # A row in which neither this class nor the best other one is right changes no count of right rows.
    matters = np.ones_like(own) if with_predicted else own | others.are_right
    rows = np.flatnonzero(matters & (probabilities > 0) & (others.values > 0))
    with np.errstate(over="ignore"):
        # A row in which the class has next to no probability needs an infinite weight.
        thresholds = others.values[rows] / probabilities[rows]
    order = np.argsort(thresholds, kind="stable")
    order = order[(thresholds[order] > _LEAST) & (thresholds[order] < _MOST)]
    if not len(order):
        return None
    rows, thresholds = rows[order], thresholds[order]
    groups = np.concatenate([[0], np.cumsum(thresholds[1:] > thresholds[:-1] * (1 + _SAME))])
    stops = np.unique(groups[own[rows]]) if is_monotone else np.arange(groups[-1] + 1)
    # A weight below all thresholds, and one between the group of thresholds of each stop and the next group.
    firsts = thresholds[np.searchsorted(groups, np.arange(groups[-1] + 1))]
    lasts = thresholds[np.searchsorted(groups, np.arange(groups[-1] + 1), side="right") - 1]
    nexts = np.append(firsts[1:], _MOST)
    weights = np.sqrt(np.concatenate([[_LEAST * firsts[0]], lasts[stops] * nexts[stops]]))
    lowest = top.trial(place, probabilities * weights[0], with_predicted=with_predicted)
    return _Line(weights, _counts(top, place, rows, np.searchsorted(stops, groups), len(stops), lowest))


def _counts(top: TopTwo, place: int, rows: IntArray, stops: IntArray, n_stops: int, lowest: Counts) -> Counts:
    """Return the counts below all thresholds and after each stop.

    Args:
        top: The present values.
        place: Index of the class.
        rows: Rows in the order in which the class wins them.
        stops: Number of the first stop at which each of these rows is won; ``n_stops`` if it is won after all.
        n_stops: Number of stops.
        lowest: Counts at a weight at which none of these rows is won.
    """
    n_classes = len(lowest.right)
    won, stops = rows[stops < n_stops], stops[stops < n_stops]
    targets, others = top.targets[won], top.others(place)
    was_right = others.are_right[won]
    right = -_by_stop(stops[was_right], targets[was_right], n_stops, n_classes)
    right[:, place] += np.bincount(stops[targets == place], minlength=n_stops)
    right = np.cumsum(np.vstack([lowest.right, right]), axis=0)
    if lowest.predicted is None:
        return Counts(right, None)
    predicted = -_by_stop(stops, others.classes[won], n_stops, n_classes)
    predicted[:, place] += np.bincount(stops, minlength=n_stops)
    return Counts(right, np.cumsum(np.vstack([lowest.predicted, predicted]), axis=0))


def _by_stop(stops: IntArray, classes: IntArray, n_stops: int, n_classes: int) -> FloatArray:
    """Return the number of rows at each stop by class, shape (n_stops, n_classes)."""
    numbers = np.bincount(stops * n_classes + classes, minlength=n_stops * n_classes)
    return numbers.reshape(n_stops, n_classes).astype(np.float64)
