"""Pairs the answers to texts of one template, and measures how similar they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import BoolArray, FloatArray, IntArray


class AnswerPairs(NamedTuple):
    """All unordered pairs of rows that share a cluster."""

    first: IntArray
    """Row of the first answer in the table, shape (n_pairs,)."""
    second: IntArray
    """Row of the second answer in the table, shape (n_pairs,)."""
    cosines: FloatArray
    """Cosine similarity of the two answers, shape (n_pairs,), in [-1, 1]."""
    differ: BoolArray
    """True for pairs in different pronoun families, shape (n_pairs,)."""
    same_item: BoolArray
    """True for pairs of samples for the same text, shape (n_pairs,)."""


def pairs_of(
    vectors: FloatArray,
    kept: BoolArray,
    clusters: IntArray,
    families: npt.NDArray[np.str_],
    items: Sequence[str],
) -> AnswerPairs:
    """Return all pairs of kept rows within a cluster, with the cosines of their vectors.

    Args:
        vectors: Embedding of each row, scaled to length 1, shape (n, d).
        kept: Mask of the rows to pair, shape (n,).
        clusters: Index of each row's cluster, shape (n,).
        families: Pronoun family of each row, shape (n,).
        items: Item id of each row, length n.
    """
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(clusters[rows], kind="stable")]
    lots = np.split(rows, np.flatnonzero(np.diff(clusters[rows])) + 1) if len(rows) else []
    first, second, cosines = [], [], []
    for lot in lots:
        one, other = np.triu_indices(len(lot), k=1)
        first.append(lot[one])
        second.append(lot[other])
        cosines.append((vectors[lot] @ vectors[lot].T)[one, other])
    a, b = _joined(first), _joined(second)
    names = np.array(items)
    found = np.concatenate(cosines) if cosines else np.zeros(0)
    return AnswerPairs(a, b, np.clip(found, -1, 1), families[a] != families[b], names[a] == names[b])


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
