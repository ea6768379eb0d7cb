"""Reads files of text scores as columns, and checks every row.

Rules are looked at over whole columns; only a row that breaks one is made by itself, to say what is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from biasboard.ground.columns import columns_of
from biasboard.ground.errors import DataError
from schemas.documents.score import ScorerKind, TextScore
from schemas.files import arrow_files, contract
from schemas.files.score_checks import broken_scores


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
    for place in np.flatnonzero(broken_scores(columns)).tolist():
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
