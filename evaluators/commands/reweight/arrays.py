"""Reads rows of probabilities from NPZ files and from the text files of DCS, whose columns have no names."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluators.commands.reweight.rows import InputChoice, Rows, Wanted, shortened, sorted_names
from schemas.columns import FloatArray
from schemas.errors import DataError

PROBABILITIES, LABELS, CLASSES = "probabilities", "labels", "classes"
"""Names of the arrays of an NPZ file."""
_FIRST_SHARE = 3
"""Number of cells before the probabilities in a line of DCS: id, label and prediction."""
_N_SHOWN = 60


def read_npz(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read an NPZ file with the arrays ``probabilities`` and ``labels``, and optionally ``classes``.

    Arrays with one value per row, such as ids, are kept.

    Raises:
        DataError: the file is no such file, or an array is missing or has another shape.
    """
    source = str(choice.path)
    arrays = _arrays(source)
    if PROBABILITIES not in arrays:
        raise DataError(f"{source}: has no array '{PROBABILITIES}'; have: {shortened(list(arrays)) or 'none'}")
    try:
        probabilities = np.asarray(arrays[PROBABILITIES], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{source}: array '{PROBABILITIES}' holds no numbers ({error}); give floats") from error
    if probabilities.ndim != 2:
        raise DataError(
            f"{source}: array '{PROBABILITIES}' has the shape {probabilities.shape}; give one row per item and one "
            "column per class"
        )
    labels = _names(source, arrays, LABELS, len(probabilities)) if LABELS in arrays else None
    if labels is None and wanted.labels:
        raise DataError(f"{source}: has no array '{LABELS}' with the right class of each row; add it")
    own = _names(source, arrays, CLASSES, probabilities.shape[1]) if CLASSES in arrays else None
    rows = {
        name: values.tolist()
        for name, values in arrays.items()
        if name not in (PROBABILITIES, LABELS, CLASSES) and values.shape == (len(probabilities),)
    }
    classes = _classes(source, probabilities, choice, wanted, own, labels, is_sorted=True)
    return Rows(
        source=source,
        title=choice.path.name,
        classes=classes,
        probabilities=probabilities,
        labels=None if labels is None else _by_number(labels, classes),
        place_of=lambda row: f"row {row + 1} (the first row is row 1)",
        columns=rows if labels is None else {**rows, LABELS: labels},
    )


def _arrays(source: str) -> dict[str, npt.NDArray[np.generic]]:
    if not zipfile.is_zipfile(source):
        raise DataError(f"{source}: is no NPZ file, or a part of one; write it again")
    try:
        with np.load(source, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise DataError(f"{source}: not a readable NPZ file of plain arrays: {reason}; write it again") from error


def _names(source: str, arrays: dict[str, npt.NDArray[np.generic]], name: str, n: int) -> list[str]:
    values = arrays[name]
    if values.shape != (n,):
        unit = "row" if name == LABELS else "column"
        raise DataError(f"{source}: array '{name}' has the shape {values.shape}; give one value per {unit}: ({n},)")
    if values.dtype.kind == "f" and np.isfinite(values.astype(np.float64)).all():
        whole = values.astype(np.float64)
        return [str(int(one)) if one.is_integer() else str(one) for one in whole.tolist()]
    return [str(one) for one in values.tolist()]


def read_dcs(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read lines ``id label pred p1 ... pN``, separated by spaces and without a header, as DCS writes them.

    Labels are names of classes, or numbers of them that count from 0.

    Raises:
        DataError: a line has another form.
    """
    source = str(choice.path)
    try:
        text = choice.path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: is not UTF-8 ({error.reason} at byte {error.start}); export it again") from error
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise DataError(f"{source}: is empty; give lines 'id label pred p1 ... pN'")
    width = len(lines[0][1])
    probabilities = np.empty((len(lines), max(0, width - _FIRST_SHARE)))
    for row, (number, cells) in enumerate(lines):
        if len(cells) != width or width <= _FIRST_SHARE:
            raise DataError(
                f"{source}: line {number} has {len(cells)} words, and {max(width, _FIRST_SHARE + 2)} are needed: id, "
                "label, pred, and a probability per class, separated by spaces"
            )
        probabilities[row] = _shares(source, number, cells)
    labels = [cells[1] for _, cells in lines]
    classes = _classes(source, probabilities, choice, wanted, None, labels, is_sorted=False)
    return Rows(
        source=source,
        title=choice.path.name,
        classes=classes,
        probabilities=probabilities,
        labels=_by_number(labels, classes),
        place_of=lambda row: f"line {lines[row][0]}",
        columns={name: [cells[place] for _, cells in lines] for place, name in enumerate(("id", "label", "pred"))},
    )


def _shares(source: str, number: int, cells: Sequence[str]) -> list[float]:
    found = []
    for place, cell in enumerate(cells[_FIRST_SHARE:], start=_FIRST_SHARE + 1):
        try:
            found.append(float(cell))
        except ValueError as error:
            raise DataError(
                f"{source}: line {number}: word {place} is {cell[:_N_SHOWN]!r}, which is no number; give id, label, "
                "pred, and then probabilities"
            ) from error
    return found


def _by_number(labels: list[str], classes: tuple[str, ...]) -> list[str | None]:
    """Return the names of classes for labels that are their numbers; labels that are names stay."""
    if {*labels} <= {*classes}:
        return [*labels]
    numbers = {str(place): name for place, name in enumerate(classes)}
    return [numbers.get(label, label) for label in labels]


def _classes(
    source: str,
    probabilities: FloatArray,
    choice: InputChoice,
    wanted: Wanted,
    own: Sequence[str] | None,
    labels: Sequence[str] | None,
    *,
    is_sorted: bool,
) -> tuple[str, ...]:
    """Return the name of each column: given ones, those of the file, or those that labels tell.

    Labels that are numbers below the number of columns count from 0.

    Args:
        source: Name of the file, for messages.
        probabilities: The probabilities, shape (n, n_classes).
        choice: The choices of the input.
        wanted: The classes that are wanted.
        own: Names in the file; None if it has none.
        labels: Label of each row; None if they are unknown.
        is_sorted: True if columns are those of the sorted labels where nothing else is told, as scikit-learn has them.
    """
    n = probabilities.shape[1]
    told = choice.classes or own or wanted.classes
    if told is not None and len(told) != n:
        raise DataError(
            f"{source}: has {n} columns of probabilities, and there are {len(told)} classes: {shortened(told)}; give "
            "one column per class, in this order"
        )
    if told is not None:
        return tuple(told)
    found = set(labels or ())
    numbers = [str(number) for number in range(n)]
    if found and found <= {*numbers}:
        return tuple(numbers)
    if is_sorted and len(found) == n:
        return tuple(sorted_names(found))
    known = shortened(sorted_names(found)) or "unknown"
    raise DataError(
        f"{source}: has {n} columns of probabilities, and the labels are {known}; name the class of each column with "
        "--classes a,b,c"
    )
