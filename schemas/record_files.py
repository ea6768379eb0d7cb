"""Reads and writes files of records as columns, and checks every row.

Columns tell which rows may break a rule; only these are made and checked one by one, which words what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from schemas import arrow_files, contract
from schemas.errors import DataError
from schemas.files import replacing
from schemas.record import Record
from schemas.record_columns import RecordColumns
from schemas.record_faults import doubtful_rows
from schemas.strict_json import JsonValue


def read_records(path: Path) -> RecordColumns:
    """Read a file of records and check every row.

    Raises:
        DataError: the file is missing or cannot be read, or a row breaks a rule.
    """
    records = read_unchecked(path)
    for number, value in doubtful_values(path, records):
        contract.load(value, Record, where=f"{path}: row {number}")
    return records


def read_unchecked(path: Path) -> RecordColumns:
    """Read a file of records without checking the rows.

    Raises:
        DataError: the file is missing, is truncated or too large, lacks a column, holds a column of another type, or
            holds text that is not UTF-8.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; build the dataset or run the model again")
    table = arrow_files.read_table(path, Record)
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: holds text that is not UTF-8: {error}; make it again") from error
    return RecordColumns(table)


def doubtful_values(path: Path, records: RecordColumns) -> Iterator[tuple[int, JsonValue]]:
    """Yield number and contents of each row that may break a rule.

    Raises:
        DataError: a map has a key twice.
    """
    for place in doubtful_rows(records).tolist():
        (value,) = arrow_files.values_of(records.table.slice(place, 1), where=str(path))
        yield place + 1, contract.plain(value)


def write_records(path: Path, records: Sequence[Record]) -> RecordColumns:
    """Check records and write them to a file atomically; the same records always give the same bytes.

    Returns:
        The records as columns.

    Raises:
        DataError: a record breaks a rule; nothing is written.
    """
    columns = RecordColumns.of(records)
    for place in doubtful_rows(columns).tolist():
        contract.check(records[place], where=f"{path}: row {place + 1}")
    with replacing(path) as temporary:
        arrow_files.write_table(temporary, columns.table)
    return columns
