"""The objectives of a correction: numbers to make small, computed from how many rows of each class are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from evaluators.statistics.bootstrap import FloatArray, IntArray

ObjectiveName: TypeAlias = Literal["sen", "gini", "cobias", "dcs"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("sen", "gini", "cobias", "dcs")
_PENALTY = 10.0
"""Cost of each unit of mean accuracy below the floor."""
ROUNDING = 1e-12
"""Difference of two accuracies or objectives that rounding can make."""


class DcsWeights(NamedTuple):
    """The weights of the terms of the objective of DNIP and DCS (arXiv:2405.07623, arXiv:2503.05157).

    Its value is ``alpha · error rate + beta · COBias - tau · sum of PMI``, with the pointwise mutual information of the
    predicted and the right class, smoothed by a number of rows.
    """

    alpha: float = 1.0
    beta: float = 2.7
    tau: float = 0.2
    smoothing: float = 4000.0


PAPER_DCS = DcsWeights()
"""Weights that the published configuration lists."""


class Counts(NamedTuple):
    """Numbers of rows by class, of shape (..., n_classes)."""

    right: FloatArray
    """Rows of each class that are predicted right."""
    predicted: FloatArray | None
    """Rows that are predicted as each class; None if they are not counted."""


@dataclass(frozen=True, eq=False)
class Objective:
    """An objective on certain rows, with a floor under the mean accuracy.

    All values are worse than any other where nothing is right: all class accuracies are equal there, and a measure of
    inequality alone would be content.
    """

    name: ObjectiveName
    supports: IntArray
    """Number of rows of each class, shape (n_classes,)."""
    floor: float | None = None
    """Smallest mean accuracy of the classes; None for any."""
    dcs: DcsWeights = PAPER_DCS

    @property
    def needs_predicted(self) -> bool:
        """True if the objective counts how often each class is predicted."""
        return self.name == "dcs"

    @property
    def is_monotone(self) -> bool:
        """True if the value never gets worse when a class gets more accurate and none less."""
        return self.name == "sen"

    @property
    def scale(self) -> float:
        """The size of its values, which temperatures are multiplied by."""
        return max(1.0, self.dcs.alpha + self.dcs.beta) if self.name == "dcs" else 1.0

    def __call__(self, counts: Counts) -> FloatArray:
        """Return the value, shape (...,), smaller is better; infinity where nothing is right."""
        accuracies = self._accuracies(counts)
        mean = accuracies.sum(axis=-1) / accuracies.shape[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = _VALUES[self.name](self, accuracies, mean, counts)
        if self.floor is not None:
            value = value + _PENALTY * np.maximum(self.floor - mean, 0.0)
        return np.where(mean > 0, value, np.inf)

    def mean(self, counts: Counts) -> FloatArray:
        """Return the mean accuracy of the classes that occur, shape (...,)."""
        accuracies = self._accuracies(counts)
        mean: FloatArray = accuracies.sum(axis=-1) / accuracies.shape[-1]
        return mean

    def _accuracies(self, counts: Counts) -> FloatArray:
        """Return the accuracies of the classes that occur, shape (..., n_occurring)."""
        accuracies: FloatArray = counts.right[..., self._occurring] / self._known_supports
        return accuracies

    @cached_property
    def _occurring(self) -> slice | IntArray:
        """The classes that have rows: a slice where all have, since it copies nothing."""
        return slice(None) if (self.supports > 0).all() else np.flatnonzero(self.supports)

    @cached_property
    def _known_supports(self) -> FloatArray:
        return self.supports[self._occurring].astype(np.float64)

    def is_met(self, counts: Counts) -> bool:
        """Return True if the mean accuracy does not lie below the floor."""
        return self.floor is None or bool(self.mean(counts) >= self.floor - ROUNDING)

    def pmi(self, counts: Counts) -> FloatArray:
        """Return the smoothed pointwise mutual information of each class, shape (..., n_classes).

        Raises:
            ValueError: it is not counted how often each class is predicted.
        """
        if counts.predicted is None:
            raise ValueError("the numbers of rows that are predicted as each class are missing; count them")
        n_rows, k = self.supports.sum(), self.dcs.smoothing
        n_classes = len(self.supports)
        joint = (counts.right + k) / (n_rows + k * n_classes**2)
        one, other = ((sums + k) / (n_rows + k * n_classes) for sums in (counts.predicted, self.supports))
        information: FloatArray = np.log(joint / (one * other))
        return information


def _spread(accuracies: FloatArray) -> FloatArray:
    """Return half of the mean absolute difference of two classes: the mean difference without the care for nan."""
    n = accuracies.shape[-1]
    spread: FloatArray = np.sort(accuracies, axis=-1) @ _places(n) / n**2
    return spread


@lru_cache(maxsize=64)
def _places(n: int) -> FloatArray:
    """Return how many more values lie below each of n sorted ones than above it."""
    places = 2.0 * np.arange(n, dtype=np.float64) + 1 - n
    places.setflags(write=False)
    return places


def _gini(objective: Objective, accuracies: FloatArray, mean: FloatArray, counts: Counts) -> FloatArray:
    return _spread(accuracies) / mean


def _sen(objective: Objective, accuracies: FloatArray, mean: FloatArray, counts: Counts) -> FloatArray:
    return 1.0 - mean + _spread(accuracies)


def _cobias(objective: Objective, accuracies: FloatArray, mean: FloatArray, counts: Counts) -> FloatArray:
    n = accuracies.shape[-1]
    # Rows that are held out can be of one class, which has no pair to differ in.
    bias: FloatArray = _spread(accuracies) * (2 * n / max(n - 1, 1))
    return bias


def _dcs(objective: Objective, accuracies: FloatArray, mean: FloatArray, counts: Counts) -> FloatArray:
    error_rate = 1.0 - counts.right.sum(axis=-1) / objective.supports.sum()
    information = objective.pmi(counts).sum(axis=-1) if objective.dcs.tau else 0.0
    bias = _cobias(objective, accuracies, mean, counts)
    value: FloatArray = objective.dcs.alpha * error_rate + objective.dcs.beta * bias - objective.dcs.tau * information
    return value


_VALUES: dict[ObjectiveName, Callable[[Objective, FloatArray, FloatArray, Counts], FloatArray]] = {
    "sen": _sen,
    "gini": _gini,
    "cobias": _cobias,
    "dcs": _dcs,
}
