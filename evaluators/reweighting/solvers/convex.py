"""Solves a convex problem in place of the objective: a logistic model in which all classes count alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluators.reweighting.balanced import balanced_log_weights
from evaluators.reweighting.problem import Candidate, Problem, Solution
from evaluators.reweighting.rules import ClassRules


@dataclass(frozen=True)
class ConvexSolver:
    """Weights of a balanced logistic model, whatever the objective."""

    name: str = "convex"
    description: str = "Fits a logistic model with one bias per class and all classes of equal weight; overfits least."
    chooses_rules: bool = False

    def solve(self, problem: Problem) -> Solution:
        """Return the one candidate."""
        weights = ClassRules.of_weights(np.exp(balanced_log_weights(problem)))
        return Solution((Candidate("convex", weights),), 1)


SOLVER = ConvexSolver()
