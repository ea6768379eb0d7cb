"""Splits a CSV text into records; a line that is not CSV is a record with its fault, and does not stop reading."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

_BYTE_ORDER_MARK = "\ufeff"


class CsvRecord(NamedTuple):
    """A record of a CSV text, or a line that is not CSV."""

    line: int
    end: int
    """Last line of the record."""
    fields: list[str]
    fault: str | None


def records_of(text: str, delimiter: str = ",") -> Iterator[CsvRecord]:
    """Yield the records of a CSV text, continuing after lines that are not CSV."""
    lines = list(io.StringIO(text.removeprefix(_BYTE_ORDER_MARK), newline=""))
    start = 0
    while start < len(lines):
        reader = csv.reader(islice(lines, start, None), delimiter=delimiter, strict=True)
        first = start
        try:
            for fields in reader:
                end = start + reader.line_num
                if fields:
                    yield CsvRecord(first + 1, end, fields, None)
                first = end
            return
        except csv.Error as error:
            # An unclosed quotation mark swallows the rows after it, so that reading resumes at the next line.
            yield CsvRecord(first + 1, first + 1, [], f"is not CSV ({error})")
            start = first + 1


def fault_of(record: CsvRecord, n_columns: int, wrong_bytes: Mapping[int, str]) -> str | None:
    """Return what is wrong with a record; None if it has a field for each column and its lines are UTF-8."""
    if len(record.fields) != n_columns:
        return f"has {len(record.fields)} fields, the header {n_columns}"
    for line in range(record.line, record.end + 1) if wrong_bytes else ():
        if line in wrong_bytes:
            return f"byte {wrong_bytes[line]} is not UTF-8"
    return None


def wrong_bytes_of(raw: bytes) -> dict[int, str]:
    """Return the first byte that is not UTF-8 in each line that has one, by line number."""
    wrong = {}
    for number, line in enumerate(raw.split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong[number] = f"{line[error.start]:#04x}"
    return wrong
