"""Fits a correction on rows with known classes: runs the solver of a preset and takes the best of its candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.problem import (
    DEFAULT_SCHEDULE,
    Annealing,
    Candidate,
    Objective,
    ObjectiveName,
    Problem,
    Score,
)
from evaluators.calibration.reweighting.rules import ClassRules, MapKind, prepared
from evaluators.calibration.reweighting.solvers import SOLVERS
from evaluators.statistics.class_accuracies import class_accuracies, gini_index, mean_accuracy, sen_welfare

# With 10 rows in each of 14 classes, a search reached a Gini index of .027 on them and .083 on other rows; balanced
# weights, which overfit least, .064 and .053. From 200 rows on a search was safe.
FEW_ROWS = 50
"""Number of rows of the smallest class below which a search over all classes overfits."""
UNCORRECTED = "uncorrected"
"""Name of the candidate that changes nothing."""
# Objectives that agree in this many digits count as equal, so that probabilities stay uncorrected if nothing is better.
_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a fit."""

    solver: str = "shrunk"
    # The Gini index alone, as in the paper, lowered the mean accuracy in 21 of 55 fits, and Sen welfare in one; hence
    # Sen welfare, and the floor as well.
    objective: ObjectiveName = "sen"
    has_floor: bool = True
    """True if the mean accuracy of the classes on the fitted rows must not fall."""
    annealing: Annealing = DEFAULT_SCHEDULE
    seed: int = 0

    @property
    def map(self) -> MapKind:
        """The kind of the rules."""
        return "full" if SOLVERS[self.solver].chooses_rules else "weights"


PRESETS = {
    "default": Settings(),
    "balanced": Settings(solver="convex"),
    "paper": Settings(solver="anneal", objective="gini", has_floor=False),
}
"""What a user chooses among.

``paper`` follows tables 5 and 6 of arXiv:2603.15654 (AG News, 4 classes, and DDI, 5): equation 10, which is the Gini
index alone, with membership functions and the 30 linear weights of the configuration of DCS, by simulated annealing.
The paper tells neither the schedule nor the number of searches, which are ours (:class:`Annealing`).
"""


def preset_settings(name: str, seed: int = 0) -> Settings:
    """Return the settings of a preset.

    Raises:
        ValueError: there is no such preset, or the seed is no whole number from 0.
    """
    if name not in PRESETS:
        raise ValueError(f"preset '{name}' does not exist; have: {', '.join(PRESETS)}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"the seed is {seed}; give a whole number from 0")
    return replace(PRESETS[name], seed=int(seed))


class FittedCandidate(NamedTuple):
    """A candidate of the solver, with its measures on the fitted rows."""

    name: str
    objective: float | None
    """Value of the objective, smaller is better; None where nothing is right."""
    mean_class_accuracy: float
    gini: float | None
    sen_welfare: float
    is_allowed: bool
    """True if the mean accuracy is not below the floor."""


class FittedAccuracies(NamedTuple):
    """Class accuracies on the fitted rows before and after the correction, each of shape (n_classes,)."""

    before: FloatArray
    after: FloatArray
    supports: IntArray
    micro_before: float
    micro_after: float


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted correction."""

    rules: ClassRules
    counted: tuple[tuple[Candidate, FloatArray], ...]
    """All candidates, the uncorrected probabilities first, and the right rows of each class among the fitted ones."""
    objective: Objective
    chosen: str
    """Name of the chosen candidate."""
    n_evaluations: int
    accuracies: FittedAccuracies
    notes: tuple[str, ...]
    """Warnings about losses and overfitting."""

    @cached_property
    def candidates(self) -> tuple[FittedCandidate, ...]:
        """All candidates with their measures, which calibrations never look at."""
        return tuple(_fitted(*counted, self.objective) for counted in self.counted)


def fit_rules(
    probabilities: FloatArray, targets: IntArray, settings: Settings, labels: Sequence[object] | None = None
) -> Fit:
    """Fit the rules of all classes.

    Args:
        probabilities: Probability of each class in each row, shape (n, n_classes), finite and none negative.
        targets: Index of the right class of each row, shape (n,), of at least two classes.
        settings: The settings of the fit.
        labels: Name of each class, for the notes; None for their indices.
    """
    probabilities = prepared(np.ascontiguousarray(probabilities, dtype=np.float64), settings.map)
    supports = np.bincount(targets, minlength=probabilities.shape[1])
    unchanged = Candidate(UNCORRECTED, ClassRules.of_weights(np.ones(len(supports))))
    free = Problem(probabilities, targets, Objective(settings.objective, supports))
    floor = float(free.objective.mean(free.n_right(unchanged.rules))) if settings.has_floor else None
    problem = replace(
        free, objective=replace(free.objective, floor=floor), annealing=settings.annealing, seed=settings.seed
    )
    solution = SOLVERS[settings.solver].solve(problem)
    counted = tuple((tried, problem.n_right(tried.rules)) for tried in (unchanged, *solution.candidates))

    def rank(n_right: FloatArray) -> tuple[bool, Score]:
        """Return the sort key of a candidate: those that keep the floor first, then by the objective."""
        score = problem.score(n_right)
        return not problem.objective.is_met(n_right), Score(*(round(number, _DIGITS) for number in score))

    chosen, _ = min(counted, key=lambda pair: rank(pair[1]))
    before, after = probabilities.argmax(axis=1), chosen.rules.predict(probabilities)
    of_before, of_after = (class_accuracies(targets, predicted, len(supports)) for predicted in (before, after))
    accuracies = FittedAccuracies(
        of_before.accuracies,
        of_after.accuracies,
        of_before.supports,
        float((before == targets).mean()),
        float((after == targets).mean()),
    )
    names = [str(label) for label in (range(len(supports)) if labels is None else labels)]
    notes = tuple(_notes(accuracies, settings, names))
    return Fit(chosen.rules, counted, problem.objective, chosen.name, solution.n_evaluations, accuracies, notes)


def _fitted(candidate: Candidate, n_right: FloatArray, objective: Objective) -> FittedCandidate:
    value = float(objective(n_right))
    occurs = objective.supports > 0
    accuracies = n_right[occurs] / objective.supports[occurs]
    gini = float(gini_index(accuracies))
    return FittedCandidate(
        candidate.name,
        value if math.isfinite(value) else None,
        float(mean_accuracy(accuracies)),
        None if math.isnan(gini) else gini,
        float(sen_welfare(accuracies)),
        objective.is_met(n_right),
    )


def _notes(accuracies: FittedAccuracies, settings: Settings, labels: Sequence[str]) -> Iterator[str]:
    """Yield what a user should know before using the correction."""
    supports = accuracies.supports
    smallest = int(supports[supports > 0].min())
    if (supports == 0).any():
        yield (
            f"{int((supports == 0).sum())} of {len(supports)} classes have no row, so that nothing is known about "
            "them and their rules are not fitted"
        )
    if smallest < FEW_ROWS and SOLVERS[settings.solver].follows_rows:
        yield (
            f"the smallest class has {smallest} rows, fewer than {FEW_ROWS}: a search that follows single rows "
            "overfits here; take another preset, or more rows"
        )
    if accuracies.micro_after < accuracies.micro_before:
        yield (
            f"the accuracy over all fitted rows falls from {accuracies.micro_before:.4f} to "
            f"{accuracies.micro_after:.4f}; classes that are frequent pay for rare ones"
        )
    before, after = float(mean_accuracy(accuracies.before)), float(mean_accuracy(accuracies.after))
    if after < before:
        yield (
            f"the mean class accuracy on the fitted rows falls from {before:.4f} to {after:.4f}; take another preset"
        )
    falls = np.flatnonzero(accuracies.after < accuracies.before)
    if len(falls):
        drops = accuracies.before[falls] - accuracies.after[falls]
        worst = falls[int(drops.argmax())]
        yield (
            f"{len(falls)} of {len(supports)} classes get less accurate on the fitted rows, most '{labels[worst]}': "
            f"{accuracies.before[worst]:.4f} to {accuracies.after[worst]:.4f}"
        )
