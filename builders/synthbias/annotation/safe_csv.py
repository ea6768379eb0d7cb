"""Reads and writes CSV files whose cells no spreadsheet takes for a formula.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets an apostrophe in front when it is
written, and loses exactly that apostrophe when it is read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_PROTECTED = re.compile(r"'+[=+\-@\t\r]")


class Row(NamedTuple):
    """A row of a CSV file."""

    where: str
    """File and line on which the row ends, for messages."""
    cells: dict[str, str]
    """Cells by column."""


def protected(cell: str) -> str:
    """Return a cell as it is written.

    >>> protected("=1+1"), protected("'=1+1"), protected("the nurse")
    ("'=1+1", "''=1+1", 'the nurse')
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unprotected(cell: str) -> str:
    """Return a cell as it was before :func:`protected`."""
    return cell[1:] if _PROTECTED.match(cell) else cell


def render(columns: Sequence[str], rows: Iterable[Sequence[str]], *, heading: bool = True) -> str:
    """Return protected rows as CSV.

    Args:
        columns: Names of the columns.
        rows: Cells of each row, as many as there are columns.
        heading: False to leave out the names, for rows that continue a file.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    if heading:
        writer.writerow([protected(column) for column in columns])
    writer.writerows([protected(cell) for cell in row] for row in rows)
    return text.getvalue()


def render_records(columns: Sequence[str], records: Iterable[object], *, heading: bool = True) -> str:
    """Return objects as CSV, a row for each, in columns that have the names of their attributes."""
    return render(columns, ([str(getattr(record, name)) for name in columns] for record in records), heading=heading)


def read_rows(path: Path, *, remedy: str) -> tuple[tuple[str, ...], list[Row]]:
    """Read a CSV file.

    Args:
        path: Path of the file.
        remedy: Advice that closes the messages.

    Returns:
        The names of the columns, and the rows.

    Raises:
        DataError: the file is missing, empty, or not CSV in UTF-8, names a column twice, or has a row of another
            length.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file; {remedy}")
    check_readable(path)
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not UTF-8; save it as UTF-8") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    try:
        columns = tuple(unprotected(name) for name in next(reader, ()))
        _check_columns(columns, f"{path}:1", remedy)
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if len(cells) != len(columns):
                raise DataError(f"{where}: has {len(cells)} cells, the heading {len(columns)}; {remedy}")
            rows.append(Row(where, dict(zip(columns, map(unprotected, cells), strict=True))))
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not CSV: {error}; {remedy}") from error
    return columns, rows


def _check_columns(columns: Sequence[str], where: str, remedy: str) -> None:
    if not columns:
        raise DataError(f"{where}: has no heading; {remedy}")
    twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    if twice:
        raise DataError(f"{where}: column '{twice[0]}' stands twice; {remedy}")
