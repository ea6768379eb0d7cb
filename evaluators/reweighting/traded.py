"""Says in sentences what a correction gives and what it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from evaluators.reweighting.comparison import COMPARED, Compared
from evaluators.reweighting.summary import TITLES, Summary
from evaluators.statistics.class_accuracies import lorenz_curve

_MUST_NOT_FALL = ("mean_class_accuracy", "accuracy", "sen_welfare", "smallest_class_accuracy")


def changes(before: Summary, after: Summary) -> str:
    """Return how the main measures change, in one line."""
    return ", ".join(f"{TITLES[name]} {_shown(before, name)} to {_shown(after, name)}" for name in COMPARED)


def losses(before: Summary, after: Summary) -> Iterator[str]:
    """Yield a sentence for each measure that falls, and one about the classes that are less accurate than before.

    Args:
        before: The predictions of the uncorrected probabilities.
        after: Those of the corrected ones, on the same rows.
    """
    for name in _MUST_NOT_FALL:
        old, new = before.value(name), after.value(name)
        if old is not None and new is not None and new < old:
            yield f"the {TITLES[name]} falls by {old - new:.4f}, from {old:.4f} to {new:.4f}"
    pairs = [
        (one.label, one.accuracy, other.accuracy)
        for one, other in zip(before.classes, after.classes, strict=True)
        if one.accuracy is not None and other.accuracy is not None
    ]
    worse = [pair for pair in pairs if pair[2] < pair[1]]
    if worse:
        label, first, second = max(worse, key=lambda pair: pair[1] - pair[2])
        n_better = sum(second > first for _, first, second in pairs)
        yield (
            f"{len(worse)} of {len(pairs)} classes lose and {n_better} gain; '{label}' loses most, from {first:.4f} to "
            f"{second:.4f}"
        )


def _shown(summary: Summary, name: str) -> str:
    value = summary.value(name)
    return "none" if value is None else f"{value:.4f}"


def gini_of(summary: Summary) -> float | None:
    """Return the Gini index of some predictions; None if it does not exist."""
    return summary.value("gini")


def lorenz_of(summary: Summary) -> list[tuple[float, float]]:
    """Return the points of the Lorenz curve of the class accuracies; none where nothing is right."""
    accuracies = [math.nan if one.accuracy is None else one.accuracy for one in summary.classes]
    shares, sums = lorenz_curve(accuracies)
    return [] if np.isnan(sums).any() else list(zip(shares.tolist(), sums.tolist(), strict=True))


def trade_of(method: Compared) -> tuple[float | None, float | None]:
    """Return the mean Gini index and the mean of the mean class accuracies of a method on held-out rows."""
    return method.mean("gini"), method.mean("mean_class_accuracy")
