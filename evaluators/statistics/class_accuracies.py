"""Measures of how evenly a classifier is right over its classes, as functions of the accuracy of each class.

All functions take arrays of shape (..., n_classes) and reduce the last axis. Classes without items have the accuracy
nan and are left out. Undefined measures, such as the Gini index where nothing is right, are nan.

With N classes of accuracies A, mean Ā and the mean difference D (half of the mean of abs(A_i - A_j) over all ordered
pairs, equal ones included), the measures are related: Gini = D / Ā, COBias = D · 2N / (N - 1), Sen welfare = Ā - D.

References:
    "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654, equations 2 to 6.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.jackknife import ratio


def class_accuracies(targets: npt.ArrayLike, predictions: npt.ArrayLike, n_classes: int) -> tuple[FloatArray, IntArray]:
    """Return the accuracy of each class (arXiv:2603.15654, equation 6), nan without items, and its number of items.

    Args:
        targets: Index of the right class of each item, shape (n,).
        predictions: Index of the predicted class of each item, shape (n,).
        n_classes: Number of classes.

    Returns:
        Two arrays of shape (n_classes,).

    >>> class_accuracies([0, 0, 1], [0, 1, 1], 3)
    (array([0.5, 1. , nan]), array([2, 1, 0]))
    """
    right, predicted = np.asarray(targets, dtype=np.int64), np.asarray(predictions, dtype=np.int64)
    supports = np.bincount(right, minlength=n_classes)
    n_right = np.bincount(right[right == predicted], minlength=n_classes)
    return ratio(n_right.astype(np.float64), supports.astype(np.float64)), supports


def mean_accuracy(accuracies: npt.ArrayLike) -> FloatArray:
    """Return the mean over classes (equation 2), shape (...,); nan without classes."""
    values = np.asarray(accuracies, dtype=np.float64)
    return ratio(np.nansum(values, axis=-1), _n_classes(values))


def mean_difference(accuracies: npt.ArrayLike) -> FloatArray:
    """Return half of the mean absolute difference over all ordered pairs of classes, shape (...,).

    >>> mean_difference([1.0, 0.0, 0.0, 0.0]).round(4)
    np.float64(0.1875)
    """
    # The i-th smallest of N values is the larger one in i - 1 pairs and the smaller one in N - i. A sum over all pairs
    # would take N² steps: 10,000 for each item that is left out, with 100 classes. Sorting puts nan last.
    values = np.sort(np.asarray(accuracies, dtype=np.float64), axis=-1)
    n = _n_classes(values)
    weights = 2.0 * np.arange(1, values.shape[-1] + 1) - n[..., None] - 1.0
    return ratio(np.nansum(weights * values, axis=-1), n**2)


def gini_index(accuracies: npt.ArrayLike) -> FloatArray:
    """Return the Gini index of class accuracies (equation 3), shape (...,), in [0, 1 - 1/n_classes].

    It is nan where all accuracies are 0, since any number would rate the worst classifier as even. Scaling all
    accuracies does not change it, so it says nothing about their level.

    >>> gini_index([[1.0, 0.0, 0.0, 0.0], [0.8, 0.2, 0.0, 0.0]]).round(2)
    array([0.75, 0.65])
    """
    return ratio(mean_difference(accuracies), mean_accuracy(accuracies))


def cobias(accuracies: npt.ArrayLike) -> FloatArray:
    """Return the mean absolute difference over pairs of distinct classes (equation 4), shape (...,).

    It is nan with fewer than two classes, and 0, its best value, where nothing is right: read it with the accuracy.

    References:
        Lin & You 2024, arXiv:2405.07623, COBias.
    """
    values = np.asarray(accuracies, dtype=np.float64)
    n = _n_classes(values)
    return ratio(2 * n * mean_difference(values), n - 1)


def top_class_dominance(accuracies: npt.ArrayLike) -> FloatArray:
    """Return the largest accuracy over the mean accuracy, shape (...,); nan where nothing is right."""
    # Unlike max(), which warns without classes, fmax leaves nan out.
    largest: FloatArray = np.fmax.reduce(np.asarray(accuracies, dtype=np.float64), axis=-1)
    return ratio(largest, mean_accuracy(accuracies))


def smallest_accuracy(accuracies: npt.ArrayLike) -> FloatArray:
    """Return the smallest accuracy, shape (...,); nan without classes."""
    smallest: FloatArray = np.fmin.reduce(np.asarray(accuracies, dtype=np.float64), axis=-1)
    return smallest


def quarter_accuracy(accuracies: npt.ArrayLike, quarter: int) -> FloatArray:
    """Return the mean accuracy of a quarter of the classes, from 0 for the worst to 3 for the best, shape (...,).

    Classifiers with other labels, or other numbers of them, can so be averaged class by class. A class that lies in two
    quarters counts in each by its part of it. The mean of the four is the mean over classes, and their cumulative sums
    are points of the Lorenz curve.

    >>> [round(float(quarter_accuracy([0.9, 0.1, 0.5], quarter)), 4) for quarter in range(4)]
    [0.1, 0.3667, 0.6333, 0.9]
    """
    values = np.asarray(accuracies, dtype=np.float64)
    # Sorting puts nan last, beyond the number of classes.
    ordered = np.nan_to_num(np.sort(values))
    n = _n_classes(values)[..., None]
    starts = np.arange(values.shape[-1]) * np.ones_like(n)
    first, last = n * quarter / 4, n * (quarter + 1) / 4
    inside = np.clip(np.minimum(starts + 1, last) - np.maximum(starts, first), 0.0, None)
    return ratio((ordered * inside).sum(axis=-1), n[..., 0] / 4)


def sen_welfare(accuracies: npt.ArrayLike) -> FloatArray:
    """Return the mean accuracy times one minus the Gini index, shape (...,), in [0, 1]; 0 where nothing is right.

    It is the expected smaller accuracy of two classes drawn with replacement. It rises whenever the accuracy of a class
    rises, so making a class worse never pays.

    References:
        A. Sen, "Real National Income", 1976, for the welfare function.

    >>> sen_welfare([0.9, 0.5]).round(2)
    np.float64(0.6)
    """
    # Equal to mean · (1 - Gini), but defined where the mean is 0.
    return mean_accuracy(accuracies) - mean_difference(accuracies)


def gini_noise_floor(accuracies: npt.ArrayLike, supports: npt.ArrayLike) -> FloatArray:
    """Return the approximate Gini index expected by chance if classes are equal.

    Args:
        accuracies: Accuracy of each class, shape (..., n_classes); their mean is taken as the true accuracy of all.
        supports: Number of items of each class, of the same shape.

    Returns:
        Shape (...,). With n items in each of N classes and accuracy p it is
        ``(N - 1) / N · sqrt((1 - p) / (π p n))``; with unequal numbers of items, the mean over pairs of classes.
    """
    values = np.asarray(accuracies, dtype=np.float64)
    mean, n = mean_accuracy(values), _n_classes(values)
    counts = np.where(np.isnan(values), 0.0, np.asarray(supports, dtype=np.float64))
    inverse = np.where(counts > 0, 1.0 / np.maximum(counts, 1.0), np.nan)
    # The difference of two independent shares is about normal, so the mean of its absolute value is sd · sqrt(2 / π).
    # Simulations with 100 classes of 100 items (0.0374) and 4 of 1,250 (0.0044) agree to four decimals.
    of_pairs = np.sqrt(inverse[..., :, None] + inverse[..., None, :]) * (1 - np.eye(values.shape[-1]))
    spread = np.sqrt(mean * (1 - mean) * 2 / np.pi) * np.nansum(of_pairs, axis=(-2, -1))
    return ratio(spread, 2 * n**2 * mean)


def _n_classes(values: FloatArray) -> FloatArray:
    n: FloatArray = (~np.isnan(values)).sum(axis=-1).astype(np.float64)
    return n
