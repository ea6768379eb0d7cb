"""The problem that a solver solves: rows with known classes, and an objective of the counts of right predictions.

Each file in ``evaluators/reweighting/solvers`` is a solver. It holds ``SOLVER``, an object that fits :class:`Solver`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from evaluators.reweighting.objectives import Counts, Objective
from evaluators.reweighting.rules import ClassRules, RuleSet
from evaluators.statistics.bootstrap import FloatArray, IntArray
from schemas import plugins

_PACKAGE = "evaluators.reweighting.solvers"


class Annealing(NamedTuple):
    """The schedule of simulated annealing, for objectives of values in [0, 1]."""

    temperature: float = 0.1
    """Temperature of the first level."""
    cooling: float = 0.95
    """Factor from the temperature of one level to that of the next."""
    stop_ratio: float = 1e-3
    """Share of the first temperature below which the search stops."""
    moves_per_level: int | None = None
    """Number of proposals at each temperature; None for ten per class, and 200 at least."""
    n_restarts: int = 3
    """Number of independent searches, of which the best one counts."""


DEFAULT_SCHEDULE = Annealing()


class Score(NamedTuple):
    """The worth of a candidate: smaller is better, and the objective comes before the mean accuracy."""

    objective: float
    negative_mean: float
    """Mean accuracy of the classes, with a minus."""


class Candidate(NamedTuple):
    """Rules that a solver proposes."""

    name: str
    """The way in which it was found, in a few words."""
    rules: ClassRules


class Solution(NamedTuple):
    """The candidates of a solver, of which the caller takes the best."""

    candidates: tuple[Candidate, ...]
    n_evaluations: int
    """Number of times that the objective was computed."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with known classes, and the objective to make small."""

    probabilities: FloatArray
    """Probability of each class in each row, shape (n, n_classes)."""
    targets: IntArray
    """Index of the right class of each row, shape (n,)."""
    objective: Objective
    rule_set: RuleSet
    """Rules that a search over rules may choose from."""
    annealing: Annealing = DEFAULT_SCHEDULE
    seed: int = 0

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.objective.supports)

    @cached_property
    def order(self) -> IntArray:
        """The indices of the classes that occur, the most probable first.

        Solvers visit classes in this order, so that the names and the order of the classes do not matter.
        """
        means = self.probabilities.mean(axis=0)
        occurring = np.flatnonzero(self.objective.supports)
        return occurring[np.argsort(-means[occurring], kind="stable")]

    def counts(self, rules: ClassRules) -> Counts:
        """Return how many rows of each class are right under some rules, and predicted as each class."""
        return self.counts_of(rules.predict(self.probabilities))

    def counts_of(self, predicted: IntArray) -> Counts:
        """Return the counts of predictions, shape (n,)."""
        right = np.bincount(self.targets[predicted == self.targets], minlength=self.n_classes)
        by_class = np.bincount(predicted, minlength=self.n_classes)
        return Counts(right.astype(np.float64), by_class.astype(np.float64))

    def score(self, counts: Counts) -> Score:
        """Return how good some counts are."""
        return Score(float(self.objective(counts)), -float(self.objective.mean(counts)))

    def neutral(self, log_weights: FloatArray) -> FloatArray:
        """Return logarithms of weights, shape (n_classes,), in which a class without rows has the mean of the others.

        Nothing is known about such a class, and without rows every search would forbid it.
        """
        occurs = self.objective.supports > 0
        centred: FloatArray = np.where(occurs, log_weights - log_weights[occurs].mean(), 0.0)
        return centred


class Solver(Protocol):
    """A way to find rules."""

    @property
    def name(self) -> str:
        """The name of the solver, which is also the name of its file."""

    @property
    def description(self) -> str:
        """A sentence that says how it searches."""

    @property
    def chooses_rules(self) -> bool:
        """True if it searches among the rules of a set; False if its weights may be any numbers."""

    def solve(self, problem: Problem) -> Solution:
        """Return candidates, of which at least one is good."""


def solver_names() -> list[str]:
    """Return the names of all solvers."""
    return list(plugins.names(_PACKAGE))


def load_solver(name: str) -> Solver:
    """Return the solver of a name.

    Raises:
        ConfigError: there is no such solver.
    """
    solver: Solver = plugins.load(_PACKAGE, name, kind="solver", defines="SOLVER").SOLVER
    return solver
