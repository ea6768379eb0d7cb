"""Checks folders from strangers before any file in them is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import BiasboardError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.plain_text import printable
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import under_present_names
from evaluators.stores.store import STORE
from schemas.documents.record import Record
from schemas.documents.result import RecordsFile, Result, ScoresFile, SumsFile
from schemas.documents.run_files import ClusterSums, TextScore
from schemas.files import arrow_files
from schemas.folders.run_folder import (
    ADAPTERS,
    CORRECTIONS,
    RECORDS,
    RESULT,
    SCORES,
    SUBMISSION,
    SUMS,
    FileOfRun,
    TableOfRun,
    path_of,
    read_result,
)

FAULTS = (BiasboardError, OSError, ValueError, ArithmeticError, LookupError, RecursionError)
"""What the files of a stranger may raise: a path in a result, for example, may be too long or hold a null character."""
MOST_RESULT_BYTES = 16 << 20
"""Maximum size of a ``result.json``; that of a suite of 279 parts has a quarter of a megabyte."""
MOST_TABLE_BYTES = 512 << 20
"""Maximum size of a file of records or scores; 300,000 records have 20 megabytes."""
_ROW_TYPES: Mapping[type[TableOfRun], type] = {RecordsFile: Record, ScoresFile: TextScore, SumsFile: ClusterSums}
FILES_OF_RESULTS = (RESULT, RECORDS, SCORES, SUMS, SUBMISSION, ADAPTERS, CORRECTIONS)
"""Names of the files that a published result may have."""
_KNOWN = {*FILES_OF_RESULTS, STORE, f"{STORE}-wal", f"{STORE}-shm", "pending.json"}
_BYTES_OF_ALL, _BYTES_PER_ROW = 32 << 20, 64 << 10
"""Maximum size of the columns of a file before compression: a constant, and 64 kB for each row."""
_MOST_DEPTH = 12
"""Maximum number of folders between the folder that is searched and a result."""


class Searched(NamedTuple):
    """A result in a searched folder, or something there that cannot be searched."""

    path: Path
    """Path of the ``result.json``, or of what cannot be searched."""
    problem: str | None
    """Reason why it cannot be searched; None if it is a result."""


def results_in(folder: Path) -> Iterator[Searched]:
    """Yield every result in a folder and below it, sorted, and every link and folder that is not followed.

    Hidden files and folders, whose names begin with a dot, are skipped, because they are still being written.
    """
    yield from sorted(_walk(folder, _MOST_DEPTH))


def results_at(path: Path) -> list[Searched]:
    """Return the results at a path that a user gave, or why there are none.

    The path is the folder of a result, its ``result.json``, or a folder that contains results at any depth.
    """
    if path.name == RESULT and os.path.lexists(path):
        return [Searched(path, None)]
    results = list(results_in(path)) if path.is_dir() else []
    what = f"no {RESULT} here" if path.is_dir() else "is a file and no result" if path.exists() else "no such folder"
    return results or [Searched(path, f"{what}; name the folder of a finished run")]


def _walk(folder: Path, depth: int) -> Iterator[Searched]:
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except OSError as error:
        yield Searched(folder, f"{folder}: cannot be listed ({error.strerror}); make it readable")
        return
    holds_result = any(entry.name == RESULT for entry in entries)
    for entry in entries:
        path = Path(entry.path)
        if entry.name == RESULT:
            yield Searched(path, None)
        elif entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _walk(path, depth - 1)
            else:
                yield Searched(path, f"{path}: lies more than {_MOST_DEPTH} folders deep; move it up")
        elif entry.is_symlink() and not holds_result and not path.is_file():
            yield Searched(path, f"{path}: is a link, which is not followed; put the folder itself there")


def check_own_file(path: Path, most_bytes: int) -> None:
    """Check that a path is a regular file of its folder, and not too large, before it is opened.

    Raises:
        DataError: there is no such file, it is a link that leaves the folder, a pipe, a device or a folder, or it is
            too large.
    """
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(path.parent.resolve()):
            raise DataError(f"{path}: is a link that leaves this folder; put the file itself there")
        status = path.stat()
    except (OSError, RuntimeError) as error:
        why = error.strerror or type(error).__name__ if isinstance(error, OSError) else "a loop of links"
        raise DataError(f"{path}: cannot be opened ({why}); put the file itself there") from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path}: is not a regular file; put the file itself there")
    if status.st_size > most_bytes:
        raise DataError(f"{path}: has {status.st_size:,} bytes, more than the {most_bytes:,} of any such file")


def files_of(result: Result) -> dict[str, FileOfRun]:
    """Return the files beside a result, by their contents."""
    files = {
        "records": result.records,
        "scores": result.scores,
        "sums": None if result.withheld is None else result.withheld.sums,
        "adapters": result.adapters,
        "corrections": result.corrections,
    }
    return {name: file for name, file in files.items() if file is not None}


def contents_of(result: Result, folder: Path | None = None) -> dict[str, JsonValue]:
    """Return what a value made from a result depends on: its signature and its files, whose hashes it states itself."""
    files = files_of(result).items()
    hashes = {name: sha256_file(path_of(folder, file)) if folder else file.sha256 for name, file in files}
    return {"signature": result.signature_sha256, **hashes}


def read_untrusted(path: Path) -> Result:
    """Read a ``result.json`` that a stranger may have written, after a check that it and the files beside it are sound.

    Of these files, only what tables say of their columns and size is read. Metrics that were renamed since then have
    their present names.

    Raises:
        DataError: the result is invalid, or a file is none of its folder, too large or of other columns.
    """
    check_own_file(path, MOST_RESULT_BYTES)
    result = read_result(path.parent)
    for file in files_of(result).values():
        own = path.parent / file.path
        # A missing file, or one outside the folder, is reported by the code that reads it.
        if Path(file.path).name != file.path or not os.path.lexists(own):
            continue
        check_own_file(own, MOST_TABLE_BYTES if isinstance(file, TableOfRun) else MOST_RESULT_BYTES)
        if not isinstance(file, TableOfRun):
            continue
        metadata, row_type = arrow_files.metadata(own), _ROW_TYPES[type(file)]
        wanted = arrow_files.arrow_schema(row_type).names
        strange = [name for name in metadata.schema.to_arrow_schema().names if name not in wanted]
        if strange:
            names = ", ".join(map(printable, strange[:5]))
            raise DataError(f"{own}: column {names} is none of {row_type.__name__}; leave it out")
        n_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        most = _BYTES_OF_ALL + _BYTES_PER_ROW * file.n_rows
        if n_bytes > most:
            raise DataError(
                f"{own}: its {file.n_rows:,} rows take {n_bytes:,} bytes, more than the {most:,} of any result of such "
                "a size"
            )
    return under_present_names(result)


def strange_files(path: Path) -> tuple[str, ...]:
    """Return the sorted names of files beside a ``result.json`` that belong to neither runs nor submissions.

    Hidden files are left out.
    """
    names = (entry.name for entry in os.scandir(path.parent))
    return tuple(sorted(name for name in names if name not in _KNOWN and not name.startswith(".")))
