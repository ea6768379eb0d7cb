"""The problem that a solver solves: rows with known classes, and an objective to minimise.

Objectives are computed from the numbers of right rows in each class. With the mean Ā of the N class accuracies, and D,
half their mean absolute difference over all ordered pairs, they are 1 - Ā + D (``sen``) and D / Ā (``gini``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.rules import PAPER_RULES, ClassRules, RuleSet

ObjectiveName: TypeAlias = Literal["sen", "gini"]
LEAST_CLASSES = 2
"""Smallest number of classes that can be more or less even."""
ROUNDING = 1e-12
"""Difference between accuracies or objectives that rounding can cause."""
# Larger than any gain of an objective per unit of mean accuracy, so that going below the floor never pays.
_PENALTY = 10.0


class Annealing(NamedTuple):
    """The schedule of simulated annealing, for objectives in [0, 1]."""

    temperature: float = 0.1
    """Temperature of the first level."""
    cooling: float = 0.95
    """Factor from the temperature of one level to that of the next."""
    stop_ratio: float = 1e-3
    """Share of the first temperature below which the search stops."""
    moves_per_level: int | None = None
    """Number of proposals at each temperature; None for ten per class, but at least 200."""
    # Of 120 single searches with 30 weights and 4 classes, 106 found the optimum of all 30^4 combinations.
    n_restarts: int = 3
    """Number of independent searches, of which the best one counts."""


DEFAULT_SCHEDULE = Annealing()


@dataclass(frozen=True, eq=False)
class Objective:
    """An objective on some rows, with a floor under the mean accuracy."""

    name: ObjectiveName
    supports: IntArray
    """Number of rows of each class, shape (n_classes,)."""
    floor: float | None = None
    """Smallest mean accuracy of the classes; None for any."""

    def __call__(self, n_right: FloatArray) -> FloatArray:
        """Return the value, shape (...,), smaller is better; infinity where nothing is right.

        Args:
            n_right: Number of right rows of each class, shape (..., n_classes).
        """
        accuracies = self._accuracies(n_right)
        n = accuracies.shape[-1]
        mean = accuracies.sum(axis=-1) / n
        # Like statistics.class_accuracies.mean_difference, but without its handling of classes without rows.
        difference = np.sort(accuracies, axis=-1) @ self._pair_weights / n**2
        with np.errstate(divide="ignore", invalid="ignore"):
            value = 1.0 - mean + difference if self.name == "sen" else difference / mean
        if self.floor is not None:
            value = value + _PENALTY * np.maximum(self.floor - mean, 0.0)
        # Accuracies of 0 are equal too: by inequality alone, "all wrong" would be an optimum.
        return np.where(mean > 0, value, np.inf)

    def mean(self, n_right: FloatArray) -> FloatArray:
        """Return the mean accuracy of the classes that occur, shape (...,)."""
        accuracies = self._accuracies(n_right)
        mean: FloatArray = accuracies.sum(axis=-1) / accuracies.shape[-1]
        return mean

    def is_met(self, n_right: FloatArray) -> bool:
        """Return True if the mean accuracy is not below the floor."""
        return self.floor is None or bool(self.mean(n_right) >= self.floor - ROUNDING)

    def _accuracies(self, n_right: FloatArray) -> FloatArray:
        occurring, supports = self._occurring
        accuracies: FloatArray = n_right[..., occurring] / supports
        return accuracies

    @cached_property
    def _occurring(self) -> tuple[slice | IntArray, FloatArray]:
        """The classes that occur, and their numbers of rows."""
        # A slice avoids a copy, and annealing calls this 100,000 times.
        occurring = slice(None) if (self.supports > 0).all() else np.flatnonzero(self.supports)
        return occurring, self.supports[occurring].astype(np.float64)

    @cached_property
    def _pair_weights(self) -> FloatArray:
        """In how many more pairs each of the sorted accuracies is the larger than the smaller one, shape (n,)."""
        n = len(self._occurring[1])
        return 2.0 * np.arange(n, dtype=np.float64) + 1 - n


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with known classes, and the objective to minimise."""

    probabilities: FloatArray
    """Probability of each class in each row, shape (n, n_classes)."""
    targets: IntArray
    """Index of the right class of each row, shape (n,)."""
    objective: Objective
    rule_set: RuleSet = PAPER_RULES
    """Rules that annealing may choose from."""
    annealing: Annealing = DEFAULT_SCHEDULE
    seed: int = 0

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.objective.supports)

    @cached_property
    def order(self) -> IntArray:
        """The indices of the classes that occur, the most probable first.

        Solvers visit classes in this order, so that results do not depend on the names or the order of the classes.
        """
        means = self.probabilities.mean(axis=0)
        occurring = np.flatnonzero(self.objective.supports)
        return occurring[np.argsort(-means[occurring], kind="stable")]

    def n_right(self, rules: ClassRules) -> FloatArray:
        """Return how many rows of each class some rules predict right, shape (n_classes,)."""
        return self.n_right_of(rules.predict(self.probabilities))

    def n_right_of(self, predicted: IntArray) -> FloatArray:
        """Return how many rows of each class are right among predictions, which have the shape (n,)."""
        return np.bincount(self.targets[predicted == self.targets], minlength=self.n_classes).astype(np.float64)

    def score(self, n_right: FloatArray) -> tuple[float, float]:
        """Return the objective and, to decide between equal ones, the negated mean accuracy; smaller is better."""
        return float(self.objective(n_right)), -float(self.objective.mean(n_right))

    def centred(self, log_weights: FloatArray) -> FloatArray:
        """Return logarithms of weights, shape (n_classes,), centred at 0, with 0 for classes without rows.

        Nothing is known about such classes, and every search would forbid them.
        """
        occurs = self.objective.supports > 0
        centred: FloatArray = np.where(occurs, log_weights - log_weights[occurs].mean(), 0.0)
        return centred
