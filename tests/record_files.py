"""Files of records in tests, which read, write and count them as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from schemas.documents.record import Record
from schemas.documents.result import Counts
from schemas.files.record_columns import RecordColumns, Tally
from schemas.files.record_files import read_parts, writing_records


def read_records(path: Path) -> RecordColumns:
    """Return the checked records of all parts of a file."""
    return RecordColumns.joined(read_parts(path))


def write_records(path: Path, records: Sequence[Record]) -> RecordColumns:
    """Check records, write them to a file as one part, and return them as columns."""
    with writing_records(path) as add:
        return add(records)


def count(records: RecordColumns) -> Counts:
    """Return how many records have which status."""
    tally = Tally()
    tally.add(records)
    return tally.counts
