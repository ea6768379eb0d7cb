"""Reads and writes files of records as columns, and checks every row.

A file holds one part after the other: the records of a config are contiguous, in a row group of their own. Parts are
read, checked and written one at a time, so that a file may be larger than the memory. Only rows that break a rule
become objects, to word what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from biasboard.ground.columns import Column
from biasboard.ground.errors import DataError
from biasboard.ground.files import replacing
from schemas.documents.record import Record
from schemas.files import arrow_files, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.files.contract import Check
from schemas.files.record_columns import RecordColumns, broken_rows

MOST_PARTS = 10_000
"""Maximum number of parts of a file; the largest that was tried has 279, with 297,379 records, and took 303 MB."""


def read_parts(path: Path) -> Iterator[RecordColumns]:
    """Yield the records of each part of a file, and check every row.

    Raises:
        DataError: the file is missing or cannot be read, or a row breaks a rule.
    """
    for records in read_parts_unchecked(path):
        for problem in row_problems(path, records):
            raise DataError(problem)
        yield records


def read_parts_unchecked(path: Path) -> Iterator[RecordColumns]:
    """Yield the records of each part of a file without checking the rows.

    Raises:
        DataError: the file is missing, is truncated or too large, lacks a column, holds a column of another type, or
            holds text that is not UTF-8.
    """
    n_parts, first_row, n_bytes = 0, 1, 0
    waiting: list[pa.Table] = []
    for table in _tables_by_config(path):
        if waiting and waiting[0].column("config")[0].as_py() != table.column("config")[0].as_py():
            n_parts += 1
            if n_parts == MOST_PARTS:
                raise DataError(f"{path}: more than {MOST_PARTS:,} parts; keep the records of a config together")
            yield RecordColumns(pa.concat_tables(waiting), first_row)
            first_row += sum(part.num_rows for part in waiting)
            waiting, n_bytes = [], 0
        n_bytes += table.nbytes
        if n_bytes > arrow_files.MOST_BYTES:
            raise arrow_files.too_large(path)
        waiting.append(table)
    if waiting:
        yield RecordColumns(pa.concat_tables(waiting), first_row)


def _tables_by_config(path: Path) -> Iterator[pa.Table]:
    """Yield tables of consecutive records, each of a single config."""
    for table in arrow_files.read_row_groups(path, Record):
        if not table.num_rows:
            continue
        arrow_files.check_texts(path, table)
        # In files of other programs, a row group may hold several parts, or only a piece of one.
        codes = Column(table.column("config")).coded.codes
        starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            yield table.slice(start, end - start)


def row_problems(path: Path, records: RecordColumns) -> Check[bool]:
    """Yield a line for each rule that a single record breaks, and return True if there is none.

    Raises:
        DataError: a map has a key twice.
    """
    return row_files.lines_of_rows(
        path, records.table, broken_rows(records).tolist(), Record, first_row=records.first_row
    )


@contextmanager
def writing_records(path: Path) -> Iterator[Callable[[Sequence[Record]], RecordColumns]]:
    """Yield a function that checks the records of a part, appends them to a file and returns them as columns.

    The same parts always give the same bytes. The file is replaced only at the end: after an error it is as before.

    Raises:
        DataError: a record breaks a rule; nothing is written.
    """
    n_rows = 0
    with replacing(path) as temporary, arrow_files.writing_tables(temporary, arrow_schema(Record)) as append:

        def add(records: Sequence[Record]) -> RecordColumns:
            nonlocal n_rows
            columns = RecordColumns.of(records)
            for problem in row_problems(path, RecordColumns(columns.table, n_rows + 1)):
                raise DataError(problem)
            append(columns.table)
            n_rows += len(columns)
            return columns

        yield add
