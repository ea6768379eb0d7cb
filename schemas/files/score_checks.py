"""The rules of text scores that join several fields, over whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from biasboard.ground.columns import BoolArray, Column, columns_of
from schemas.documents.conversion import as_row
from schemas.documents.score import ScorerKind, TextScore
from schemas.files import arrow_files
from schemas.files.column_checks import ColumnCheck, breaks_a_type

_TOLERANCE = 1e-4
"""Largest deviation of a length or a sum from 1: scorers compute in single precision."""


def _fits_no_kind(columns: Mapping[str, Column]) -> BoolArray:
    lists = columns["values"].lists
    numbers = lists.values.numbers
    n_rows = len(columns["kind"])
    lowest, highest = np.full(n_rows, np.inf), np.full(n_rows, -np.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # Of what is no number; it is found by its type.
        np.minimum.at(lowest, lists.owners, numbers)
        np.maximum.at(highest, lists.owners, numbers)
        sums = np.bincount(lists.owners, weights=numbers, minlength=n_rows)
        lengths = np.sqrt(np.bincount(lists.owners, weights=numbers**2, minlength=n_rows))
    is_single = lists.lengths == 1
    are_probabilities = (lists.lengths == 3) & (lowest >= 0) & (np.abs(sums - 1) <= _TOLERANCE)
    fits = {
        "sentiment": (is_single & (lowest >= -1) & (highest <= 1)) | are_probabilities,
        "toxicity": is_single & (lowest >= 0) & (highest <= 1),
        "embedding": (lists.lengths > 1) & (np.abs(lengths - 1) <= _TOLERANCE),
    }
    kinds = columns["kind"].coded
    is_sound: BoolArray = np.logical_or.reduce([kinds.is_one_of(kind) & fits[kind] for kind in fits])
    return ~is_sound


_EXPECTED: Mapping[ScorerKind, str] = {
    "sentiment": "one value in [-1, 1], or three probabilities that sum to 1",
    "toxicity": "one value in [0, 1]",
    "embedding": "a vector of length 1",
}


def _words_of_values(score: TextScore) -> str:
    values = ", ".join(f"{value:.6g}" for value in score.values[:3]) + (", ..." if len(score.values) > 3 else "")
    return f"values: {values} is not {_EXPECTED[score.kind]}, as {score.kind} needs; score the texts again"


SCORE_CHECKS: tuple[ColumnCheck[Mapping[str, Column], TextScore], ...] = (
    ColumnCheck("values", _fits_no_kind, _words_of_values),
)


def problems_of(score: TextScore) -> Iterator[str]:
    """Yield a line for each rule that joins several fields and that a score breaks."""
    columns = columns_of(pa.Table.from_pylist([as_row(score)], schema=arrow_files.arrow_schema(TextScore)))
    yield from (check.words(score) for check in SCORE_CHECKS if check.broken(columns).any())


def broken_scores(columns: Mapping[str, Column]) -> BoolArray:
    """Return the mask of the scores that break a rule."""
    broken = breaks_a_type(columns, TextScore)
    for check in SCORE_CHECKS:
        broken |= check.broken(columns)
    return broken
