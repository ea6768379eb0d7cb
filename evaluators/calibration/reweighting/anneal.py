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

import numpy as np

from biasboard.ground.columns import IntArray
from evaluators.calibration.reweighting.problem import ROUNDING, Candidate, Problem, Score, Solution
from evaluators.calibration.reweighting.top_two import TopTwo

_MOVES_PER_CLASS, _LEAST_MOVES = 10, 200
_SHARE_OF_STEPS = 0.5
# Probability that a step goes to the next rule; each further rule is less probable by the same share.
_NEARNESS = 0.3


def solve(problem: Problem) -> Solution:
    """Return the best rules of each restart, which is annealing followed by single improvements."""
    candidates, n_evaluations = [], 0
    for restart in range(problem.annealing.n_restarts):
        search = _Search(problem)
        search.anneal(np.random.default_rng(problem.seed + restart))
        search.improve()
        candidates.append(Candidate(f"restart {restart}", problem.rule_set.rules(search.best)))
        n_evaluations += search.n_evaluations
    return Solution(tuple(candidates), n_evaluations)


class _Search:
    """A search from the rules that change nothing."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.n_evaluations = problem, 0
        self._numbers = problem.rule_set.numbers
        start = int(np.flatnonzero(self._numbers == problem.rule_set.identity)[0])
        # The rule of each class, as its place among the numbers.
        self._places = np.full(problem.n_classes, start)
        rules = problem.rule_set.rules(self._numbers[self._places])
        self._top = TopTwo(problem.probabilities, problem.targets, rules.transform(problem.probabilities))
        counts = self._top.counts(with_predicted=problem.objective.needs_predicted)
        self._score = self._best_score = problem.score(counts)
        self._best_places = self._places.copy()

    @property
    def best(self) -> IntArray:
        """The numbers of the best rules so far, shape (n_classes,)."""
        numbers: IntArray = self._numbers[self._best_places]
        return numbers

    def anneal(self, rng: np.random.Generator) -> None:
        """Try random changes, of which worsening ones are accepted ever more rarely."""
        schedule, order, n_rules = self.problem.annealing, self.problem.order, len(self._numbers)
        n_moves = schedule.moves_per_level or max(_MOVES_PER_CLASS * len(order), _LEAST_MOVES)
        first = temperature = schedule.temperature * self.problem.objective.scale
        while temperature >= schedule.stop_ratio * first and n_rules > 1:
            classes = order[rng.integers(len(order), size=n_moves)].tolist()
            others = rng.integers(n_rules - 1, size=n_moves).tolist()
            steps = _steps(rng, n_moves)
            chances = rng.random(n_moves).tolist()
            for of_class, other, step, chance in zip(classes, others, steps, chances, strict=True):
                place = int(self._places[of_class]) + step
                if step == 0 or not 0 <= place < n_rules:
                    # A proposal never equals the present rule.
                    place = other + (other >= self._places[of_class])
                self._propose(of_class, place, chance, temperature)
            temperature *= schedule.cooling

    def improve(self) -> None:
        """Try every rule of every class from the best rules on, until nothing gets better."""
        for of_class in np.flatnonzero(self._places != self._best_places).tolist():
            place = int(self._best_places[of_class])
            value = self.problem.rule_set.value(int(self._numbers[place]), self._top.probabilities[of_class])
            self._top.accept(of_class, value)
            self._places[of_class] = place
        self._score = self._best_score
        is_better = True
        while is_better:
            before = self._best_score
            for of_class in self.problem.order.tolist():
                for place in range(len(self._numbers)):
                    if place != self._places[of_class]:
                        self._propose(of_class, place, 1.0, 0.0)
            is_better = self._best_score.objective < before.objective - ROUNDING

    def _propose(self, of_class: int, place: int, chance: float, temperature: float) -> None:
        """Try a change, and accept it if it is no worse, or by chance; at temperature 0 only if it is better."""
        problem = self.problem
        values = problem.rule_set.value(int(self._numbers[place]), self._top.probabilities[of_class])
        counts = self._top.trial(of_class, values, with_predicted=problem.objective.needs_predicted)
        new = float(problem.objective(counts))
        self.n_evaluations += 1
        # Both can be infinite, where nothing is right, and infinity minus itself is no number.
        worse_by = new - self._score.objective if new > self._score.objective else 0.0
        if worse_by > 0 and (temperature <= 0 or chance >= math.exp(-worse_by / temperature)):
            return
        score = Score(new, -float(problem.objective.mean(counts)))
        if temperature <= 0 and not score < self._score:
            return
        self._top.accept(of_class, values)
        self._places[of_class], self._score = place, score
        if score < self._best_score:
            self._best_score, self._best_places = score, self._places.copy()


def _steps(rng: np.random.Generator, n: int) -> list[int]:
    """Return how far each proposal lies from the present rule, up or down; 0 for any other rule."""
    lengths = rng.geometric(_NEARNESS, size=n) * rng.choice([-1, 1], size=n)
    steps: list[int] = np.where(rng.random(n) < _SHARE_OF_STEPS, lengths, 0).tolist()
    return steps
