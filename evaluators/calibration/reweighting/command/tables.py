"""Reads files of class probabilities: CSV, Parquet, NPZ and the vectors of DCS.

The columns of CSV and Parquet files have names, some of which are classes. Those of NPZ and DCS files do not: their
classes are named by ``--classes``, the file, the rules to apply, or the labels.
"""

from __future__ import annotations

import csv
import io
import lzma
import math
import re
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from biasboard.ground import plain_text
from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError, DataError
from evaluators.calibration.reweighting.array_checks import LEAST_CLASSES
from evaluators.calibration.reweighting.command.rows import (
    CLASSES,
    LABELS,
    PREFIX,
    PROBABILITIES,
    InputChoice,
    Rows,
    first_twice,
    listed,
    sorted_names,
)
from schemas.files import arrow_files

_N_SHOWN = 60
# 134 million numbers: a small file can be unpacked to more than any memory holds.
_MOST_BYTES = 2**30
_MEMBER = re.compile(r"[^/\\:\0]+\.npy")
# The kinds of NumPy's types: whether, integers, and floats.
_NUMBERS = "biuf"
_NPZ_ERRORS = (
    *(ValueError, OSError, EOFError, KeyError, RuntimeError, SyntaxError, TypeError, MemoryError),
    *(tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What zipfile and NumPy raise for a broken file; the headers of arrays are parsed as Python."""
_DELIMITERS = ",;\t"
# Names of columns that number the rows; "Unnamed: 0" is how pandas reads back an unnamed index.
_NO_CLASS = {"", "id", "idx", "index", "row", "unnamed: 0"}
# Files give probabilities with six decimals, so rounding may lift one above 1.
_MOST_SHARE = 1.0 + 1e-6
# Cells before the probabilities in a DCS line.
_DCS_CELLS = ("id", "label", "pred")


class Table(NamedTuple):
    """The cells of a file, before its classes are determined."""

    columns: dict[str, Sequence[object]]
    """Values of each row, by the name of their column."""
    label_column: str
    """Name of the column with the right classes; the column may be missing."""
    where_of: Callable[[int], str]
    """Function from the index of a row to words that locate it, such as ``line 4``."""
    shares: FloatArray | None = None
    """Probabilities whose columns have no names, shape (n, n_columns); None if they are among the columns."""
    classes: tuple[str, ...] | None = None
    """Classes of the unnamed columns, if the file names them."""
    are_sorted: bool = False
    """True if unnamed columns are in the order of the sorted labels, as scikit-learn writes them."""


def is_dcs(line: str) -> bool:
    """Return True if a line is ``id label pred p1 ... pN`` with spaces between.

    >>> is_dcs("17 0 1 0.250000 0.750000"), is_dcs("label,a,b")
    (True, False)
    """
    shares = line.split()[len(_DCS_CELLS) :]
    if len(shares) < LEAST_CLASSES or "," in line or "\t" in line:
        return False
    return all((number := _number(share)) is not None and 0 <= number <= 1 for share in shares)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: is no text in UTF-8 ({error.reason} at byte {error.start}); export it again"
        ) from error


def _read_csv(choice: InputChoice) -> Table:
    """Read a CSV file with a header; its separator is a comma, a semicolon or a tab.

    pandas would pad short lines, rename duplicate columns, and not report the line of a faulty cell. It also takes
    0.6 s to load, nearly as long as the whole command.
    """
    path, text = choice.path, _text(choice.path)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    # Quoted cells can contain line breaks, so the line of a row does not follow from its number.
    lines: list[int] = []
    cells: list[list[str]] = []
    try:
        names = [plain_text.unprotected(name.strip()) for name in next(reader, [])]
        _check_names(path, names)
        for row in reader:
            if row and len(row) != len(names):
                raise DataError(
                    f"{path}: line {reader.line_num} has {len(row)} cells, and the header (line 1) {len(names)}; "
                    "correct the line"
                )
            if row:  # Many programs leave an empty line at the end.
                lines.append(reader.line_num)
                cells.append(list(map(plain_text.unprotected, row)))
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}; correct the line") from error
    columns: dict[str, Sequence[object]] = {name: [row[index] for row in cells] for index, name in enumerate(names)}
    return Table(columns, choice.label_column, lambda row: f"line {lines[row]} (line 1 is the header)")


def _read_parquet(choice: InputChoice) -> Table:
    import pyarrow as pa

    path = choice.path
    names = arrow_files.foreign_schema(path).names
    if "reading" in names and "exchanges" in names:
        raise DataError(f"{path}: holds the records of a run; name the folder of the run instead")
    _check_names(path, names)
    columns: dict[str, Sequence[object]] = {}
    try:
        for name, column in zip(names, arrow_files.foreign_table(path, names).columns, strict=True):
            # Missing numbers become nan, and other missing values None.
            is_real = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
            columns[name] = column.cast(pa.float64()).to_numpy() if is_real else column.to_pylist()
    # Times may be too early, and in zones that nobody knows.
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise DataError(f"{path}: not a readable parquet file: {reason}; make it again") from error
    return Table(columns, choice.label_column, _row_from_1)


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not any(names):
        raise DataError(f"{path}: is empty; give a header, with one column per class and one with the right class")
    if (twice := first_twice(names)) is not None:
        raise DataError(f"{path}: column '{twice}' stands {names.count(twice)} times; keep one, or rename it")


def _read_npz(choice: InputChoice) -> Table:
    """Read the arrays ``probabilities`` and ``labels``, optionally ``classes``, and others with one value per row."""
    path = choice.path
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: is no NPZ file, or a part of one; write it again")
    try:
        with zipfile.ZipFile(path) as file:
            _check_members(path, file)
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    except _NPZ_ERRORS as error:
        reason = plain_text.one_line(error)
        raise DataError(f"{path}: not a readable NPZ file of plain arrays: {reason}; write it again") from error
    if PROBABILITIES not in arrays:
        raise DataError(f"{path}: has no array '{PROBABILITIES}'; have: {listed(list(arrays)) or 'none'}")
    if (kind := arrays[PROBABILITIES].dtype).kind not in _NUMBERS:
        raise DataError(f"{path}: array '{PROBABILITIES}' holds no numbers ({kind}); give floats")
    probabilities = np.asarray(arrays.pop(PROBABILITIES), dtype=np.float64)
    if probabilities.ndim != 2:
        raise DataError(
            f"{path}: array '{PROBABILITIES}' has the shape {probabilities.shape}; give one row per item and one "
            "column per class"
        )
    named: dict[str, list[str]] = {}
    for name, unit, n in zip((LABELS, CLASSES), ("row", "column"), probabilities.shape, strict=True):
        if (values := arrays.pop(name, None)) is not None:
            if values.shape != (n,):
                raise DataError(
                    f"{path}: array '{name}' has the shape {values.shape}; give one value per {unit}: ({n},)"
                )
            named[name] = [_label(value) or "" for value in values.tolist()]
    columns: dict[str, Sequence[object]] = {
        name: values.tolist() for name, values in arrays.items() if values.shape == probabilities.shape[:1]
    }
    columns |= {LABELS: named[LABELS]} if LABELS in named else {}
    classes = tuple(named[CLASSES]) if CLASSES in named else None
    return Table(columns, LABELS, _row_from_1, probabilities, classes, are_sorted=True)


def _check_members(path: Path, file: zipfile.ZipFile) -> None:
    """Check what an NPZ file says that it holds, before any array is read: names, sizes, and kinds of values.

    Raises:
        DataError: a member is no plain array of numbers or texts, or has not the size that its header says.
        ValueError: the header of a member cannot be read, as one of ``_NPZ_ERRORS``.
    """
    members = file.infolist()
    if (twice := first_twice([member.filename for member in members])) is not None:
        raise DataError(f"{path}: '{plain_text.printable(twice)}' stands in it several times; keep one")
    n_bytes = sum(member.file_size for member in members)
    if n_bytes > _MOST_BYTES:
        raise DataError(
            f"{path}: its arrays have {n_bytes:,} bytes, and {_MOST_BYTES:,} may be read; give fewer rows or columns"
        )
    for member in members:
        name = plain_text.printable(member.filename)
        if not _MEMBER.fullmatch(member.filename):
            raise DataError(f"{path}: holds '{name}', which is no array; write it again with numpy.savez")
        with file.open(member) as opened:
            version = np.lib.format.read_magic(opened)
            # The third version differs in names of fields alone, which no plain array has.
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read is None:
                raise DataError(f"{path}: array '{name}' has format version {version}; write it again with numpy.savez")
            shape, _, dtype = read(opened)
            n_stored = member.file_size - opened.tell()
        if dtype.hasobject:
            raise ValueError(f"array '{name}' holds objects")
        if dtype.kind not in f"{_NUMBERS}SU":
            raise DataError(
                f"{path}: array '{name}' holds values of type {dtype}; give numbers or texts, dates as texts"
            )
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != n_stored:
            raise DataError(
                f"{path}: array '{name}' should have the shape {plain_text.printable(str(shape))}, and its data has "
                f"{n_stored:,} bytes; write it again"
            )


def _row_from_1(row: int) -> str:
    return f"row {row + 1} (the first row is row 1)"


def _read_dcs(choice: InputChoice) -> Table:
    """Read lines ``id label pred p1 ... pN`` without a header; labels are names of classes, or their numbers from 0."""
    path = choice.path
    numbered = enumerate(_text(path).splitlines(), start=1)
    lines = [(number, line.split()) for number, line in numbered if line.strip()]
    if not lines:
        raise DataError(f"{path}: is empty; give lines 'id label pred p1 ... pN'")
    first, width = len(_DCS_CELLS), len(lines[0][1])
    for number, cells in lines:
        if len(cells) != width or width <= first:
            raise DataError(
                f"{path}: line {number} has {len(cells)} words, and {max(width, first + 2)} are needed: id, "
                "label, pred, and a probability per class, separated by spaces"
            )
    words = list(zip(*(cells for _, cells in lines), strict=True))

    def where_of(row: int) -> str:
        return f"line {lines[row][0]}"

    shares = _as_numbers(path, where_of, {f"word {n}": cells for n, cells in enumerate(words[first:], start=first + 1)})
    columns: dict[str, Sequence[object]] = {name: list(cells) for name, cells in zip(_DCS_CELLS, words, strict=False)}
    return Table(columns, "label", where_of, shares)


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _as_numbers(path: Path, where_of: Callable[[int], str], columns: Mapping[str, Sequence[object]]) -> FloatArray:
    """Return columns of cells as numbers, shape (n, n_columns).

    Raises:
        DataError: a cell is not a number.
    """
    numbers = []
    for name, cells in columns.items():
        try:
            values = np.array(cells, dtype=np.float64)
            is_number = values.ndim == 1
        except (TypeError, ValueError):
            is_number = False
        if not is_number:
            row = next(row for row, cell in enumerate(cells) if _number(cell) is None)
            problem = f"is {str(cells[row])[:_N_SHOWN]!r}, which is no number"
            raise DataError(
                f"{path}: {where_of(row)}: {name} {'is empty' if cells[row] in ('', None) else problem}; give the "
                "probability of the class, or leave the row out"
            )
        numbers.append(values)
    return np.stack(numbers, axis=1)


def _label(value: object) -> str | None:
    """Return the name of a class as a text; None for a missing one."""
    if value is None or value == "" or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # Some programs turn a column of whole numbers with a missing value into floats.
    return str(value)


def rows_of(table: Table, choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> Rows:
    """Return the rows of a table, whose classes are named by the options, the file, the rules or the labels."""
    path, columns = choice.path, dict(table.columns)
    if table.shares is None and not len(next(iter(columns.values()))):
        raise DataError(f"{path}: has a header and no row; give at least one row")
    labels = [_label(value) for value in columns[table.label_column]] if table.label_column in columns else None
    if labels is None and needs_labels:
        raise DataError(
            f"{path}: has no array '{LABELS}' with the right class of each row; add it"
            if table.shares is not None
            else f"{path}: has no column '{table.label_column}'; have: {listed(list(columns))}; name the column with "
            "the right class with --label-column"
        )
    if table.shares is None:
        column_of = _class_columns(str(path), columns, choice, wanted, {*(labels or ())})
        classes = tuple(column_of)
        cells = {f"column '{name}'": columns.pop(name) for name in column_of.values()}
        n_rows = len(next(iter(table.columns.values())))
        shares = _as_numbers(path, table.where_of, cells) if cells else np.empty((n_rows, 0))
    else:
        shares = table.shares
        classes = _named_columns(table, choice, wanted, labels)
        if labels is not None and not {*labels} <= {*classes, None}:
            numbers = {str(number): name for number, name in enumerate(classes)}
            labels = [label if label is None else numbers.get(label, label) for label in labels]
    return Rows(
        source=str(path),
        title=path.name,
        classes=classes,
        probabilities=shares,
        labels=labels,
        where_of=table.where_of,
        columns=columns,
    )


def _class_columns(
    source: str,
    columns: Mapping[str, Sequence[object]],
    choice: InputChoice,
    wanted: Sequence[str] | None,
    labels: set[str | None],
) -> dict[str, str]:
    """Return the column of each class by its name, in the order of the classes."""
    names = [name for name in columns if name not in (choice.label_column, *choice.ignored)]
    missing = [name for name in choice.ignored if name not in columns]
    if missing:
        raise ConfigError(f"--ignore {missing[0]}: {source} has no such column; have: {listed(names)}")
    prefix = PREFIX if choice.prefix is None else choice.prefix
    classes = choice.classes or wanted
    if classes is not None:
        column_of = {}
        for label in classes:
            tried = (f"{prefix}{label}", label) if choice.prefix is not None else (label, f"{prefix}{label}")
            name = next((name for name in tried if name in names), None)
            if name is None:
                raise DataError(
                    f"{source}: has no column for class '{label}'; have: {listed(names)}; name the columns of the "
                    "classes by the classes, with --prefix if they begin with more"
                )
            column_of[label] = name
        return column_of
    prefixed = {name.removeprefix(prefix): name for name in names if name.startswith(prefix) and name != prefix}
    if choice.prefix is not None or (len(prefixed) > 1 and not labels & {*names}):
        return prefixed
    return {name: name for name in names if name in labels or _holds_probabilities(source, name, columns[name])}


def _holds_probabilities(source: str, name: str, values: Sequence[object]) -> bool:
    """Return True if a column that no label names holds probabilities, and so is a class without rows.

    Raises:
        DataError: the column holds numbers that are not probabilities.
    """
    if name.lower() in _NO_CLASS or name.lower().endswith("_id"):
        return False
    numbers = [number for value in values if (number := _number(value)) is not None]
    if 2 * len(numbers) <= len(values):
        return False
    smallest, largest = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    if largest > _MOST_SHARE or smallest < 0:
        raise DataError(
            f"{source}: column '{name}' holds {largest if largest > _MOST_SHARE else smallest:g}, which is no "
            f"probability, and no row has this label; leave it out with --ignore {name}, or name the columns of the "
            "classes with --classes"
        )
    return True


def _named_columns(
    table: Table, choice: InputChoice, wanted: Sequence[str] | None, labels: Sequence[str | None] | None
) -> tuple[str, ...]:
    """Return the classes of unnamed columns: those that were named, or those that the labels imply.

    Labels that are all numbers below the number of columns are column indices from 0.
    """
    assert table.shares is not None
    path, n = choice.path, table.shares.shape[1]
    classes = choice.classes or table.classes or wanted
    if classes is not None:
        if len(classes) != n:
            raise DataError(
                f"{path}: has {n} columns of probabilities, and there are {len(classes)} classes: {listed(classes)}; "
                "give one column per class, in this order"
            )
        return tuple(classes)
    occurring, numbers = {label for label in labels or () if label is not None}, tuple(map(str, range(n)))
    if occurring and occurring <= {*numbers}:
        return numbers
    if table.are_sorted and len(occurring) == n:
        return tuple(sorted_names(occurring))
    labels_shown = listed(sorted_names(occurring)) or "unknown"
    raise DataError(
        f"{path}: has {n} columns of probabilities, and the labels are {labels_shown}; name the class of each column "
        "with --classes a,b,c"
    )


READERS: dict[str, Callable[[InputChoice], Table]] = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "npz": _read_npz,
    "dcs": _read_dcs,
}
"""The reader of each kind of file."""
