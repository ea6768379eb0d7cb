"""Checks folders from strangers before any file in them is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import printable
from evaluators.stores.store import STORE
from schemas.documents.record import Record
from schemas.documents.result import RecordsFile, Result, ScoresFile, SumsFile
from schemas.documents.run_files import ClusterSums, TextScore
from schemas.files import arrow_files
from schemas.folders.run_folder import ADAPTERS, CORRECTIONS, RECORDS, RESULT, SCORES, SUBMISSION, SUMS, TableOfRun

MOST_RESULT_BYTES = 16 << 20
"""Maximum size of a ``result.json``; that of a suite of 279 parts has a quarter of a megabyte."""
MOST_TABLE_BYTES = 512 << 20
"""Maximum size of a file of records or scores; 300,000 records have 20 megabytes."""
_ROW_TYPES: Mapping[type[TableOfRun], type] = {RecordsFile: Record, ScoresFile: TextScore, SumsFile: ClusterSums}
_OF_RUNS = {STORE, f"{STORE}-wal", f"{STORE}-shm", "pending.json"}
_KNOWN = {RESULT, RECORDS, SCORES, SUMS, SUBMISSION, ADAPTERS, CORRECTIONS, *_OF_RUNS}
_BYTES_OF_ALL, _BYTES_PER_ROW = 32 << 20, 64 << 10
"""Maximum size of the columns of a file before compression: a constant, and 64 kB for each row."""
_MOST_DEPTH = 12
"""Maximum number of folders between the folder that is searched and a result."""


class Found(NamedTuple):
    """A result in a searched folder, or something there that cannot be searched."""

    path: Path
    """Path of the ``result.json``, or of what cannot be searched."""
    problem: str | None
    """Reason why it cannot be searched; None if it is a result."""


def results_in(folder: Path) -> Iterator[Found]:
    """Yield every result in a folder and below it, sorted, and every link and folder that is not followed.

    Hidden files and folders, whose names begin with a dot, are skipped, because they are still being written.
    """
    yield from sorted(_walk(folder, _MOST_DEPTH))


def _walk(folder: Path, depth: int) -> Iterator[Found]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Found(folder, f"{folder}: cannot be listed ({error.strerror}); make it readable")
        return
    holds_result = any(entry.name == RESULT for entry in entries)
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if entry.name == RESULT:
            yield Found(path, None)
        elif entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _walk(path, depth - 1)
            else:
                yield Found(path, f"{path}: lies more than {_MOST_DEPTH} folders deep; move it up")
        elif entry.is_symlink() and not holds_result and not path.is_file():
            yield Found(path, f"{path}: is a link, which is not followed; put the folder itself there")


def check_own_file(path: Path, most_bytes: int) -> None:
    """Check that a path is a regular file of its folder, and not too large, before it is opened.

    Args:
        path: Path of the file.
        most_bytes: Maximum size.

    Raises:
        DataError: there is no such file, it is a link that leaves the folder, a pipe, a device or a folder, or it is
            too large.
    """
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(path.parent.resolve()):
            raise DataError(f"{path}: is a link that leaves this folder; put the file itself there")
        status = path.stat()
    except (OSError, RuntimeError) as error:
        raise DataError(f"{path}: cannot be opened ({_reason(error)}); put the file itself there") from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path}: is not a regular file; put the file itself there")
    if status.st_size > most_bytes:
        raise DataError(f"{path}: has {status.st_size:,} bytes, more than the {most_bytes:,} of any such file")


def _reason(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "a loop of links"


def check_tables(path: Path, result: Result) -> None:
    """Check the files that a result names before they are opened.

    Args:
        path: Path of the ``result.json``.
        result: The result in it.

    Raises:
        DataError: as from :func:`check_own_file`.
    """
    for file in (result.records, result.scores, None if result.withheld is None else result.withheld.sums):
        # A missing file, or one outside the folder, is reported by the code that reads it.
        if file is not None and Path(file.path).name == file.path and os.path.lexists(path.parent / file.path):
            check_own_file(path.parent / file.path, MOST_TABLE_BYTES)
            _check_metadata(path.parent / file.path, file.n_rows, _ROW_TYPES[type(file)])
    for listed in (result.adapters, result.corrections):
        if listed is not None and os.path.lexists(path.parent / listed.path):
            check_own_file(path.parent / listed.path, MOST_RESULT_BYTES)


def _check_metadata(path: Path, n_rows: int, row_type: type) -> None:
    """Check the columns and the size that a parquet file states in its metadata, before any column is read."""
    metadata = arrow_files.metadata(path)
    wanted = arrow_files.arrow_schema(row_type).names
    strange = [name for name in metadata.schema.to_arrow_schema().names if name not in wanted]
    if strange:
        names = ", ".join(map(printable, strange[:5]))
        raise DataError(f"{path}: column {names} is none of {row_type.__name__}; leave it out")
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    n_bytes = sum(group.total_byte_size for group in groups)
    most = _BYTES_OF_ALL + _BYTES_PER_ROW * n_rows
    if n_bytes > most:
        raise DataError(
            f"{path}: its {n_rows:,} rows take {n_bytes:,} bytes, more than the {most:,} of any result of such a size"
        )


def strange_files(path: Path) -> tuple[str, ...]:
    """Return the names of files next to a result that belong to neither runs nor submissions, sorted; no hidden ones.

    Args:
        path: Path of the ``result.json``.
    """
    names = (entry.name for entry in os.scandir(path.parent))
    return tuple(sorted(name for name in names if name not in _KNOWN and not name.startswith(".")))
