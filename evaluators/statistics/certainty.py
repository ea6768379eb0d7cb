"""Computes the certainty and the predicted outcome of distributions over the k possible outcomes of an item."""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray

TIE_TOLERANCE = 1e-12
"""Difference up to which probabilities tie: equal ones can differ in the last bits."""
_SUM_TOLERANCE = 1e-9


def perplexity(probabilities: FloatArray) -> FloatArray:
    """Compute the exponential of the entropy of each outcome distribution, with 0 ln 0 = 0.

    Args:
        probabilities: Outcome distributions, shape (n, k), each row summing to 1.

    Returns:
        The perplexities, shape (n,), in [1, k].

    References:
        Wang et al. 2025, arXiv:2505.23996, f_perplexity. It is the perplexity of the k-way distribution and not of a
        text; otherwise the certainty would not lie in [0, 1].

    >>> perplexity(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3)
    array([2., 1.])
    """
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    value: FloatArray = np.exp(-(probabilities * logs).sum(axis=1))
    return value


def certainty(probabilities: FloatArray) -> FloatArray:
    """Compute the certainty of each outcome distribution, (k - perplexity) / (k - 1).

    Args:
        probabilities: Outcome distributions, shape (n, k) with k >= 2, each row summing to 1.

    Returns:
        The certainties, shape (n,), in [0, 1]: 0 for the uniform distribution, 1 if one outcome has all the
        probability. Values for different k are not comparable.

    Raises:
        ValueError: k < 2, or a row does not sum to 1.

    References:
        Wang et al. 2025, arXiv:2505.23996, c(x).

    >>> certainty(np.array([[0.95, 0.05]])).round(4)
    array([0.7804])
    """
    k = probabilities.shape[1]
    if k < 2:
        raise ValueError(f"certainty needs at least 2 outcomes, got {k}")
    if np.any(np.abs(probabilities.sum(axis=1) - 1) > _SUM_TOLERANCE):
        raise ValueError("certainty is of probabilities, but a row does not sum to 1; renormalise it")
    value: FloatArray = (k - perplexity(probabilities)) / (k - 1)
    # Rounding may leave the range.
    return value.clip(0.0, 1.0)


def predicted_share(probabilities: FloatArray) -> FloatArray:
    """Compute the credit of each outcome for being predicted: 1 for the most probable one, or 1/t each if t tie.

    Args:
        probabilities: Outcome distributions, shape (n, k).

    Returns:
        The credits, shape (n, k), each row summing to 1. No outcome wins a tie by its position.

    >>> predicted_share(np.array([[0.7, 0.3], [0.5, 0.5]]))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    # With argmax the first of equal outcomes would win, and the order of the options would decide.
    top = probabilities >= probabilities.max(axis=1, keepdims=True) - TIE_TOLERANCE
    share: FloatArray = top / top.sum(axis=1, keepdims=True)
    return share


def desirability(probabilities: FloatArray, target: IntArray) -> FloatArray:
    """Compute the signed certainty, positive if the target is predicted and negative if it is not.

    Args:
        probabilities: Outcome distributions, shape (n, k), each row summing to 1.
        target: Index of the desired outcome, shape (n,).

    Returns:
        The signed certainties, shape (n,), in [-1, 1]. If t outcomes tie and the target is one of them, the certainty
        is multiplied by 2/t - 1 instead of by a sign.

    References:
        Wang et al. 2025, arXiv:2505.23996, D(x). The rule for ties is ours.

    >>> desirability(np.array([[0.95, 0.05], [0.95, 0.05]]), np.array([0, 1])).round(4)
    array([ 0.7804, -0.7804])
    """
    # With two outcomes a tie has certainty 0, so the rule for ties only matters from three on.
    share = predicted_share(probabilities)[np.arange(len(target)), target]
    return (2 * share - 1) * certainty(probabilities)
