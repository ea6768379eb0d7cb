"""Fits a correction on rows with known classes, by the best candidate of the solver of a preset, and documents it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.accuracy_report import losses
from evaluators.calibration.reweighting.problem import DEFAULT_SCHEDULE, Annealing, Objective, ObjectiveName, Problem
from evaluators.calibration.reweighting.rules import N_FUNCTIONS, PAPER_RULES, ClassRules, prepared
from evaluators.calibration.reweighting.solvers import SOLVERS
from evaluators.statistics.class_accuracies import class_accuracies
from schemas.documents.reweighting import FitReport, Reweighting, RuleMap

# With 10 rows in each of 14 classes, a search reached a Gini index of .027 on them and .083 on other rows; balanced
# weights, which overfit least, .064 and .053. From 200 rows on a search was safe.
FEW_ROWS = 50
"""Number of rows of the smallest class below which a search over all classes overfits."""
# Objectives that agree in this many digits count as equal, so that probabilities stay uncorrected if nothing is better.
_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class FitSettings:
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
    def map(self) -> RuleMap:
        """The kind of the rules: those of annealing are chosen from a set, and others may be any weights."""
        return "full" if self.solver == "anneal" else "weights"


PRESETS = {
    "default": FitSettings(),
    "balanced": FitSettings(solver="convex"),
    "paper": FitSettings(solver="anneal", objective="gini", has_floor=False),
}
"""What a user chooses among.

``paper`` follows tables 5 and 6 of arXiv:2603.15654 (AG News, 4 classes, and DDI, 5): equation 10, which is the Gini
index alone, with membership functions and the 30 linear weights of the configuration of DCS, by simulated annealing.
The paper tells neither the schedule nor the number of searches, which are ours (:class:`Annealing`).
"""


def preset_settings(name: str, seed: int = 0) -> FitSettings:
    """Return the settings of a preset.

    Raises:
        ValueError: there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"preset '{name}' does not exist; have: {', '.join(PRESETS)}")
    return replace(PRESETS[name], seed=int(seed))


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted correction."""

    rules: ClassRules
    ranks: Sequence[tuple[bool, float, float]]
    """Sort key of each candidate, the uncorrected probabilities first: whether it falls below the floor, its objective
    (infinity where nothing is right), and its negated mean accuracy. The smallest is chosen."""
    report: FitReport
    """The class accuracies on the fitted rows before and after the correction, and warnings about the correction."""


def fit_rules(
    probabilities: FloatArray, targets: IntArray, settings: FitSettings, labels: Sequence[object] | None = None
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
    unchanged = ClassRules.of_weights(np.ones(len(supports)))
    objective = Objective(settings.objective, supports)
    free = Problem(probabilities, targets, objective, annealing=settings.annealing, seed=settings.seed)
    floor = float(objective.mean(free.n_right(unchanged))) if settings.has_floor else None
    problem = replace(free, objective=replace(objective, floor=floor))
    candidates = [unchanged, *SOLVERS[settings.solver](problem)]
    ranks = []
    for rules in candidates:
        n_right = problem.n_right(rules)
        value, negative_mean = problem.score(n_right)
        ranks.append((not problem.objective.is_met(n_right), round(value, _DIGITS), round(negative_mean, _DIGITS)))
    chosen = candidates[ranks.index(min(ranks))]
    guesses = probabilities.argmax(axis=1), chosen.predict(probabilities)
    before, after = (
        tuple(None if np.isnan(one) else one for one in class_accuracies(targets, each, len(supports))[0].tolist())
        for each in guesses
    )
    lost = losses(targets, *guesses, labels or range(len(supports)))
    report = FitReport(
        n_rows=len(targets),
        supports=tuple(supports.tolist()),
        class_accuracies_before=before,
        class_accuracies_after=after,
        accuracy_before=float(np.mean(guesses[0] == targets)),
        accuracy_after=float(np.mean(guesses[1] == targets)),
        notes=(*_doubts(supports, settings), *(f"on the fitted rows {loss}" for loss in lost)),
    )
    return Fit(chosen, ranks, report)


def _doubts(supports: IntArray, settings: FitSettings) -> Iterator[str]:
    """Yield why the correction may not hold on other rows."""
    smallest = int(supports[supports > 0].min())
    if (supports == 0).any():
        yield (
            f"{int((supports == 0).sum())} of {len(supports)} classes have no row, so that nothing is known about "
            "them and their rules are not fitted"
        )
    # In these solvers single rows can decide, so that they fit noise in small classes.
    if smallest < FEW_ROWS and settings.solver in ("anneal", "coordinate"):
        yield (
            f"the smallest class has {smallest} rows, fewer than {FEW_ROWS}: a search that follows single rows "
            "overfits here; take another preset, or more rows"
        )


def document_of(fit: Fit, settings: FitSettings, classes: Sequence[Any]) -> Reweighting:
    """Return the contents of the file of a fit.

    Args:
        fit: The fit.
        settings: Its settings.
        classes: Name of the class of each column. Booleans and numbers like 1.0 become equal integers; other names
            become texts.
    """
    has_integer_classes = all(
        isinstance(name, int) or (isinstance(name, float) and name.is_integer()) for name in classes
    )
    rule_set = PAPER_RULES if settings.map == "full" else None
    on_grid = {} if rule_set is None else {weight: at for at, weight in enumerate(rule_set.weights.tolist())}
    return Reweighting(
        format=1,
        classes=tuple(str(int(name) if has_integer_classes else name) for name in classes),
        has_integer_classes=has_integer_classes,
        map=settings.map,
        index_base=0,
        # A weight that is on no grid has no number.
        rules=tuple(
            function if function >= 0 else N_FUNCTIONS + on_grid[weight] if weight in on_grid else None
            for function, weight in zip(fit.rules.functions.tolist(), fit.rules.weights.tolist(), strict=True)
        ),
        weights=tuple(None if np.isnan(weight) else weight for weight in fit.rules.weights.tolist()),
        n_weights=None if rule_set is None else rule_set.n_weights,
        grid=None if rule_set is None else "linear",
        objective=settings.objective,
        solver=settings.solver,
        seed=int(settings.seed),
        fit_report=fit.report,
    )
