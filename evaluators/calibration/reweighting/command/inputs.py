"""Reads class probabilities with their right classes, from tables and from finished runs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import one_line, unprotected
from evaluators.calibration.reweighting.command.rows import (
    PREFIX,
    InputChoice,
    LabelledRows,
    first_twice,
    listed,
    row_from_1,
)
from evaluators.calibration.reweighting.command.run_rows import read_run
from schemas.files.user_tables import read_frame
from schemas.folders.run_folder import RESULT

if TYPE_CHECKING:
    import pandas as pd

_ZIP = b"PK\x03\x04"
"""First bytes of an NPZ file, which is a ZIP archive."""
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
        rows = _table_rows(choice, wanted, needs_labels)
    rows.check(wanted, needs_labels=needs_labels, gets_rules=gets_rules)
    if wanted is None or wanted == rows.classes:
        return rows
    order = [rows.classes.index(name) for name in wanted]
    return replace(rows, classes=wanted, probabilities=rows.probabilities[:, order])


def _table_rows(choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> LabelledRows:
    """Return the rows of a CSV, Parquet or NPZ file."""
    path = choice.path
    check_readable(path)
    with path.open("rb") as file:
        kind = file.read(4)
    frame = _arrays(choice) if kind == _ZIP else read_frame(path)
    if [*frame.index.names] != [None]:
        frame = frame.reset_index(allow_duplicates=True)
    frame = frame.reset_index(drop=True).set_axis([str(name).strip() for name in frame.columns], axis=1)
    if kind not in (_ZIP, b"PAR1"):
        frame = frame.map(unprotected).rename(columns=unprotected)
    names = [*frame.columns]
    if {"reading", "exchanges"} <= {*names}:
        raise DataError(f"{path}: holds the records of a run; name the folder of the run instead")
    if (twice := first_twice(names)) is not None:
        raise DataError(f"{path}: column '{twice}' stands {names.count(twice)} times; keep one, or rename it")
    if not len(frame):
        raise DataError(f"{path}: has a header and no row; give at least one row")
    labels: list[str | None] = [None] * len(frame)
    if choice.label_column in names:
        labels = [*map(_label, frame[choice.label_column].tolist())]
    elif needs_labels:
        raise DataError(
            f"{path}: has no column '{choice.label_column}'; have: {listed(names)}; name the column with the right "
            "class with --label-column"
        )
    column_of = _class_columns(frame, choice, wanted, {*labels})
    return LabelledRows(
        source=str(path),
        title=path.name,
        classes=tuple(column_of),
        probabilities=_as_numbers(choice, {name: frame[name].tolist() for name in column_of.values()}),
        labels=labels,
        columns=frame.drop(columns=[*column_of.values()]),
    )


def _arrays(choice: InputChoice) -> pd.DataFrame:
    """Return the arrays ``probabilities`` (rows, classes), ``classes`` and, if given, ``labels`` of an NPZ file.

    Raises:
        DataError: they cannot be read, or take too much memory.
    """
    import pandas as pd

    from schemas.files import arrow_files

    path = choice.path
    try:
        with zipfile.ZipFile(path) as file:
            if sum(member.file_size for member in file.infolist()) > arrow_files.MOST_BYTES:
                raise arrow_files.too_large(path)
        with np.load(path, allow_pickle=False) as arrays:
            frame = pd.DataFrame(arrays["probabilities"], columns=[*map(_label, arrays["classes"].tolist())])
            if "labels" in arrays:
                # A class of that name is told as a column that stands twice.
                frame.insert(0, choice.label_column, arrays["labels"], allow_duplicates=True)
    except DataError:
        raise
    # A broken file can raise any exception: the headers of its arrays are parsed as Python.
    except Exception as error:
        raise DataError(
            f"{path}: holds no plain arrays 'probabilities' (one row per item, one column per class) and 'classes' "
            f"that can be read ({one_line(error)}); write it again"
        ) from error
    return frame


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
    numbers = []
    for name, cells in columns.items():
        of_column = [*map(_number, cells)]
        if None in of_column:
            row = of_column.index(None)
            shown = "" if cells[row] is None else str(cells[row])[:_N_SHOWN]
            problem = f"is {shown!r}, which is no number" if shown else "is empty"
            raise DataError(
                f"{choice.path}: {row_from_1(row)}: column '{name}' {problem}; give the probability of the class, or "
                "leave the row out"
            )
        numbers.append(np.array(of_column, dtype=np.float64))
    return np.column_stack(numbers) if numbers else np.empty((0, 0))


def _label(value: object) -> str | None:
    """Return the name of a class as a text; None for a missing one."""
    # Cells of Parquet files can be arrays, which cannot be compared with a text.
    if value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # Some programs turn a column of whole numbers with a missing value into floats.
    return str(value)
