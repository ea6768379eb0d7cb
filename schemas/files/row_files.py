"""Documents as rows of parquet files, checked when they are written and when they are read.

The same rows always give the same bytes. Functions import pyarrow only when they are called, because loading it takes
longer than many a whole command.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import replacing
from schemas.documents.base import as_row
from schemas.documents.dataset import Item
from schemas.documents.run_files import ScorerKind, TextScore
from schemas.files import contract
from schemas.files.contract import Check, D, sound

if TYPE_CHECKING:
    import pyarrow as pa


def write_rows(path: Path, rows: Sequence[D], row_type: type[D]) -> None:
    """Write rows to a parquet file atomically.

    Args:
        path: Path of the file; its folder is created if needed.
        rows: Rows in the order in which they are stored; may be empty.
        row_type: Dataclass of the rows.

    Raises:
        DataError: a row breaks a rule; nothing is written.
    """
    from schemas.files import arrow_files

    for number, row in enumerate(rows, start=1):
        contract.check(row, where=f"{path}: row {number}")
    with replacing(path) as temporary:
        arrow_files.write(temporary, [as_row(row) for row in rows], row_type)


def n_rows(path: Path) -> int:
    """Return the number of rows of a parquet file, without reading them.

    Raises:
        DataError: the file is missing or is not a readable parquet file.
    """
    from schemas.files import arrow_files

    return int(arrow_files.metadata(path).num_rows)


def read_rows(path: Path, row_type: type[D]) -> list[D]:
    """Read a parquet file and check each row.

    Raises:
        DataError: the file is missing, is truncated, lacks a column, or holds a column of another type; or a row breaks
            a rule.
    """
    return sound(checked_rows(path, row_type))


def checked_rows(path: Path, row_type: type[D], *, step: int = 1) -> Check[list[D] | None]:
    """Check the rows of a parquet file, or the first and every ``step``-th after it, and return them."""
    from schemas.files import arrow_files

    try:
        table = arrow_files.read_table(path, row_type)
        # Row by row, because computing with Arrow imports pandas.
        tables = [table] if step == 1 else [table.slice(start, 1) for start in range(0, len(table), step)]
        values = [row for part in tables for row in arrow_files.values_of(part, where=str(path))]
    except DataError as error:
        yield str(error)
        return None
    rows: list[D] = []
    is_sound = True
    for number, value in enumerate(values):
        row, problems = contract.from_row(value, row_type)
        is_sound &= yield from contract.lines_of(problems, f"{path}: row {number * step + 1}")
        if is_sound and row is not None:
            rows.append(row)
    return rows if is_sound else None


def lines_of_rows(
    path: Path, table: pa.Table, indices: Iterable[int], row_type: type[D], *, first_row: int = 1
) -> Check[bool]:
    """Yield the problems of some rows of a table, and return True if there are none.

    Only those at the indices, which a check of columns found to be broken, become objects.

    Raises:
        DataError: a map has a key twice.
    """
    from schemas.files import arrow_files

    is_sound = True
    for index in indices:
        (row,) = arrow_files.values_of(table.slice(index, 1), where=str(path))
        _, problems = contract.from_row(row, row_type)
        is_sound &= yield from contract.lines_of(problems, f"{path}: row {first_row + index}")
    return is_sound


def repeated_items(path: Path, identifiers: Sequence[str | None], first_row: int = 1) -> Iterator[str]:
    """Yield a line for every item that has more than one row.

    Args:
        path: Path of the file, for the message.
        identifiers: ``item_id`` of each row, in order.
        first_row: Number of the first row.
    """
    if len(set(identifiers)) == len(identifiers):
        return
    first_rows: dict[str | None, int] = {}
    for number, identifier in enumerate(identifiers, start=first_row):
        first = first_rows.setdefault(identifier, number)
        if first != number:
            yield f"{path}: row {number}: item_id: '{identifier}' stands in row {first} already; one row per item"


def content_sha256(rows: Iterable[Item]) -> str:
    """Return the SHA-256 of the rows as canonical JSON lines, which is the same for every version of pyarrow."""
    digest = hashlib.sha256()
    add_content(digest, rows)
    return digest.hexdigest()


def add_content(digest: hashlib._Hash, rows: Iterable[Item]) -> None:
    """Add rows to a digest as canonical JSON lines, for callers that read one part at a time."""
    for row in rows:
        digest.update(strict_json.canonical(contract.dump(row)) + b"\n")


def checked_text_scores(path: Path) -> Check[list[TextScore] | None]:
    """Check a file of text scores, and return its rows."""
    from biasboard.ground.columns import columns_of
    from schemas.files import arrow_files
    from schemas.files.record_columns import broken_scores

    try:
        table = arrow_files.read_table(path, TextScore)
        arrow_files.check_texts(path, table)
    except DataError as error:
        yield str(error)
        return None
    columns = columns_of(table)
    broken = broken_scores(columns).nonzero()[0].tolist()
    if not (yield from lines_of_rows(path, table, broken, TextScore)):
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
