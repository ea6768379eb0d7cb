"""Fits a correction on rows with known classes: runs a solver and takes the best of its candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.calibration.reweighting.problem import (
    DEFAULT_SCHEDULE,
    OBJECTIVES,
    PAPER_DCS,
    Annealing,
    Candidate,
    Counts,
    DcsWeights,
    Objective,
    ObjectiveName,
    Problem,
    Score,
)
from evaluators.calibration.reweighting.rules import GRIDS, MAPS, ClassRules, Grid, MapKind, RuleSet, prepared
from evaluators.calibration.reweighting.solvers import SOLVERS, balanced_log_weights
from evaluators.statistics.class_accuracies import class_accuracies, gini_index, mean_accuracy, sen_welfare

# With 10 rows in each of 14 classes, a search reached a Gini index of .027 on them and .083 on other rows; balanced
# weights, which overfit least, .064 and .053. From 200 rows on a search was safe.
FEW_ROWS = 50
"""Number of rows of the smallest class below which a search over all classes overfits."""
UNCORRECTED = "uncorrected"
"""Name of the candidate that changes nothing."""
_SHARE_OF_BALANCED = 0.95
# Objectives that agree in this many digits count as equal, so that probabilities stay uncorrected if nothing is better.
_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a fit."""

    # The Gini index alone, as in the paper, lowered the mean accuracy in 21 of 55 fits, and Sen welfare in one; hence
    # Sen welfare, and the floor as well.
    objective: ObjectiveName = "sen"
    min_mean: Literal["baseline", "balanced"] | float | None = "baseline"
    """Floor under the mean accuracy of the classes on the fitted rows: the mean before the correction, the larger of
    that and 95 % of what balanced weights reach, or a number; None for none."""
    correction: MapKind = "weights"
    n_weights: int | None = None
    grid: Grid = "log"
    # On held-out rows of six tests it was as good as annealing, 5 to 30 times as fast, and it needs no seed.
    solver: str = "coordinate"
    dcs: DcsWeights = PAPER_DCS
    annealing: Annealing = DEFAULT_SCHEDULE
    validation_fraction: float = 0.0
    """Share of the rows of each class that is hidden from the solver and chooses among its candidates."""
    seed: int = 0

    def check(self) -> None:
        """Check that the settings exist and are compatible.

        Raises:
            ValueError: a value does not exist or is out of bounds, or two settings exclude each other.
        """
        for name, value, have in (
            ("objective", self.objective, OBJECTIVES),
            ("correction", self.correction, MAPS),
            ("grid", self.grid, GRIDS),
            ("solver", self.solver, tuple(SOLVERS)),
        ):
            if value not in have:
                raise ValueError(f"{name} '{value}' does not exist; have: {', '.join(have)}")
        if self.correction != "weights" and not SOLVERS[self.solver].chooses_rules:
            able = ", ".join(name for name, solver in SOLVERS.items() if solver.chooses_rules)
            raise ValueError(
                f"solver '{self.solver}' only finds weights, and correction '{self.correction}' has membership "
                f"functions; take one of these solvers: {able}"
            )
        if isinstance(self.min_mean, str) and self.min_mean not in ("baseline", "balanced"):
            raise ValueError(
                f"min_mean '{self.min_mean}' does not exist; give 'baseline', 'balanced', a number or None"
            )
        for name, number, is_good, remedy in self._numbers():
            if not is_good:
                raise ValueError(f"{name} is {number}; give {remedy}")

    def _numbers(self) -> Iterator[tuple[str, object, bool, str]]:
        """Yield the name of each number, its value, True if it is valid, and what would be."""
        floor, share, n_weights, schedule = self.min_mean, self.validation_fraction, self.n_weights, self.annealing
        if not isinstance(floor, str):
            yield "min_mean", floor, floor is None or 0 <= floor <= 1, "a share from 0 to 1, or None"
        yield "validation_fraction", share, 0 <= share < 1, "a share from 0 to below 1"
        yield "n_weights", n_weights, n_weights is None or _is_whole(n_weights, 2), "a whole number from 2, or None"
        yield "seed", self.seed, _is_whole(self.seed, 0), "a whole number from 0"
        # Without cooling a search would never end; without smoothing a class that is never right would have no PMI.
        yield "temperature", schedule.temperature, 0 < schedule.temperature < math.inf, "a number above 0"
        yield "cooling", schedule.cooling, 0 < schedule.cooling < 1, "a number between 0 and 1"
        yield "stop_ratio", schedule.stop_ratio, 0 < schedule.stop_ratio < 1, "a number between 0 and 1"
        n_moves, n_restarts = schedule.moves_per_level, schedule.n_restarts
        yield "moves_per_level", n_moves, n_moves is None or _is_whole(n_moves, 1), "a whole number from 1, or None"
        yield "n_restarts", n_restarts, _is_whole(n_restarts, 1), "a whole number from 1"
        yield "smoothing", self.dcs.smoothing, 0 < self.dcs.smoothing < math.inf, "a number above 0"
        for name in ("alpha", "beta", "tau"):
            weight = getattr(self.dcs, name)
            yield name, weight, 0 <= weight < math.inf, "a number from 0"


def _is_whole(number: object, minimum: int) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and int(number) >= minimum


PAPER = Settings(objective="gini", min_mean=None, correction="full", n_weights=30, grid="linear", solver="anneal")
"""The settings of the paper (arXiv:2603.15654, equation 10), as far as it states them."""


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
    counted: tuple[tuple[Candidate, Counts], ...]
    """All candidates, the uncorrected probabilities first, and their counts on the fitted rows."""
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

    Raises:
        ValueError: a setting does not exist, or two settings exclude each other.
    """
    settings.check()
    probabilities = prepared(np.ascontiguousarray(probabilities, dtype=np.float64), settings.correction)
    held_out = held_out_rows(targets, settings.validation_fraction, settings.seed)
    whole = searched = judge = _problem(probabilities, targets, settings)
    if held_out.any():
        searched = _problem(probabilities[~held_out], targets[~held_out], settings)
        judge = _problem(probabilities[held_out], targets[held_out], settings)
    solution = SOLVERS[settings.solver].solve(searched)
    unchanged = Candidate(UNCORRECTED, ClassRules.of_weights(np.ones(whole.n_classes)))
    counted = tuple((tried, whole.counts(tried.rules)) for tried in (unchanged, *solution.candidates))

    def rank(candidate: Candidate, counts: Counts) -> tuple[bool, Score]:
        """Return the sort key of a candidate: those that keep the floor first, then by the objective."""
        score = judge.score(counts if judge is whole else judge.counts(candidate.rules))
        return not whole.objective.is_met(counts), Score(*(round(number, _DIGITS) for number in score))

    chosen, of_chosen = min(counted, key=lambda pair: rank(*pair))
    before, after = whole.probabilities.argmax(axis=1), chosen.rules.predict(whole.probabilities)
    of_before, of_after = (class_accuracies(targets, predicted, whole.n_classes) for predicted in (before, after))
    accuracies = FittedAccuracies(
        of_before.accuracies,
        of_after.accuracies,
        of_before.supports,
        float((before == targets).mean()),
        float((after == targets).mean()),
    )
    names = [str(label) for label in (range(whole.n_classes) if labels is None else labels)]
    notes = tuple(_notes(accuracies, _fitted(chosen, of_chosen, whole.objective), settings, names))
    return Fit(chosen.rules, counted, whole.objective, chosen.name, solution.n_evaluations, accuracies, notes)


def held_out_rows(targets: IntArray, fraction: float, seed: int) -> BoolArray:
    """Return the mask of a random share of the rows of each class, shape (n,).

    Of a class with two rows or more, at least one is held out and at least one is not.

    Args:
        targets: Index of the right class of each row, shape (n,).
        fraction: The share, rounded down in each class.
        seed: Seed of the choice.
    """
    mask = np.zeros(len(targets), dtype=np.bool_)
    if fraction:
        rng = np.random.default_rng(seed)
        for of_class in np.unique(targets):
            rows = rng.permutation(np.flatnonzero(targets == of_class))
            n_held_out = max(math.floor(fraction * len(rows)), 1)
            mask[rows[: min(n_held_out, len(rows) - 1)]] = True
    return mask


def _problem(probabilities: FloatArray, targets: IntArray, settings: Settings) -> Problem:
    """Return the problem of some rows; its floor may be a mean accuracy on these rows."""
    supports = np.bincount(targets, minlength=probabilities.shape[1])
    rule_set = RuleSet(settings.correction, settings.n_weights, settings.grid)

    def problem(floor: float | None) -> Problem:
        objective = Objective(settings.objective, supports, floor, settings.dcs)
        return Problem(probabilities, targets, objective, rule_set, settings.annealing, settings.seed)

    if not isinstance(settings.min_mean, str):
        return problem(settings.min_mean)
    free = problem(None)

    def mean(weights: FloatArray) -> float:
        return float(free.objective.mean(free.counts(ClassRules.of_weights(weights))))

    floor = mean(np.ones(free.n_classes))
    if settings.min_mean == "balanced":
        floor = max(floor, _SHARE_OF_BALANCED * mean(np.exp(balanced_log_weights(free))))
    return problem(floor)


def _fitted(candidate: Candidate, counts: Counts, objective: Objective) -> FittedCandidate:
    value = float(objective(counts))
    occurs = objective.supports > 0
    accuracies = counts.right[occurs] / objective.supports[occurs]
    gini = float(gini_index(accuracies))
    return FittedCandidate(
        candidate.name,
        value if math.isfinite(value) else None,
        float(mean_accuracy(accuracies)),
        None if math.isnan(gini) else gini,
        float(sen_welfare(accuracies)),
        objective.is_met(counts),
    )


def _notes(
    accuracies: FittedAccuracies, chosen: FittedCandidate, settings: Settings, labels: Sequence[str]
) -> Iterator[str]:
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
            f"the smallest class has {smallest} rows, fewer than {FEW_ROWS}: solver '{settings.solver}' overfits "
            "here; take solver 'path' or 'convex', or more rows"
        )
    if not chosen.is_allowed:
        yield (
            f"nothing that was found keeps the mean class accuracy at {settings.min_mean}; it is "
            f"{chosen.mean_class_accuracy:.4f}; lower min_mean, or take solver 'convex'"
        )
    if accuracies.micro_after < accuracies.micro_before:
        yield (
            f"the accuracy over all fitted rows falls from {accuracies.micro_before:.4f} to "
            f"{accuracies.micro_after:.4f}; classes that are frequent pay for rare ones"
        )
    before, after = float(mean_accuracy(accuracies.before)), float(mean_accuracy(accuracies.after))
    if after < before:
        yield f"the mean class accuracy on the fitted rows falls from {before:.4f} to {after:.4f}; set min_mean"
    falls = np.flatnonzero(accuracies.after < accuracies.before)
    if len(falls):
        drops = accuracies.before[falls] - accuracies.after[falls]
        worst = falls[int(drops.argmax())]
        yield (
            f"{len(falls)} of {len(supports)} classes get less accurate on the fitted rows, most '{labels[worst]}': "
            f"{accuracies.before[worst]:.4f} to {accuracies.after[worst]:.4f}"
        )
