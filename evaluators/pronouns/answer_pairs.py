"""AnswerPairs of answers that share a template, and how alike they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluators.statistics.bootstrap import FloatArray, IntArray


class AnswerPairs(NamedTuple):
    """Unordered pairs of rows of a table within each cluster."""

    first: IntArray
    """Row of the table, shape (n_pairs,)."""
    second: IntArray
    cosines: FloatArray
    """Shape (n_pairs,), in [-1, 1]."""
    differ: npt.NDArray[np.bool_]
    """Whether the two stand in different pronoun families, shape (n_pairs,)."""
    same_item: npt.NDArray[np.bool_]
    """Whether the two are samples of one text, shape (n_pairs,)."""


def pairs_of(
    vectors: FloatArray,
    kept: npt.NDArray[np.bool_],
    clusters: IntArray,
    families: npt.NDArray[np.str_],
    items: Sequence[str],
) -> AnswerPairs:
    """All pairs of kept rows of one cluster, with the cosine of their vectors.

    Args:
        vectors: Of length 1, shape (n, d).
        kept: Rows that take part, shape (n,).
        clusters: Shape (n,).
        families: Shape (n,).
        items: Of length n.
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
