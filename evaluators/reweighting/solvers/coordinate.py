"""Improves the weight of one class after the other by an exact search over all values that change a prediction.

A class wins a row as soon as its weight exceeds the row's threshold, the best other value over its own probability.
Between two thresholds nothing changes, so that the counts at all weights follow from sorting the thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluators.reweighting.balanced import balanced_log_weights
from evaluators.reweighting.equalised import N_STEPS, equalised_log_weights
from evaluators.reweighting.objectives import ROUNDING, Counts
from evaluators.reweighting.problem import Candidate, Problem, Solution
from evaluators.reweighting.rules import ClassRules
from evaluators.reweighting.standing import Standing
from evaluators.statistics.bootstrap import FloatArray, IntArray

_MOST_SWEEPS = 50
_SAME = 1e-9
"""Relative distance of thresholds below which they are one, so that rounding cannot decide on which side a row is."""
_LEAST, _MOST = 1e-13, 1e13
"""Weights between which the search looks; a row that needs more is never won, and one that needs less is never lost."""


@dataclass(frozen=True)
class CoordinateSolver:
    """Exact line searches over the weights of single classes, from two starting points."""

    name: str = "coordinate"
    description: str = "Searches the weight of one class at a time, exactly, until no single weight can be improved."
    chooses_rules: bool = False

    def solve(self, problem: Problem) -> Solution:
        """Return both starting points, and where the search ends from each of them."""
        starts = {
            "equal accuracies": equalised_log_weights(problem).best,
            "convex": balanced_log_weights(problem),
        }
        found, n_evaluations = [], N_STEPS
        for name, log_weights in starts.items():
            start = ClassRules.of_weights(np.exp(log_weights))
            search = _Search(problem, start.weights)
            search.run()
            n_evaluations += search.n_evaluations
            found += [Candidate(name, start), Candidate(f"from {name}", ClassRules.of_weights(search.weights))]
        return Solution(tuple(found), n_evaluations)


SOLVER = CoordinateSolver()


class _Search:
    """A search from some weights."""

    def __init__(self, problem: Problem, weights: FloatArray) -> None:
        self.problem, self.weights, self.n_evaluations = problem, weights.copy(), 0
        self._standing = Standing(problem.probabilities, problem.targets, problem.probabilities * weights)

    def run(self) -> None:
        """Go over all classes until no weight changes the objective."""
        objective = self.problem.objective
        value = self._value()
        for _ in range(_MOST_SWEEPS):
            before = value
            for one in self.problem.order.tolist():
                line = _Line.of(self._standing, one, objective.is_monotone, with_predicted=objective.needs_predicted)
                if line is None:
                    continue
                self.n_evaluations += len(line.weights)
                weight = self._best(line, float(self.weights[one]))
                self.weights[one] = weight
                self._standing.accept(one, self._standing.probabilities[one] * weight)
            value = self._value()
            if not value < before - ROUNDING:
                break

    def _value(self) -> float:
        counts = self._standing.counts(with_predicted=self.problem.objective.needs_predicted)
        return float(self.problem.objective(counts))

    def _best(self, line: _Line, present: float) -> float:
        """Return the best weight on a line: of the same value that of higher mean accuracy, then the nearest one."""
        values = self.problem.objective(line.counts)
        good = np.flatnonzero(values <= values.min() + ROUNDING)
        means = self.problem.objective.mean(Counts(line.counts.right[good], None))
        good = good[means >= means.max() - ROUNDING]
        return float(line.weights[good[np.argmin(np.abs(np.log(line.weights[good] / present)))]])


class _Line(NamedTuple):
    """The counts at all weights of one class that can be best."""

    weights: FloatArray
    """Weights, shape (n_points,)."""
    counts: Counts
    """Counts at each weight, shape (n_points, n_classes)."""

    @classmethod
    def of(cls, standing: Standing, one: int, is_monotone: bool, *, with_predicted: bool) -> _Line | None:
        """Return the line of a class; None if no weight changes anything.

        Args:
            standing: The present state.
            one: Index of the class.
            is_monotone: True if only weights need a look just above which no row of the class itself is won: between
                them other classes lose rows and nobody wins one.
            with_predicted: True to count how often each class is predicted.
        """
        probabilities, others = standing.probabilities[one], standing.others(one)
        own = np.zeros(len(probabilities), dtype=np.bool_)
        own[standing.own_rows(one)] = True
        matters = own | others.are_right
        if with_predicted:
            matters = np.ones_like(own)
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
        weights = _between(thresholds, groups, stops)
        lowest = standing.trial(one, probabilities * weights[0], with_predicted=with_predicted)
        return cls(weights, _counts(standing, one, rows, np.searchsorted(stops, groups), len(stops), lowest))


def _between(thresholds: FloatArray, groups: IntArray, stops: IntArray) -> FloatArray:
    """Return a weight below all thresholds, and one between each chosen group of thresholds and the next group."""
    firsts = thresholds[np.searchsorted(groups, np.arange(groups[-1] + 1))]
    lasts = thresholds[np.searchsorted(groups, np.arange(groups[-1] + 1), side="right") - 1]
    nexts = np.append(firsts[1:], _MOST)
    weights: FloatArray = np.sqrt(np.concatenate([[_LEAST * firsts[0]], lasts[stops] * nexts[stops]]))
    return weights


def _counts(standing: Standing, one: int, rows: IntArray, stops: IntArray, n_stops: int, lowest: Counts) -> Counts:
    """Return the counts below all thresholds and after each stop.

    Args:
        standing: The present state.
        one: Index of the class.
        rows: Rows in the order in which the class wins them.
        stops: Number of the first stop at which each of these rows is won; ``n_stops`` if it is won after all.
        n_stops: Number of stops.
        lowest: Counts at a weight at which none of these rows is won.
    """
    won, stops = rows[stops < n_stops], stops[stops < n_stops]
    targets = standing.targets[won]
    others = standing.others(one)
    is_own, was_right = targets == one, others.are_right[won]
    right = -_by_stop(stops[was_right], targets[was_right], n_stops, len(lowest.right))
    right[:, one] += np.bincount(stops[is_own], minlength=n_stops)
    right = np.cumsum(np.vstack([lowest.right, right]), axis=0)
    if lowest.predicted is None:
        return Counts(right, None)
    predicted = -_by_stop(stops, others.classes[won], n_stops, len(lowest.right))
    predicted[:, one] += np.bincount(stops, minlength=n_stops)
    return Counts(right, np.cumsum(np.vstack([lowest.predicted, predicted]), axis=0))


def _by_stop(stops: IntArray, classes: IntArray, n_stops: int, n_classes: int) -> FloatArray:
    """Return the number of rows at each stop by class, shape (n_stops, n_classes)."""
    numbers = np.bincount(stops * n_classes + classes, minlength=n_stops * n_classes)
    return numbers.reshape(n_stops, n_classes).astype(np.float64)
