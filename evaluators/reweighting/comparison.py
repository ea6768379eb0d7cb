"""Compares corrections of several solvers and objectives on rows that they were not fitted on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evaluators.reweighting.fitting import Settings, fit_rules, held_out_rows, prepared
from evaluators.reweighting.summary import summarise
from evaluators.statistics.bootstrap import FloatArray, IntArray

COMPARED = ("mean_class_accuracy", "accuracy", "gini", "sen_welfare", "smallest_class_accuracy")
"""Names of the measures that are compared, as in a summary."""
UNCORRECTED = "uncorrected"
_N_ERRORS = 2.0


class Split(NamedTuple):
    """Rows to fit on and rows to measure on."""

    probabilities: FloatArray
    targets: IntArray
    held_out_probabilities: FloatArray
    held_out_targets: IntArray
    seed: int = 0
    """Seed of the fits."""


class Figures(NamedTuple):
    """The measures of one method on one split, by name; None for one without a value."""

    fitted: Mapping[str, float | None]
    held_out: Mapping[str, float | None]
    seconds: float
    """Time that the fit took."""


@dataclass(frozen=True)
class Compared:
    """A method with its figures on every split."""

    name: str
    figures: tuple[Figures, ...]

    def mean(self, measure: str, *, held_out: bool = True) -> float | None:
        """Return the mean of a measure over the splits; None if it has no value on one of them."""
        values = self.values(measure, held_out=held_out)
        return None if values is None else float(values.mean())

    def error(self, measure: str, *, held_out: bool = True) -> float | None:
        """Return the standard error of the mean over the splits; None with a single one."""
        values = self.values(measure, held_out=held_out)
        return None if values is None else standard_error(values)

    def values(self, measure: str, *, held_out: bool = True) -> FloatArray | None:
        """Return a measure on each split, shape (n_splits,); None if it has no value on one of them."""
        found = [(one.held_out if held_out else one.fitted)[measure] for one in self.figures]
        return None if any(value is None for value in found) else np.array(found, dtype=np.float64)

    @property
    def seconds(self) -> float:
        """The mean time of a fit."""
        return sum(one.seconds for one in self.figures) / len(self.figures)


class Difference(NamedTuple):
    """A difference of two methods on held-out rows, paired by splits."""

    one: str
    other: str
    mean: float
    error: float
    """Standard error of the mean difference."""

    @property
    def is_clear(self) -> bool:
        """True if the mean difference lies beyond two standard errors."""
        return abs(self.mean) > _N_ERRORS * self.error


def random_split(probabilities: FloatArray, targets: IntArray, fraction: float, seed: int) -> Split:
    """Return a random share of the rows of each class as held-out rows, and the others to fit on.

    Args:
        probabilities: Probability of each class in each row, shape (n, n_classes).
        targets: Index of the right class of each row, shape (n,).
        fraction: Share of the rows of each class to hold out.
        seed: Seed of the choice.
    """
    mask = held_out_rows(targets, fraction, seed)
    return Split(probabilities[~mask], targets[~mask], probabilities[mask], targets[mask], seed)


def compared(
    splits: Sequence[Split], methods: Mapping[str, Settings], done: Callable[[], None] = lambda: None
) -> tuple[Compared, ...]:
    """Fit every method on every split, and measure it there and on the held-out rows; the uncorrected one comes first.

    Args:
        splits: The splits.
        methods: Choices of a fit by the name of the method.
        done: Function that is called after each fit.

    Raises:
        ValueError: a choice of a method does not exist, or two of them exclude each other.
    """
    for settings in methods.values():
        settings.check()
    found = [Compared(UNCORRECTED, tuple(_uncorrected(split) for split in splits))]
    for name, settings in methods.items():
        figures = []
        for split in splits:
            figures.append(_figures(split, replace(settings, seed=split.seed)))
            done()
        found.append(Compared(name, tuple(figures)))
    return tuple(found)


def differences(methods: Sequence[Compared], measure: str) -> list[Difference]:
    """Return the differences of all pairs of methods in a measure, the largest in standard errors first.

    Pairs without a value are left out, and with a single split there is none.
    """
    found = []
    for one, other in combinations(methods, 2):
        of_one, of_other = one.values(measure), other.values(measure)
        if of_one is None or of_other is None:
            continue
        error = standard_error(of_one - of_other)
        if error is not None:
            found.append(Difference(one.name, other.name, float((of_one - of_other).mean()), error))
    return sorted(found, key=lambda pair: -abs(pair.mean) / max(pair.error, 1e-12))


def standard_error(values: FloatArray) -> float | None:
    """Return the standard error of the mean of some values, shape (n,); None for fewer than two.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def _uncorrected(split: Split) -> Figures:
    of_fitted = _measured(split.targets, split.probabilities.argmax(axis=1), split)
    return Figures(
        of_fitted, _measured(split.held_out_targets, split.held_out_probabilities.argmax(axis=1), split), 0.0
    )


def _figures(split: Split, settings: Settings) -> Figures:
    start = time.perf_counter()
    rules = fit_rules(split.probabilities, split.targets, settings).rules
    seconds = time.perf_counter() - start
    fitted, held_out = (
        rules.predict(prepared(given, settings.correction))
        for given in (split.probabilities, split.held_out_probabilities)
    )
    return Figures(_measured(split.targets, fitted, split), _measured(split.held_out_targets, held_out, split), seconds)


def _measured(targets: IntArray, predictions: IntArray, split: Split) -> dict[str, float | None]:
    labels = [str(number) for number in range(split.probabilities.shape[1])]
    summary = summarise(targets, predictions, labels)
    return {name: summary.value(name) for name in COMPARED}
