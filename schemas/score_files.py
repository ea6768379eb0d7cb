"""Reads files of text scores as columns, and checks every row.

Rules are looked at over whole columns; only a row that breaks one is made by itself, to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from schemas import arrow_files, contract
from schemas.column_checks import ColumnCheck, breaks_a_type
from schemas.columns import BoolArray, Column, columns_of
from schemas.errors import DataError
from schemas.score import ScorerKind, TextScore

_TOLERANCE = 1e-4
"""Largest deviation of a length or a sum from 1: scorers compute in single precision."""


def read_text_scores(path: Path) -> list[TextScore]:
    """Read a file of text scores.

    Raises:
        DataError: the file is missing or cannot be read, or a row breaks a rule.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; score the texts again")
    table = arrow_files.read_table(path, TextScore)
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: holds text that is not UTF-8: {error}; score the texts again") from error
    columns = columns_of(table)
    is_broken = breaks_a_type(columns, TextScore)
    for check in SCORE_CHECKS:
        is_broken |= check.broken(columns)
    for place in np.flatnonzero(is_broken).tolist():
        (row,) = arrow_files.values_of(table.slice(place, 1), where=str(path))
        contract.from_row(row, TextScore, where=f"{path}: row {place + 1}")
    values, ends = columns["values"].lists.values.numbers.tolist(), columns["values"].lists.offsets.tolist()
    texts = [columns[name].texts for name in ("kind", "scorer", "text_sha256")]
    return [
        TextScore(
            kind=cast(ScorerKind, kind),
            scorer=str(scorer),
            text_sha256=str(text_sha256),
            values=tuple(values[start:end]),
        )
        for kind, scorer, text_sha256, start, end in zip(*texts, ends[:-1], ends[1:], strict=True)
    ]


def _fits_no_kind(columns: Mapping[str, Column]) -> BoolArray:
    lists = columns["values"].lists
    numbers = lists.values.numbers
    n_rows = len(columns["kind"])
    lowest, highest = np.full(n_rows, np.inf), np.full(n_rows, -np.inf)
    np.minimum.at(lowest, lists.owners, numbers)
    np.maximum.at(highest, lists.owners, numbers)
    sums = np.bincount(lists.owners, weights=numbers, minlength=n_rows)
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.bincount(lists.owners, weights=numbers**2, minlength=n_rows))
    is_single = lists.lengths == 1
    are_probabilities = (lists.lengths == 3) & (lowest >= 0) & (np.abs(sums - 1) <= _TOLERANCE)
    fits = {
        "sentiment": (is_single & (lowest >= -1) & (highest <= 1)) | are_probabilities,
        "toxicity": is_single & (lowest >= 0) & (highest <= 1),
        "embedding": (lists.lengths > 1) & (np.abs(lengths - 1) <= _TOLERANCE),
    }
    found: BoolArray = np.logical_or.reduce([columns["kind"].coded.is_one_of(kind) & fits[kind] for kind in fits])
    return ~found


_WANTED: Mapping[ScorerKind, str] = {
    "sentiment": "one value in [-1, 1], or three probabilities that sum to 1",
    "toxicity": "one value in [0, 1]",
    "embedding": "a vector of length 1",
}


def _words_of_values(score: TextScore) -> str:
    values = ", ".join(f"{value:.6g}" for value in score.values[:3]) + (", ..." if len(score.values) > 3 else "")
    return f"values: {values} is not {_WANTED[score.kind]}, as {score.kind} needs; score the texts again"


SCORE_CHECKS: tuple[ColumnCheck[Mapping[str, Column], TextScore], ...] = (
    ColumnCheck("values", _fits_no_kind, _words_of_values),
)


def problems_of(score: TextScore) -> Iterator[str]:
    """Yield a line for each rule that joins several fields and that a score breaks."""
    columns = columns_of(pa.Table.from_pylist([contract.as_row(score)], schema=arrow_files.arrow_schema(TextScore)))
    yield from (check.words(score) for check in SCORE_CHECKS if check.broken(columns).any())
