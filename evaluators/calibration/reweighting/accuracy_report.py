"""Measures how accurate predictions are in each class and how evenly, and says what a correction costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.class_accuracies import (
    class_accuracies,
    cobias,
    gini_index,
    gini_noise_floor,
    mean_accuracy,
    sen_welfare,
    smallest_accuracy,
    top_class_dominance,
)

# Quantile of the normal distribution for intervals of 95 %.
_Z = 1.959963984540054


class ReportedValue(NamedTuple):
    """The accuracy of a class, or a measure of all classes."""

    kind: Literal["class", "measure"]
    name: str
    value: float | None
    low: float | None
    """Lower end of the 95 % interval; None without a value, and for the noise floor.

    The interval of a class is Wilson's. That of a measure comes from resampled rows, and lies around the expected value
    at this number of rows; for inequality that is above the large-sample value.
    """
    high: float | None
    reason: str | None = None
    """Reason why there is no value; None if there is one."""
    n_rows: int | None = None
    """Number of rows of the class; None for a measure."""
    n_predicted: int | None = None
    """Number of rows predicted as this class, right or wrong."""


AccuracyReport: TypeAlias = tuple[ReportedValue, ...]
"""The accuracy of some predictions in each class, and then measures of how even they are."""
TITLES = {
    "mean_class_accuracy": "mean class accuracy",
    "accuracy": "accuracy over all rows",
    "gini": "Gini index",
    "gini_noise_floor": "  by chance, of equal classes",
    "cobias": "COBias",
    "sen_welfare": "Sen welfare",
    "top_class_dominance": "largest over mean accuracy",
    "smallest_class_accuracy": "smallest class accuracy",
}
"""Titles of the measures in tables, by name, in the order of the rows."""
_MEASURES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "mean_class_accuracy": mean_accuracy,
    "gini": gini_index,
    "cobias": cobias,
    "sen_welfare": sen_welfare,
    "top_class_dominance": top_class_dominance,
    "smallest_class_accuracy": smallest_accuracy,
}


def accuracy_report(
    targets: IntArray, predictions: IntArray, labels: Sequence[object], *, seed: int = 0
) -> AccuracyReport:
    """Measure predictions.

    Args:
        targets: Index of the right class of each row, shape (n,).
        predictions: Index of the predicted class of each row, shape (n,).
        labels: Name of each class.
        seed: Seed of the resamples of the rows.
    """
    k = len(labels)
    accuracies, supports = class_accuracies(targets, predictions, k)
    n_right = np.bincount(targets[targets == predictions], minlength=k).tolist()
    n_predicted = np.bincount(predictions, minlength=k).tolist()
    classes = (
        ReportedValue("class", str(label), right / n, *wilson(right, n), None, n, predicted)
        if n
        else ReportedValue("class", str(label), None, None, None, "no row is of this class", n, predicted)
        for label, n, predicted, right in zip(labels, supports.tolist(), n_predicted, n_right, strict=True)
    )
    # Add half a right and half a wrong row, so that a class with all or no rows right varies too.
    shares = (np.nan_to_num(accuracies) * supports + 0.5) / (supports + 1)
    drawn = np.random.default_rng(seed).binomial(supports, shares, size=(1000, k))
    resampled = np.where(supports > 0, drawn / np.maximum(supports, 1), np.nan)
    measures = {
        name: _reported(name, float(measure(accuracies)), accuracies, measure(resampled))
        for name, measure in _MEASURES.items()
    }
    n = len(targets)
    measures["accuracy"] = ReportedValue("measure", "accuracy", sum(n_right) / n, *wilson(sum(n_right), n))
    floor = float(gini_noise_floor(accuracies, supports))
    measures["gini_noise_floor"] = _reported("gini_noise_floor", floor, accuracies, np.empty(0))
    return (*classes, *(measures[name] for name in TITLES))


def wilson(n_right: int, n: int) -> tuple[float, float]:
    """Return the Wilson interval of a share, at 95 %.

    References:
        Wilson 1927, "Probable inference, the law of succession, and statistical inference".

    >>> round(wilson(0, 10)[1], 4)
    0.2775
    """
    share = n_right / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def _reported(name: str, value: float, accuracies: FloatArray, resampled: FloatArray) -> ReportedValue:
    """Return a measure with its interval, from its values on resamples of the rows, or with the reason for its nan."""
    if math.isnan(value):
        is_single = int((~np.isnan(accuracies)).sum()) < 2
        no_mean = "nothing is right, and the measure divides by the mean accuracy"
        reason = "there are fewer than two classes with rows" if is_single else no_mean
        return ReportedValue("measure", name, None, None, None, reason)
    defined = np.sort(resampled[~np.isnan(resampled)])
    if not len(defined):
        return ReportedValue("measure", name, value, None, None)
    # Resampling adds chance differences between classes: with 100 classes of 40 rows, every resample has a larger Gini
    # index than the predictions. Shift the resamples so that their mean equals the value.
    low, high = np.quantile(defined, (0.025, 0.975)) - defined.mean() + value
    # The largest accuracy over their mean is 1 or more; all other measures lie in [0, 1].
    minimum, maximum = (1.0, math.inf) if name == "top_class_dominance" else (0.0, 1.0)
    return ReportedValue("measure", name, value, float(max(low, minimum)), float(min(high, maximum)))


def losses(targets: IntArray, before: IntArray, after: IntArray, labels: Sequence[object]) -> Iterator[str]:
    """Yield a sentence for each measure that a correction of predictions lowers, and one about classes that lose."""
    guesses = (before, after)
    accuracies = [class_accuracies(targets, each, len(labels))[0] for each in guesses]
    # A rise of the Gini index shows in the Sen welfare.
    for name, values in (
        ("mean_class_accuracy", [mean_accuracy(each) for each in accuracies]),
        ("accuracy", [np.mean(each == targets) for each in guesses]),
        ("sen_welfare", [sen_welfare(each) for each in accuracies]),
        ("smallest_class_accuracy", [smallest_accuracy(each) for each in accuracies]),
    ):
        old, new = map(float, values)
        if new < old:
            yield f"the {TITLES[name]} falls by {old - new:.4f}, from {old:.4f} to {new:.4f}"
    changes = accuracies[1] - accuracies[0]
    if (changes < 0).any():
        worst = int(np.nanargmin(changes))
        yield (
            f"{(changes < 0).sum()} of {(~np.isnan(changes)).sum()} classes lose and {(changes > 0).sum()} gain; "
            f"'{labels[worst]}' loses most, from {accuracies[0][worst]:.4f} to {accuracies[1][worst]:.4f}"
        )
