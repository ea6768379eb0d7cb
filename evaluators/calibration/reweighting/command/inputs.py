"""Reads class probabilities with their right classes, from files and from finished runs.

The columns of CSV and Parquet files have names, some of which are classes. Those of NPZ files and of the vectors of DCS
do not: their classes are named by ``--classes``, the file, the rules to apply, or the labels.
"""

from __future__ import annotations

import csv
import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from biasboard.ground import plain_text
from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from evaluators.calibration.reweighting.command.rows import (
    PREFIX,
    InputChoice,
    LabelledRows,
    first_twice,
    listed,
    row_from_1,
    sorted_names,
)
from evaluators.calibration.reweighting.command.run_rows import read_run
from schemas.files.user_tables import SEPARATORS, read_frame
from schemas.folders.run_folder import RESULT

if TYPE_CHECKING:
    import pandas as pd

PROBABILITIES, LABELS, CLASSES = "probabilities", "labels", "classes"
"""Names of the arrays of an NPZ file."""
# The beginnings of ZIP archives, such as NPZ files, with members and without; and that of Parquet files.
_ZIP, _PARQUET = (b"PK\x03\x04", b"PK\x05\x06"), b"PAR1"
# What zipfile and NumPy raise for a broken file; the headers of arrays are parsed as Python.
_NPZ_ERRORS = (
    *(ValueError, OSError, EOFError, KeyError, RuntimeError, SyntaxError, TypeError, MemoryError),
    *(tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
# The kinds of NumPy's types: whether, integers, and floats.
_NUMBERS = "biuf"
# Words before the probabilities in a line of DCS.
_DCS_WORDS = ("id", "label", "pred")
# Names of columns that number the rows; "Unnamed: 0" is how pandas reads back an unnamed index.
_NO_CLASS = {"", "id", "idx", "index", "row", "unnamed: 0"}
# Files give probabilities with six decimals, so rounding may lift one above 1.
_MOST_SHARE = 1.0 + 1e-6
_N_SHOWN = 60


def read_rows(
    choice: InputChoice, wanted: tuple[str, ...] | None = None, *, needs_labels: bool = True, gets_rules: bool = False
) -> LabelledRows:
    """Read an input, and check its probabilities and classes.

    Args:
        choice: The input and its choices.
        wanted: Classes of rules or of other rows, in their order, that these rows must have; None for any.
        needs_labels: True if every row needs its right class.
        gets_rules: True if rules will be applied, so that no column may have the name of a corrected one.

    Raises:
        ConfigError: an option does not fit the input.
        DataError: the input cannot be read, or a value in it is wrong.
    """
    path = choice.path
    if not path.exists():
        raise DataError(f"{path}: no such file; give a file of probabilities or the folder of a run")
    if path.is_dir() or path.name == RESULT:
        rows = read_run(choice, wanted, needs_labels)
    elif choice.config is not None or choice.splits:
        flag = "--config" if choice.config is not None else "--split"
        raise ConfigError(f"{flag} picks records of a run, and {path} is a file; leave it out")
    else:
        rows = _read_file(choice, wanted, needs_labels)
    for fault in rows.faults(wanted, needs_labels=needs_labels, gets_rules=gets_rules):
        raise DataError(f"{rows.source}: {fault}")
    if wanted is None or wanted == rows.classes:
        return rows
    order = [rows.classes.index(name) for name in wanted]
    return replace(rows, classes=wanted, probabilities=rows.probabilities[:, order])


def _read_file(choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> LabelledRows:
    check_readable(choice.path)
    with choice.path.open("rb") as file:
        first = file.readline(65_536)
    if first.startswith(_ZIP):
        return _npz_rows(choice, wanted, needs_labels)
    if first.lstrip().startswith((b"{", b"[{")):
        raise DataError(f"{choice.path}: looks like JSON; give a CSV, Parquet or NPZ file, vectors of DCS, or a run")
    # A header of words that no separator of CSV files divides would have a single column.
    if len(first.split()) > len(_DCS_WORDS) + 1 and not any(sign in first for sign in map(str.encode, SEPARATORS)):
        return _dcs_rows(choice, wanted, needs_labels)
    return _named_rows(choice, wanted, needs_labels, is_csv=not first.startswith(_PARQUET))


def _named_rows(
    choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool, *, is_csv: bool
) -> LabelledRows:
    """Return the rows of a CSV or Parquet file."""
    path, frame = choice.path, read_frame(choice.path)
    if [*frame.index.names] != [None]:
        frame = frame.reset_index(allow_duplicates=True)
    frame = frame.reset_index(drop=True).set_axis([str(name).strip() for name in frame.columns], axis=1)
    if is_csv:
        frame = frame.map(plain_text.unprotected).rename(columns=plain_text.unprotected)
    names = [*frame.columns]
    if {"reading", "exchanges"} <= {*names}:
        raise DataError(f"{path}: holds the records of a run; name the folder of the run instead")
    if (twice := first_twice(names)) is not None:
        raise DataError(f"{path}: column '{twice}' stands {names.count(twice)} times; keep one, or rename it")
    if not len(frame):
        raise DataError(f"{path}: has a header and no row; give at least one row")
    labels = None
    if choice.label_column in names:
        labels = [*map(_label, frame[choice.label_column].tolist())]
    elif needs_labels:
        raise DataError(
            f"{path}: has no column '{choice.label_column}'; have: {listed(names)}; name the column with the right "
            "class with --label-column"
        )
    column_of = _class_columns(frame, choice, wanted, {*(labels or ())})
    cells = {f"column '{name}'": frame[name].tolist() for name in column_of.values()}
    return LabelledRows(
        source=str(path),
        title=path.name,
        classes=tuple(column_of),
        probabilities=_as_numbers(choice, cells) if cells else np.empty((len(frame), 0)),
        labels=labels,
        columns=frame.drop(columns=[*column_of.values()]),
    )


def _class_columns(
    frame: pd.DataFrame, choice: InputChoice, wanted: Sequence[str] | None, labels: set[str | None]
) -> dict[str, str]:
    """Return the column of each class by its name, in the order of the classes."""
    path = choice.path
    names = [name for name in frame.columns if name not in (choice.label_column, *choice.ignored)]
    missing = [name for name in choice.ignored if name not in frame.columns]
    if missing:
        raise ConfigError(f"--ignore {missing[0]}: {path} has no such column; have: {listed(names)}")
    prefix = PREFIX if choice.prefix is None else choice.prefix
    if (classes := choice.classes or wanted) is not None:
        column_of = {}
        for label in classes:
            tried = (f"{prefix}{label}", label) if choice.prefix is not None else (label, f"{prefix}{label}")
            name = next((name for name in tried if name in names), None)
            if name is None:
                raise DataError(
                    f"{path}: has no column for class '{label}'; have: {listed(names)}; name the columns of the "
                    "classes by the classes, with --prefix if they begin with more"
                )
            column_of[label] = name
        return column_of
    prefixed = {name.removeprefix(prefix): name for name in names if name.startswith(prefix) and name != prefix}
    if choice.prefix is not None or (len(prefixed) > 1 and not labels & {*names}):
        return prefixed
    return {name: name for name in names if name in labels or _holds_probabilities(choice, name, frame[name].tolist())}


def _holds_probabilities(choice: InputChoice, name: str, values: Sequence[object]) -> bool:
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
            f"{choice.path}: column '{name}' holds {largest if largest > _MOST_SHARE else smallest:g}, which is no "
            f"probability, and no row has this label; leave it out with --ignore {name}, or name the columns of the "
            "classes with --classes"
        )
    return True


def _npz_rows(choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> LabelledRows:
    """Read the arrays ``probabilities`` and ``labels``, optionally ``classes``, and others with one value per row."""
    import pandas as pd

    from schemas.files import arrow_files

    path = choice.path
    try:
        with zipfile.ZipFile(path) as file:
            if sum(member.file_size for member in file.infolist()) > arrow_files.MOST_BYTES:
                raise arrow_files.too_large(path)
        with np.load(path, allow_pickle=False) as loaded:
            members = {name: loaded[name] for name in loaded.files}
    except _NPZ_ERRORS as error:
        reason = plain_text.one_line(error)
        raise DataError(f"{path}: not a readable NPZ file of plain arrays: {reason}; write it again") from error
    # A member that is no array, such as a text, is read as bytes.
    arrays = {name: values for name, values in members.items() if isinstance(values, np.ndarray)}
    if (shares := arrays.pop(PROBABILITIES, None)) is None:
        raise DataError(f"{path}: has no array '{PROBABILITIES}'; have: {listed(list(arrays)) or 'none'}")
    if shares.dtype.kind not in _NUMBERS or shares.ndim != 2:
        raise DataError(
            f"{path}: array '{PROBABILITIES}' has the shape {shares.shape} and the type {shares.dtype}; give one row "
            "of numbers per item and one column per class"
        )
    named: dict[str, list[str | None]] = {}
    for name, unit, n in zip((LABELS, CLASSES), ("row", "column"), shares.shape, strict=True):
        if (values := arrays.pop(name, None)) is not None:
            if values.shape != (n,) or values.dtype.kind not in f"{_NUMBERS}U":
                raise DataError(
                    f"{path}: array '{name}' has the shape {values.shape} and the type {values.dtype}; give one text "
                    f"or number per {unit}: ({n},)"
                )
            named[name] = [*map(_label, values.tolist())]
    if LABELS not in named and needs_labels:
        raise DataError(f"{path}: has no array '{LABELS}' with the right class of each row; add it")
    others = {name: values.tolist() for name, values in arrays.items() if values.shape == shares.shape[:1]}
    columns = pd.DataFrame(others | {name: values for name, values in named.items() if name == LABELS})
    classes = tuple(name or "" for name in named[CLASSES]) if CLASSES in named else None
    # As scikit-learn does, columns without names are taken to be in the order of the sorted labels.
    return _unnamed_rows(choice, shares.astype(np.float64), named.get(LABELS), columns, classes or wanted, True)


def _dcs_rows(choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> LabelledRows:
    """Read lines ``id label pred p1 ... pN`` without a header; labels are names of classes, or their numbers from 0."""
    import pandas as pd

    path = choice.path
    try:
        words = pd.read_csv(
            path,
            sep=r"\s+",
            header=None,
            dtype=object,
            keep_default_na=False,
            quoting=csv.QUOTE_NONE,
            encoding="utf-8-sig",
        )
    except ValueError as error:
        reason = plain_text.one_line(error)
        raise DataError(
            f"{path}: is neither CSV nor lines 'id label pred p1 ... pN' of equal length ({reason}); correct it"
        ) from error
    first = len(_DCS_WORDS)
    cells = {f"word {at + 1}": words.iloc[:, at].tolist() for at in range(first, words.shape[1])}
    labels = [*map(_label, words.iloc[:, 1].tolist())]
    columns = words.iloc[:, :first].set_axis([*_DCS_WORDS], axis=1)
    return _unnamed_rows(choice, _as_numbers(choice, cells), labels, columns, wanted, False)


def _unnamed_rows(
    choice: InputChoice,
    shares: FloatArray,
    labels: list[str | None] | None,
    columns: pd.DataFrame,
    named: tuple[str, ...] | None,
    are_sorted: bool,
) -> LabelledRows:
    """Return rows whose classes are those that were named, or those that the labels imply.

    Labels that are all numbers below the number of columns are column indices from 0.
    """
    path, n = choice.path, shares.shape[1]
    classes = choice.classes or named
    occurring, numbers = {label for label in labels or () if label is not None}, tuple(map(str, range(n)))
    if classes is None and occurring and occurring <= {*numbers}:
        classes = numbers
    if classes is None and are_sorted and len(occurring) == n:
        classes = tuple(sorted_names(occurring))
    if classes is None:
        raise DataError(
            f"{path}: has {n} columns of probabilities, and the labels are "
            f"{listed(sorted_names(occurring)) or 'unknown'}; name the class of each column with --classes a,b,c"
        )
    if len(classes) != n:
        raise DataError(
            f"{path}: has {n} columns of probabilities, and there are {len(classes)} classes: {listed(classes)}; "
            "give one column per class, in this order"
        )
    if labels is not None and not occurring <= {*classes}:
        name_of = dict(zip(numbers, classes, strict=True))
        labels = [label if label is None else name_of.get(label, label) for label in labels]
    return LabelledRows(
        source=str(path), title=path.name, classes=classes, probabilities=shares, labels=labels, columns=columns
    )


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _as_numbers(choice: InputChoice, columns: Mapping[str, Sequence[object]]) -> FloatArray:
    """Return columns of cells as numbers, shape (n, n_columns).

    Raises:
        DataError: a cell is not a number.
    """
    numbers = [[*map(_number, cells)] for cells in columns.values()]
    for (name, cells), of_column in zip(columns.items(), numbers, strict=True):
        if None in of_column:
            row = of_column.index(None)
            shown = "" if cells[row] is None else str(cells[row])[:_N_SHOWN]
            problem = f"is {shown!r}, which is no number" if shown else "is empty"
            raise DataError(
                f"{choice.path}: {row_from_1(row)}: {name} {problem}; give the probability of the class, or leave the "
                "row out"
            )
    return np.array(numbers, dtype=np.float64).T.copy()


def _label(value: object) -> str | None:
    """Return the name of a class as a text; None for a missing one."""
    # Cells of Parquet files can be arrays, which cannot be compared with a text.
    if value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # Some programs turn a column of whole numbers with a missing value into floats.
    return str(value)
