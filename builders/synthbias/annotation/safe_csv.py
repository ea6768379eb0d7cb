"""Reads and writes CSV files whose cells no spreadsheet interprets as formulas."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import protected, unprotected
from schemas.documents.base import Text

CORRECT_LINE = "correct the line, or take the file from a backup"

R = TypeVar("R")


def render(columns: Sequence[str], rows: Iterable[Sequence[str]], *, heading: bool = True) -> str:
    """Return protected rows as CSV.

    Args:
        columns: Names of the columns.
        rows: Cells of each row, as many as there are columns.
        heading: False to leave out the names, for rows appended to a file.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    if heading:
        writer.writerow([protected(column) for column in columns])
    writer.writerows([protected(cell) for cell in row] for row in rows)
    return text.getvalue()


def columns_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the columns of a dataclass: the names of its fields."""
    return tuple(field.name for field in fields(kind))


def render_records(kind: type[R], records: Iterable[R], *, heading: bool = True) -> str:
    """Return objects of a dataclass as CSV, with a row per object and a column per field."""
    columns = columns_of(kind)
    return render(columns, ([str(getattr(record, name)) for name in columns] for record in records), heading=heading)


def read_records(
    path: Path, kind: type[R], *, remedy: str, other_columns: str, any_order: bool = False
) -> list[tuple[str, R]]:
    """Read objects that :func:`render_records` wrote.

    Args:
        path: Path of the file.
        kind: Dataclass whose fields are texts (never empty if they are ``Text``), whole numbers, or one of a few words.
        remedy: Advice that ends the messages about the file.
        other_columns: End of the message about columns that differ from the fields.
        any_order: True if the columns may be in any order.

    Returns:
        The file and line of each row, and its object.

    Raises:
        DataError: the file is broken, or a cell does not fit its field.
    """
    columns, rows = read_rows(path, remedy=remedy)
    expected = columns_of(kind)
    if (sorted(columns) != sorted(expected)) if any_order else (columns != expected):
        raise DataError(f"{path}:1: has the columns {','.join(columns)}{other_columns}")
    types = get_type_hints(kind, include_extras=True)
    return [
        (where, kind(**{name: _value(cells[name], name, types[name], where) for name in expected}))
        for where, cells in rows
    ]


def _value(cell: str, column: str, kind: Any, where: str) -> object:
    if kind in (str, Text):
        if kind is not str and not cell:
            raise DataError(f"{where}: {column} is empty; {CORRECT_LINE}")
        return cell
    if kind is int:
        if not cell.isdecimal() or len(cell) > 9:
            raise DataError(f"{where}: {column} is '{cell}', not a number of up to 9 digits; {CORRECT_LINE}")
        return int(cell)
    words = {str(word): word for word in (get_args(kind) or kind)}
    if cell not in words:
        raise DataError(f"{where}: {column} is '{cell}'; have: {', '.join(words)}; {CORRECT_LINE}")
    return words[cell]


def read_rows(path: Path, *, remedy: str) -> tuple[tuple[str, ...], list[tuple[str, dict[str, str]]]]:
    """Read a CSV file.

    Returns:
        The names of the columns; and of each row the file and the line on which it ends, for messages, and its cells
        by column.

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
        raise DataError(f"{path}:{line}: is no CSV file in UTF-8; save it as 'CSV UTF-8'") from error
    # Where the comma is the decimal sign, spreadsheets write semicolons.
    separator = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    rows: list[tuple[str, dict[str, str]]] = []
    try:
        columns = tuple(unprotected(name) for name in next(reader, ()))
        if not columns:
            raise DataError(f"{path}:1: has no heading; {remedy}")
        name, n = Counter(columns).most_common(1)[0]
        if n > 1:
            raise DataError(f"{path}:1: column '{name}' stands twice; {remedy}")
        for cells in reader:
            if not any(cells):
                continue  # Spreadsheets leave empty rows at the end.
            where = f"{path}:{reader.line_num}"
            if len(cells) != len(columns):
                raise DataError(f"{where}: has {len(cells)} cells, the heading {len(columns)}; {remedy}")
            rows.append((where, dict(zip(columns, map(unprotected, cells), strict=True))))
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not CSV: {error}; {remedy}") from error
    return columns, rows
