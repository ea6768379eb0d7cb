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
from schemas.files.contract import Check
from schemas.files.score_checks import broken_scores


def checked_text_scores(path: Path) -> Check[list[TextScore] | None]:
    """Check a file of text scores, and return its rows."""
    if not path.is_file():
        yield f"{path}: no such file; score the texts again"
        return None
    try:
        table = arrow_files.read_table(path, TextScore)
        table.validate(full=True)
    except DataError as error:
        yield str(error)
        return None
    except pa.ArrowInvalid as error:
        yield f"{path}: holds text that is not UTF-8: {error}; score the texts again"
        return None
    columns = columns_of(table)
    is_sound = True
    for place in np.flatnonzero(broken_scores(columns)).tolist():
        (row,) = arrow_files.values_of(table.slice(place, 1), where=str(path))
        is_sound &= yield from contract.lines_of(contract.from_row(row, TextScore)[1], f"{path}: row {place + 1}")
    if not is_sound:
        return None
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
