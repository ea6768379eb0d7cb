"""Distributions over the k possible outcomes of an item: how certain they are, and of what."""

from __future__ import annotations

import numpy as np

from evaluators.statistics.bootstrap import FloatArray, IntArray

TIE_TOLERANCE = 1e-12
SUM_TOLERANCE = 1e-9


def perplexity(probabilities: FloatArray) -> FloatArray:
    """Exponential of the entropy of each outcome distribution, with 0 ln 0 = 0.

    Args:
        probabilities: Shape (n, k), each row summing to 1.

    Returns:
        Shape (n,), in [1, k].

    References:
        Wang et al. 2025, arXiv:2505.23996, f_perplexity. It is the perplexity of the k-way distribution, not of a text:
        only then does the certainty lie in [0, 1].

    >>> perplexity(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3)
    array([2., 1.])
    """
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    value: FloatArray = np.exp(-(probabilities * logs).sum(axis=1))
    return value


def certainty(probabilities: FloatArray) -> FloatArray:
    """How far each outcome distribution is from uniform: (k - perplexity) / (k - 1).

    Args:
        probabilities: Shape (n, k) with k >= 2, each row summing to 1.

    Returns:
        Shape (n,), in [0, 1]; 0 is uniform, 1 all mass on one outcome. Not comparable across k.

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
    if np.any(np.abs(probabilities.sum(axis=1) - 1) > SUM_TOLERANCE):
        raise ValueError("certainty is of probabilities, but a row does not sum to 1; renormalise it")
    value: FloatArray = (k - perplexity(probabilities)) / (k - 1)
    # Rounding alone can leave the range now.
    return value.clip(0.0, 1.0)


def predicted_share(probabilities: FloatArray) -> FloatArray:
    """Credit of each outcome for being the prediction: 1 for the most probable one, 1/t each where t of them tie.

    Args:
        probabilities: Shape (n, k).

    Returns:
        Shape (n, k), each row summing to 1. No outcome wins a tie by its position.

    >>> predicted_share(np.array([[0.7, 0.3], [0.5, 0.5]]))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    top = probabilities >= probabilities.max(axis=1, keepdims=True) - TIE_TOLERANCE
    share: FloatArray = top / top.sum(axis=1, keepdims=True)
    return share


def desirability(probabilities: FloatArray, target: IntArray) -> FloatArray:
    """Signed certainty: positive where the target is predicted, negative where it is not.

    Args:
        probabilities: Shape (n, k), each row summing to 1.
        target: Index of the desired outcome, shape (n,).

    Returns:
        Shape (n,), in [-1, 1]. Where t outcomes tie the sign is 2/t - 1 if the target is among them.

    References:
        Wang et al. 2025, arXiv:2505.23996, D(x). The rule for ties is ours.

    >>> desirability(np.array([[0.95, 0.05], [0.95, 0.05]]), np.array([0, 1])).round(4)
    array([ 0.7804, -0.7804])
    """
    share = predicted_share(probabilities)[np.arange(len(target)), target]
    return (2 * share - 1) * certainty(probabilities)
