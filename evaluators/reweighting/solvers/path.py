"""Searches the path from no correction to a balanced logistic model, and on to equal class accuracies."""

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
    description: str = "Goes from no correction to those of 'convex' and on to equal accuracies; one number is chosen."
    chooses_rules: bool = False

    def solve(self, problem: Problem) -> Solution:
        """Return the points of the path."""
        convex = balanced_log_weights(problem)
        even = equalised_log_weights(problem).last
        points = [
            Candidate(f"{share:.0%} of the way {name}", ClassRules.of_weights(np.exp(start + share * (end - start))))
            for name, start, end in (
                ("to convex", np.zeros_like(convex), convex),
                ("to equal accuracies", convex, even),
            )
            for share in np.linspace(0.0, 1.0, _N_POINTS).tolist()[1:]
        ]
        return Solution(tuple(points), N_STEPS + len(points))


SOLVER = PathSolver()
