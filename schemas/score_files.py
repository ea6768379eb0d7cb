"""Reads files of text scores as columns, and checks every row.

Columns tell which rows may break a rule; only these are checked one by one, which words what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from schemas import arrow_files, contract
from schemas.columns import BoolArray, Column
from schemas.errors import DataError
from schemas.score import ScorerKind, TextScore

_LENGTH_TOLERANCE = 0.9e-4
"""Largest deviation of the length of a vector from 1 that is certainly none by the rule."""


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
    columns = {name: Column(table.column(name)) for name in table.schema.names}
    for place in np.flatnonzero(~_are_sound(columns)).tolist():
        (value,) = arrow_files.values_of(table.slice(place, 1), where=str(path))
        contract.load(contract.plain(value), TextScore, where=f"{path}: row {place + 1}")
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


def _are_sound(columns: Mapping[str, Column]) -> BoolArray:
    """Return the mask of the rows that certainly break no rule."""
    lists = columns["values"].lists
    numbers = lists.values.numbers
    found = columns["scorer"].matches(r"^[A-Za-z0-9][A-Za-z0-9.-]*$") & columns["text_sha256"].matches(
        r"^[0-9a-f]{64}$"
    )
    found &= columns["kind"].known & columns["values"].known
    found[lists.owners[~np.isfinite(numbers)]] = False
    n_rows = len(found)
    lowest, highest = np.full(n_rows, np.inf), np.full(n_rows, -np.inf)
    np.minimum.at(lowest, lists.owners, np.nan_to_num(numbers))
    np.maximum.at(highest, lists.owners, np.nan_to_num(numbers))
    with np.errstate(over="ignore"):
        squares = np.bincount(lists.owners, weights=np.nan_to_num(numbers) ** 2, minlength=n_rows)
    is_single = lists.lengths == 1
    fits = {
        "sentiment": is_single & (lowest >= -1) & (highest <= 1),
        "toxicity": is_single & (lowest >= 0) & (highest <= 1),
        "embedding": (lists.lengths > 1) & (np.abs(np.sqrt(squares) - 1) <= _LENGTH_TOLERANCE),
    }
    of_kind = np.zeros(n_rows, dtype=np.bool_)
    for kind, are_right in fits.items():
        of_kind |= columns["kind"].coded.is_one_of(kind) & are_right
    return found & of_kind
