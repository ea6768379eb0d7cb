"""Searches the straight path from the weights of a balanced logistic model to those of equal class accuracies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluators.reweighting.balanced import balanced_log_weights
from evaluators.reweighting.equalised import N_STEPS, equalised_log_weights
from evaluators.reweighting.problem import Candidate, Problem, Solution
from evaluators.reweighting.rules import ClassRules

_N_POINTS = 21


@dataclass(frozen=True)
class PathSolver:
    """Mixtures of two sets of weights, with a single number to choose."""

    name: str = "path"
    description: str = "Mixes the weights of 'convex' with those of equal accuracies; one number is chosen."
    chooses_rules: bool = False

    def solve(self, problem: Problem) -> Solution:
        """Return the points of the path."""
        start = balanced_log_weights(problem)
        end = equalised_log_weights(problem).last
        points = [
            Candidate(f"{share:.0%} of the way", ClassRules.of_weights(np.exp(start + share * (end - start))))
            for share in np.linspace(0.0, 1.0, _N_POINTS).tolist()
        ]
        return Solution(tuple(points), N_STEPS + _N_POINTS)


SOLVER = PathSolver()
