"""Estimates how unevenly groups are right, without the differences that chance alone gives.

Groups that are equally good are not equally often right in a sample. A standard deviation of their accuracies, or a
mean of absolute differences, is therefore above 0 for an even model too, and the more the less accurate the model is.
A root or an absolute value has no unbiased estimate, but a square has one: the product of two independent estimates of
the same number. Clusters are dealt to folds, and only accuracies from different folds are multiplied::

    fold    0    1    2    3
    he     .5   .6   .4   .6     p² of he:      mean of .5 · .6, .5 · .4, .5 · .6, .6 · .4, .6 · .6, .4 · .6
    she    .7   .6   .7   .5     p of he · she: mean of .5 · .6, .5 · .7, .5 · .5, .6 · .7, ... .6 · .7

Groups that share clusters, such as templates with all families, share their luck within a fold, but not across folds.

With eleven groups in 44 clusters, 1 / (1 + CV) of an even model is .82 on average at accuracy .3 and .97 at .95, and
two even models with .4 and .9 right are told apart in 68 %. With the root of the corrected variance, its sign kept,
these are up to .06 off and told apart in 12 to 20 %; with its square they are less than .01 off, in at most 4 %
(tests/bench/bench_evenness.py).
"""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.jackknife import ratio

# The variance of an even model's estimate is that of all pairs of clusters times n / (n - 1), for n folds: of ten
# classes of 100 items, a spread of .1 is found in 59 % of cases with two folds, in 77 % with four. With as many folds
# as clusters, an estimate that is far off can seem certain: even models with two classes of ten items are told apart in
# 20 %, with four folds in 7 %.
N_FOLDS = 4


def deal(strata: IntArray) -> IntArray:
    """Return a fold for each unit: those of each stratum go to the folds in turn.

    Args:
        strata: Index of each unit's stratum, shape (n,).

    Returns:
        Indices of shape (n,), in [0, N_FOLDS).

    >>> deal(np.array([7, 7, 3, 7, 7, 7, 3]))
    array([0, 1, 0, 2, 3, 0, 1])
    """
    order = np.argsort(strata, kind="stable")
    starts = np.flatnonzero(np.diff(strata[order], prepend=strata[order][:1] - 1))
    sizes = np.diff(np.append(starts, len(strata)))
    folds = np.empty(len(strata), dtype=np.int64)
    folds[order] = (np.arange(len(strata)) - np.repeat(starts, sizes)) % N_FOLDS
    return folds


def squares(right: FloatArray, n: FloatArray) -> FloatArray:
    """Return an unbiased estimate of each group's squared accuracy.

    Args:
        right: Number of right answers, shape (..., N_FOLDS, n_groups).
        n: Number of answers, of the same shape.

    Returns:
        Shape (..., n_groups); nan for a group whose answers are all in one fold.

    >>> squares(np.array([[2.0], [1.0], [0.0], [3.0]]), np.full((4, 1), 4.0)).round(4)
    array([0.1146])
    """
    right_across, n_across = (sums.sum(axis=-2) ** 2 - (sums**2).sum(axis=-2) for sums in (right, n))
    return ratio(right_across, n_across)


def times_noise(right: FloatArray, n: FloatArray) -> FloatArray:
    """Return an unbiased estimate of each group's accuracy times the variance of the accuracy that is observed.

    As both would share their luck in the observed accuracy, each fold's square is multiplied by the other folds, and
    the product of three folds, which has no noise, is taken off.

    Args:
        right: Number of right answers, shape (..., N_FOLDS, n_groups).
        n: Number of answers, of the same shape.

    Returns:
        Shape (..., n_groups); nan for a group with answers in fewer than three folds.
    """
    all_right, all_n = right.sum(axis=-2, keepdims=True), n.sum(axis=-2, keepdims=True)
    cube = ratio(_of_three_folds(right), _of_three_folds(n))[..., None, :]
    of_folds = right**2 * ratio(all_right - right, all_n - n) - n**2 * cube
    return ratio(of_folds.sum(axis=-2), all_n[..., 0, :] ** 2)


def _of_three_folds(sums: FloatArray) -> FloatArray:
    """Return the sum of the products of three different folds, times six."""
    first, second, third = (np.asarray((sums**power).sum(axis=-2)) for power in (1, 2, 3))
    products_of_three: FloatArray = first**3 - 3 * first * second + 2 * third
    return products_of_three


def products(right: FloatArray, n: FloatArray) -> FloatArray:
    """Return unbiased estimates of the products of two groups' accuracies, and of their squares.

    Args:
        right: Number of right answers, shape (..., N_FOLDS, n_groups).
        n: Number of answers, of the same shape.

    Returns:
        Shape (..., n_groups, n_groups); nan where all answers of both groups are in one fold.
    """
    right_across, n_across = (_outer(sums.sum(axis=-2)[..., None, :]) - _outer(sums) for sums in (right, n))
    return ratio(right_across, n_across)


def _outer(sums: FloatArray) -> FloatArray:
    """Return the sum over folds of the outer products of the groups' sums with themselves."""
    return np.swapaxes(sums, -2, -1) @ sums
