"""Reads files of text scores as columns, and checks every row.

Rules are looked at over whole columns; only a row that breaks one is made by itself, to say what is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from biasboard.ground.errors import DataError
from schemas.documents.score import ScorerKind, TextScore
from schemas.files import tables
from schemas.files.contract import Check


def checked_text_scores(path: Path) -> Check[list[TextScore] | None]:
    """Check a file of text scores, and return its rows."""
    # Loading pyarrow takes as long as many a command needs in all.
    from biasboard.ground.columns import columns_of
    from schemas.files import arrow_files
    from schemas.files.score_checks import broken_scores

    try:
        table = arrow_files.read_table(path, TextScore)
        arrow_files.check_texts(path, table)
    except DataError as error:
        yield str(error)
        return None
    columns = columns_of(table)
    broken = broken_scores(columns).nonzero()[0].tolist()
    if not (yield from tables.lines_of_rows(path, table, broken, TextScore)):
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
