"""Reads and writes rows of dataclasses as typed parquet files.

Rows are checked when they are written and when they are read. The same rows always give the same bytes.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import replacing
from schemas.documents.base import Document
from schemas.documents.conversion import as_row
from schemas.documents.item_shape import Item
from schemas.files import contract
from schemas.files.contract import Check, sound

Row = TypeVar("Row", bound=Document)


def _files() -> ModuleType:
    # Loading pyarrow takes as long as many a command needs in all.
    return importlib.import_module("schemas.files.arrow_files")


def write_rows(path: Path, rows: Sequence[Row], row_type: type[Row]) -> None:
    """Write rows to a parquet file atomically.

    Args:
        path: Path of the file; its folder is created if needed.
        rows: Rows in the order in which they are stored; may be empty.
        row_type: Dataclass of the rows.

    Raises:
        DataError: a row breaks a rule; nothing is written.
    """
    for number, row in enumerate(rows, start=1):
        contract.check(row, where=f"{path}: row {number}")
    with replacing(path) as temporary:
        _files().write(temporary, [as_row(row) for row in rows], row_type)


def read_values(path: Path, row_type: type[Row]) -> list[dict[str, Any]]:
    """Read the values of a parquet file by column, one dictionary per row, without checking the rows.

    Raises:
        DataError: the file is missing, is truncated, lacks a column, or holds a column of another type.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; build the dataset or run the model again")
    return cast("list[dict[str, Any]]", _files().read(path, row_type))


def n_rows(path: Path) -> int:
    """Return the number of rows of a parquet file, without reading them.

    Raises:
        DataError: the file is missing or is not a readable parquet file.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; build the dataset or run the model again")
    return int(_files().n_rows(path))


def read_rows(path: Path, row_type: type[Row]) -> list[Row]:
    """Read a parquet file and check each row.

    Raises:
        DataError: the file cannot be read (see :func:`read_values`), or a row breaks a rule.
    """
    return sound(checked_rows(path, row_type))


def checked_rows(path: Path, row_type: type[Row]) -> Check[list[Row] | None]:
    """Check a parquet file, and return its rows."""
    try:
        values = read_values(path, row_type)
    except DataError as error:
        yield str(error)
        return None
    rows: list[Row] = []
    is_sound = True
    for number, value in enumerate(values, start=1):
        row, problems = contract.from_row(value, row_type)
        is_sound &= yield from contract.lines_of(problems, f"{path}: row {number}")
        if is_sound and row is not None:
            rows.append(row)
    return rows if is_sound else None


def content_sha256(rows: Iterable[Item]) -> str:
    """Return the SHA-256 of the rows as canonical JSON lines, which is the same for every version of pyarrow."""
    digest = hashlib.sha256()
    add_content(digest, rows)
    return digest.hexdigest()


def add_content(digest: hashlib._Hash, rows: Iterable[Item]) -> None:
    """Add rows to a digest as canonical JSON lines, for rows that are read one part after the other."""
    for row in rows:
        digest.update(strict_json.canonical(contract.dump(row)) + b"\n")
