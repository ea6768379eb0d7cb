"""Reads rows of probabilities from CSV and Parquet files, whose columns have names."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluators.commands.reweight.rows import PREFIX, InputChoice, Rows, Wanted, shortened
from schemas.columns import FloatArray
from schemas.errors import ConfigError, DataError

_DELIMITERS = ",;\t"
_ID_NAMES = {"", "id", "idx", "index", "row", "unnamed: 0"}
_ID_ENDING = "_id"
_MOST_SHARE = 1.0 + 1e-6
_N_SHOWN = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """A file of columns with names."""

    source: str
    columns: Mapping[str, Sequence[object]]
    """Values of each column, texts or a NumPy array of numbers."""
    place_of: Callable[[int], str]


def read_csv(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read a CSV file with a header; its separator is a comma, a semicolon or a tab.

    Raises:
        DataError: the file is no such table, or a value of it is wrong.
    """
    return _rows_of(_csv_table(choice.path), choice, wanted)


def read_parquet(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read a Parquet file.

    Raises:
        DataError: the file is no such table, or a value of it is wrong.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from schemas import arrow_files

    names = arrow_files.metadata(choice.path).schema.to_arrow_schema().names
    if "reading" in names and "exchanges" in names:
        raise DataError(f"{choice.path}: holds the records of a run; name the folder of the run instead")
    _check_names(str(choice.path), names)
    try:
        table = pq.read_table(choice.path)
        columns = {name: _values(table.column(name)) for name in names}
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise DataError(f"{choice.path}: not a readable parquet file: {reason}; make it again") from error
    made = Table(
        source=str(choice.path), columns=columns, place_of=lambda row: f"row {row + 1} (the first row is row 1)"
    )
    return _rows_of(made, choice, wanted)


def _values(column: object) -> Sequence[object]:
    """Return numbers as an array with nan for missing ones, and all else as objects of Python."""
    import pyarrow as pa

    kind = getattr(column, "type")  # noqa: B009
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy()  # type: ignore[attr-defined, no-any-return]
    values: list[object] = column.to_pylist()  # type: ignore[attr-defined]
    return values


def _csv_table(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: is no text in UTF-8 ({error.reason} at byte {error.start}); export it again"
        ) from error
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines: list[int] = []
    cells: list[list[str]] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_names(str(path), names)
        for row in reader:
            if not row:
                continue  # An empty line, as many programs leave at the end.
            if len(row) != len(names):
                raise DataError(
                    f"{path}: line {reader.line_num} has {len(row)} cells, and the header (line 1) {len(names)}; "
                    "correct the line"
                )
            lines.append(reader.line_num)
            cells.append(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}; correct the line") from error
    columns = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True)) if cells else {n: [] for n in names}
    return Table(source=str(path), columns=columns, place_of=lambda row: f"line {lines[row]} (line 1 is the header)")


def _check_names(source: str, names: Sequence[str]) -> None:
    if not any(names):
        raise DataError(f"{source}: is empty; give a header, with one column per class and one with the right class")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise DataError(f"{source}: column '{twice[0]}' stands {names.count(twice[0])} times; keep one, or rename it")


def _rows_of(table: Table, choice: InputChoice, wanted: Wanted) -> Rows:
    n_rows = len(next(iter(table.columns.values())))
    if not n_rows:
        raise DataError(f"{table.source}: has a header and no row; give at least one row")
    labels = _labels(table, choice, wanted)
    columns = _class_columns(table, choice, wanted, labels)
    taken = {choice.label_column, *columns.values()}
    return Rows(
        source=table.source,
        title=choice.path.name,
        classes=tuple(columns),
        probabilities=np.stack([_numbers(table, name) for name in columns.values()], axis=1)
        if columns
        else np.empty((n_rows, 0)),
        labels=labels,
        place_of=table.place_of,
        columns={
            name: values
            for name, values in table.columns.items()
            if name not in taken or (name == choice.label_column and labels is not None)
        },
    )


def _labels(table: Table, choice: InputChoice, wanted: Wanted) -> list[str | None] | None:
    if choice.label_column in table.columns:
        return [_text(value) for value in table.columns[choice.label_column]]
    if wanted.labels:
        raise DataError(
            f"{table.source}: has no column '{choice.label_column}'; have: {shortened(list(table.columns))}; name the "
            "column with the right class with --label-column"
        )
    return None


def _text(value: object) -> str | None:
    """Return the name of a class as a text; None for a missing one."""
    if value is None or (isinstance(value, float) and np.isnan(value)) or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # A column of whole numbers with a missing one becomes one of floats in some programs.
    return str(value)


def _class_columns(
    table: Table, choice: InputChoice, wanted: Wanted, labels: Sequence[str | None] | None
) -> dict[str, str]:
    """Return the column of each class by its name, in the order of the classes."""
    names = [name for name in table.columns if name != choice.label_column and name not in choice.ignored]
    missing = [name for name in choice.ignored if name not in table.columns]
    if missing:
        raise ConfigError(f"--ignore {missing[0]}: {table.source} has no such column; have: {shortened(list(names))}")
    told = choice.classes or wanted.classes
    if told is not None:
        return {one: _column_of(one, table, names, choice) for one in told}
    prefix = PREFIX if choice.prefix is None else choice.prefix
    begun = {name.removeprefix(prefix): name for name in names if name.startswith(prefix) and name != prefix}
    known = {label for label in labels or () if label is not None}
    if choice.prefix is not None or (len(begun) > 1 and not known & {*names}):
        return begun
    return {name: name for name in names if name in known or _is_class(name, table)}


def _column_of(one: str, table: Table, names: Sequence[str], choice: InputChoice) -> str:
    """Return the column of a class: the one of its name, or of its name after the prefix."""
    prefix = PREFIX if choice.prefix is None else choice.prefix
    tried = [f"{prefix}{one}", one] if choice.prefix is not None else [one, f"{prefix}{one}"]
    found = next((name for name in tried if name in names), None)
    if found is None:
        raise DataError(
            f"{table.source}: has no column for class '{one}'; have: {shortened(list(names))}; name the columns of the "
            "classes by the classes, with --prefix if they begin with more"
        )
    return found


def _is_class(name: str, table: Table) -> bool:
    """Return True if a column that no label names holds probabilities; it is then a class without rows.

    Raises:
        DataError: the column holds numbers that are no probabilities.
    """
    if name.lower() in _ID_NAMES or name.lower().endswith(_ID_ENDING):
        return False
    values = table.columns[name]
    known = [number for value in values if (number := _number(value)) is not None]
    if 2 * len(known) <= len(values):
        return False
    largest = max(known)
    if largest > _MOST_SHARE or min(known) < 0:
        shown = largest if largest > _MOST_SHARE else min(known)
        raise DataError(
            f"{table.source}: column '{name}' holds {shown:g}, which is no probability, and no row has this label; "
            f"leave it out with --ignore {name}, or name the columns of the classes with --classes"
        )
    return True


def _numbers(table: Table, name: str) -> FloatArray:
    """Return a column as numbers, shape (n,).

    Raises:
        DataError: a cell is no number.
    """
    values = table.columns[name]
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        row = next(row for row, value in enumerate(values) if _number(value) is None)
    cell = values[row]
    said = "is empty" if cell in ("", None) else f"is {str(cell)[:_N_SHOWN]!r}, which is no number"
    raise DataError(
        f"{table.source}: {table.place_of(row)}: column '{name}' {said}; give the probability of the class, or leave "
        "the row out"
    )


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
