"""Checks probabilities and classes before a correction is fitted or applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import FloatArray, IntArray

LEAST_CLASSES = 2


class Fault(NamedTuple):
    """A value in a table of probabilities that is not a probability."""

    row: int
    """Index of the row."""
    column: int | None
    """Index of the column; None if the row as a whole is at fault."""
    problem: str
    remedy: str


def checked_probabilities(probabilities: npt.ArrayLike, n_classes: int | None = None) -> FloatArray:
    """Return probabilities as an array of shape (n, n_classes).

    Rows need not sum to 1, since scaling a row does not change its prediction.

    Args:
        probabilities: Probability of each class in each row.
        n_classes: Required number of columns; None for any number from two.

    Raises:
        ValueError: it is not a table of numbers, has no rows or the wrong number of columns, a value is missing,
            infinite or negative, or a row is all zeros or has an infinite sum.
    """
    try:
        values = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        check_rows(probabilities)
        raise ValueError(f"the probabilities are no table of numbers ({error}); give one column per class") from error
    if values.ndim != 2:
        raise ValueError(
            f"the probabilities have {values.ndim} dimensions; give a row per item and a column per class. "
            "Reshape your data: expected 2D array"
        )
    if not len(values):
        raise ValueError(f"the probabilities have no row (shape={values.shape}); a minimum of 1 is required")
    if n_classes is not None and values.shape[1] != n_classes:
        raise ValueError(
            f"the probabilities have {values.shape[1]} columns, and there are {n_classes} classes; give one column per "
            "class, in the order of the classes"
        )
    if values.shape[1] < LEAST_CLASSES:
        raise ValueError("the probabilities have 1 column (n_features = 1); a correction needs at least two classes")
    fault = first_fault(values)
    if fault is not None and fault.column is None:
        raise ValueError(f"row {fault.row} {fault.problem}; {fault.remedy}")
    if fault is not None:
        value = values[fault.row, fault.column]
        raise ValueError(f"{fault.problem}: row {fault.row}, column {fault.column} is {value}; {fault.remedy}")
    return values


def first_fault(values: FloatArray) -> Fault | None:
    """Return the first value that is not a probability or row that is all zeros; None if there is no fault.

    Args:
        values: Probability of each class in each row, shape (n, n_classes).
    """
    for is_bad, problem, remedy in (
        (np.isnan(values), "NaN in data", "leave the row out, or ask the model again"),
        (np.isinf(values), "infinity in data", "give probabilities, not odds or their logarithms"),
        (values < 0, "Negative values in data", "give probabilities; exponentiate logarithms first"),
    ):
        if is_bad.any():
            row, column = np.argwhere(is_bad)[0].tolist()
            return Fault(row, column, problem, remedy)
    empty = np.flatnonzero(~values.any(axis=1))
    if len(empty):
        problem, remedy = "has nothing but zeros", "leave it out, since it says nothing about any class"
        return Fault(int(empty[0]), None, problem, remedy)
    with np.errstate(over="ignore"):
        too_large = np.flatnonzero(np.isinf(values.sum(axis=1)))
    if len(too_large):
        return Fault(int(too_large[0]), None, "has a sum that is too large for a number", "give probabilities")
    return None


def check_rows(probabilities: npt.ArrayLike) -> None:
    """Check that all rows have the same number of numbers, for tables that NumPy cannot read.

    Raises:
        ValueError: a row's number of columns differs from that of the first row, or a value is not a number.
    """
    width = None
    if isinstance(probabilities, np.ndarray):
        probabilities = probabilities.tolist() if probabilities.dtype.kind in "OUS" else ()
    for row, values in enumerate(probabilities if isinstance(probabilities, list | tuple) else ()):
        if not isinstance(values, list | tuple | np.ndarray):
            continue
        width = len(values) if width is None else width
        if len(values) != width:
            raise ValueError(f"row {row} has {len(values)} columns, and row 0 has {width}; give one column per class")
        for column, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"row {row}, column {column} is {value!r}, which is no number; give the probability of the class"
                ) from error


def check_known(targets: npt.ArrayLike) -> None:
    """Check that no row lacks its class.

    Raises:
        ValueError: the class of a row is None, nan, or the missing value of a data frame.
    """
    for row, name in enumerate(np.asarray(targets, dtype=object).ravel().tolist()):
        if not isinstance(name, str) and str(name) in ("None", "nan", "NaT", "<NA>"):
            raise ValueError(
                f"Input y contains NaN: the class of row {row} is {name}; name its class, or leave the row out"
            )


def coded_targets(
    targets: npt.ArrayLike, n_rows: int, n_columns: int, classes: Sequence[object] | None
) -> tuple[npt.NDArray[np.generic], IntArray]:
    """Return the classes in the order of the columns, and the index of the right class of each row.

    Args:
        targets: Name of the right class of each row.
        n_rows: Number of rows of the probabilities.
        n_columns: Number of their columns.
        classes: Name of the class of each column; None for the sorted names that occur.

    Raises:
        ValueError: numbers of rows or columns differ, a name is missing or has no column, or only one class occurs.
    """
    names = np.asarray(targets)
    if names.ndim != 1 or len(names) != n_rows:
        raise ValueError(f"there are {n_rows} rows of probabilities, and classes of shape {names.shape}; give one each")
    if names.dtype.kind == "f" and not (np.isfinite(names).all() and (names == np.round(names)).all()):
        row = int(np.flatnonzero(~(np.isfinite(names) & (names == np.round(names))))[0])
        raise ValueError(
            f"the class of row {row} is {names[row]}; Unknown label type: continuous. Give names or integers"
        )
    if names.dtype.kind == "O":
        check_known(names)
        kinds = [type(name) for name in names.tolist()]
        other = next((row for row, kind in enumerate(kinds) if (kind is str) != (kinds[0] is str)), None)
        if other is not None:
            raise ValueError(
                f"the class of row {other} is {names[other]!r}, and that of row 0 is {names[0]!r}; give all classes as "
                "texts or all as integers"
            )
    occurring, indices = np.unique(names, return_inverse=True)
    if len(occurring) < LEAST_CLASSES:
        raise ValueError(
            f"all {n_rows} rows are of one class, {occurring.tolist()[0]!r}; give rows of at least two classes"
        )
    if classes is None:
        if len(occurring) != n_columns:
            raise ValueError(
                f"the probabilities have {n_columns} columns, and {len(occurring)} classes occur; name the class of "
                "each column with 'classes'"
            )
        return occurring, indices.astype(np.int64)
    columns = np.asarray(list(classes))
    if columns.ndim != 1:
        raise ValueError(f"'classes' has {columns.ndim} dimensions; give one name per column")
    index_of = {name: index for index, name in enumerate(columns.tolist())}
    if len(index_of) < len(columns):
        raise ValueError(f"'classes' names {len(columns)} columns by {len(index_of)} names; give each column its own")
    if len(columns) != n_columns:
        raise ValueError(f"the probabilities have {n_columns} columns, and 'classes' names {len(columns)}; name each")
    strange = next((name for name in occurring.tolist() if name not in index_of), None)
    if strange is not None:
        row = int(np.flatnonzero(names == strange)[0])
        raise ValueError(
            f"the class of row {row} is {strange!r}, which is no column; have: {', '.join(map(repr, index_of))}"
        )
    columns_of = np.array([index_of[name] for name in occurring.tolist()], dtype=np.int64)
    return columns, columns_of[indices]
