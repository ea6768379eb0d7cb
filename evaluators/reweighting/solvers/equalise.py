"""Raises the weights of inaccurate classes and lowers those of accurate ones until all are about equally accurate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluators.reweighting.equalised import N_STEPS, equalised_log_weights
from evaluators.reweighting.problem import Candidate, Problem, Solution
from evaluators.reweighting.rules import ClassRules


@dataclass(frozen=True)
class EqualiseSolver:
    """Weights from a fixed number of steps towards equal accuracies."""

    name: str = "equalise"
    description: str = "Moves weights towards equal class accuracies step by step, and keeps the best step."
    chooses_rules: bool = False

    def solve(self, problem: Problem) -> Solution:
        """Return the best weights on the way."""
        found = equalised_log_weights(problem)
        return Solution((Candidate("best step", ClassRules.of_weights(np.exp(found.best))),), N_STEPS)


SOLVER = EqualiseSolver()
