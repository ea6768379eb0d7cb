"""Reads class probabilities with their right classes, from files of four kinds and from the folders of finished runs.

Every kind becomes :class:`Rows`. What it lacks is told by the others: the columns of a CSV or Parquet file have names,
of which some are classes; those of an NPZ file or of vectors of DCS have none, and get theirs from ``--classes``, the
file, or the labels; a run names the outcomes of each record.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.options import option
from evaluators.adapters import trained_items
from evaluators.calibration.reweighting.array_checks import first_fault
from evaluators.task import load_task
from schemas.files import arrow_files
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import RESULT, finished_runs, read_complete_result, read_parts

PREFIX = "p_"
"""Beginning of the names of columns with probabilities, in files that are written and, by default, that are read."""
PREDICTED = "predicted"
"""Name of the column with the predicted class, in files that are written."""
PROBABILITIES, LABELS, CLASSES = "probabilities", "labels", "classes"
"""Names of the arrays of an NPZ file."""
_LEAST_CLASSES = 2
_MOST_LISTED = 12
_N_SHOWN = 60
_N_SNIFFED = 65_536
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13}
_DELIMITERS = ",;\t"
_NO_CLASS = {"", "id", "idx", "index", "row", "unnamed: 0"}
_MOST_SHARE = 1.0 + 1e-6
# Cells before the probabilities in a line of DCS: id, label and prediction.
_DCS_CELLS = ("id", "label", "pred")


@dataclass(frozen=True, kw_only=True)
class InputChoice:
    """The choices of an input: its kind, its columns, and of a run its records."""

    path: Path = Path()
    kind: str | None = option("csv, parquet, npz, dcs or run; by default recognised from the content.", flag="--format")
    label_column: str = option("Column of a CSV or Parquet file with the right class of each row.", default="label")
    prefix: str | None = option(
        "Beginning of the names of the columns of classes; the rest names the class. By default p_ where columns "
        "begin with it and no column bears the name of a class."
    )
    class_list: str | None = option(
        "Names of the classes separated by commas, in the order of their columns; by default those of the file. A "
        "name with a comma stands in double quotes.",
        flag="--classes",
    )
    ignored: tuple[str, ...] = option(
        "Column of numbers that is no class. Repeatable; id and the like are known.", flag="--ignore", default=()
    )
    config: str | None = option("Config of a run; needed if the run has several.")
    splits: tuple[str, ...] = option("Split of a run; by default all. Repeatable.", flag="--split", default=())

    def __post_init__(self) -> None:
        """Check that the list names classes, each once.

        Raises:
            ConfigError: it does not.
        """
        if (names := self.classes) is not None and len({*names}) < max(len(names), _LEAST_CLASSES):
            raise ConfigError(
                f"--classes {self.class_list}: names {len({*names})} classes in {len(names)} places; name each once, "
                "two at least"
            )

    @cached_property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes in their order; None for those that the input has."""
        if self.class_list is None:
            return None
        return tuple(name for name in next(csv.reader([self.class_list], skipinitialspace=True), []) if name)


class Wanted(NamedTuple):
    """The things that a command needs of its input."""

    classes: tuple[str, ...] | None = None
    """Classes that rules were fitted on, or that were read before, in their order; None for any."""
    labels: bool = True
    """True if every row needs its right class."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The probabilities of the classes in some rows, and their right classes."""

    source: str
    """Name of the input, for messages."""
    title: str
    """Short name of the input, for titles."""
    classes: tuple[str, ...]
    probabilities: FloatArray
    """Probability of each class, shape (n, n_classes)."""
    labels: Sequence[str | None] | None
    """Name of the right class of each row; None for a row without one, or for an input without any."""
    place_of: Callable[[int], str]
    """Function from the index of a row to the words that name its place in the file."""
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Values of each row that are no probabilities, such as ids, by the name of their column."""
    notes: tuple[str, ...] = ()
    """Sentences about what was taken and what was left out."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.probabilities)

    def checked(self, wanted: Wanted) -> Rows:
        """Return the rows with the classes in the order that is wanted, and check every probability.

        Raises:
            DataError: a probability cannot be one, or the classes are not those that are wanted.
        """
        if not len(self):
            raise DataError(f"{self.source}: holds no row; give at least one")
        if len(self.classes) < _LEAST_CLASSES:
            only = f" ({self.classes[0]})" if self.classes else ""
            raise DataError(
                f"{self.source}: has {len(self.classes)} column of a class{only}; give one per class, two at least"
            )
        if (twice := _first_twice(self.classes)) is not None:
            raise DataError(f"{self.source}: two columns are of class '{twice}'; give each class one column")
        if (fault := first_fault(self.probabilities)) is not None:
            where = f"{self.source}: {self.place_of(fault.row)}"
            if fault.column is None:
                raise DataError(f"{where}: the row {fault.problem}; {fault.remedy}")
            value, name = self.probabilities[fault.row, fault.column], self.classes[fault.column]
            shown = "is missing or no number (NaN)" if np.isnan(value) else f"is {value:g}"
            raise DataError(f"{where}: the probability of class '{name}' {shown}; {fault.remedy}")
        if wanted.classes is None or wanted.classes == self.classes:
            return self
        if {*wanted.classes} != {*self.classes}:
            raise DataError(
                f"{self.source}: has the classes {listed(self.classes)}, and these are wanted: "
                f"{listed(wanted.classes)}; give probabilities of the same classes, or name them with --classes"
            )
        order = [self.classes.index(name) for name in wanted.classes]
        return replace(self, classes=wanted.classes, probabilities=self.probabilities[:, order])

    def targets(self) -> IntArray:
        """Return the index of the right class of each row, shape (n,).

        Raises:
            DataError: there are no labels, a label is missing or no class, or all rows have the same.
        """
        if self.labels is None:
            raise DataError(f"{self.source}: has no right classes; add them, or only use 'apply'")
        places = {name: place for place, name in enumerate(self.classes)}
        targets = np.array([-1 if label is None else places.get(label, -1) for label in self.labels], dtype=np.int64)
        for row in np.flatnonzero(targets < 0).tolist():
            where, label = f"{self.source}: {self.place_of(row)}", self.labels[row]
            if not label:
                raise DataError(f"{where}: has no label; leave it out")
            raise DataError(
                f"{where}: label '{label}' is no class; have: {listed(self.classes)}; correct it, or tell the columns "
                "of the classes with --classes or --prefix"
            )
        if len(np.unique(targets)) < _LEAST_CLASSES:
            raise DataError(
                f"{self.source}: all {len(self)} rows are of class '{self.classes[targets[0]]}'; give rows of two "
                "classes at least"
            )
        return targets

    @property
    def without_rows(self) -> tuple[str, ...]:
        """The classes of which no row is, which may be other numbers than probabilities; none without labels."""
        occurring = {*(self.classes if self.labels is None else self.labels)}
        return tuple(name for name in self.classes if name not in occurring)

    def check_uncorrected(self) -> None:
        """Check that no column bears the name of one that corrected rows have.

        Raises:
            DataError: one does, so that rules would be applied for the second time.
        """
        written = {PREDICTED, *share_names(self.classes)}
        twice = next((name for name in self.columns if name in written), None)
        if twice is not None:
            raise DataError(
                f"{self.source}: has a column '{twice}' already, as corrected rows have; apply rules to uncorrected "
                "probabilities, or rename the column"
            )


def read_rows(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read an input, and check its probabilities and classes.

    Args:
        choice: The input and its choices.
        wanted: The classes in the order that is wanted, and whether right classes are.

    Raises:
        ConfigError: a choice does not exist, or does not fit the kind of the input.
        DataError: the input cannot be read, or a value in it is wrong.
    """
    kind = _kind(choice)
    if kind != "run" and (choice.config is not None or choice.splits):
        option = "--config" if choice.config is not None else "--split"
        raise ConfigError(f"{option} picks records of a run, and {choice.path} is a file; leave it out")
    return _READERS[kind](choice, wanted).checked(wanted)


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, of many only the first ones.

    >>> listed([str(number) for number in range(20)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more'
    """
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"


def share_names(classes: Sequence[str]) -> list[str]:
    """Return the names of the columns of corrected shares."""
    return [f"{PREFIX}{name}" for name in classes]


def are_numbers(names: Iterable[str]) -> bool:
    """Return True if all names are whole numbers, written without anything else."""
    return all(name.lstrip("-").isdecimal() and str(int(name)) == name for name in names)


def _sorted_names(names: Iterable[str]) -> list[str]:
    """Return names in their order, whole numbers by their size.

    >>> _sorted_names(["10", "9"]), _sorted_names(["b", "10", "9"])
    (['9', '10'], ['10', '9', 'b'])
    """
    found = list(names)
    return sorted(found, key=int) if are_numbers(found) else sorted(found)


def _first_twice(names: Sequence[str]) -> str | None:
    return next((name for name, n in Counter(names).items() if n > 1), None)


def _kind(choice: InputChoice) -> str:
    """Return the kind of an input, which is named or recognised from its content."""
    path = choice.path
    if choice.kind is not None and choice.kind not in _READERS:
        raise ConfigError(f"--format {choice.kind} does not exist; have: {', '.join(_READERS)}")
    if not path.exists():
        raise DataError(f"{path}: no such file; give a file of probabilities or the folder of a run")
    if path.is_dir() or path.name == RESULT:
        if choice.kind not in (None, "run"):
            raise ConfigError(f"--format {choice.kind} is for a file, and {path} is a run; leave it out")
        return "run"
    if choice.kind == "run":
        raise ConfigError(f"--format run: {path} is a file; name the folder of a run")
    check_readable(path)
    if choice.kind is not None:
        return choice.kind
    with path.open("rb") as file:
        start = file.read(_N_SNIFFED)
    if not start.strip():
        raise DataError(f"{path}: is empty; give a file of probabilities")
    if start.startswith(b"PAR1"):
        return "parquet"
    if zipfile.is_zipfile(path):
        return "npz"
    remedy = "give a CSV, Parquet or NPZ file, vectors of DCS, or a run"
    if _CONTROLS & {*start}:
        raise DataError(f"{path}: is of no known kind; {remedy}")
    first = start.decode("utf-8", errors="replace").lstrip("\ufeff").lstrip().partition("\n")[0]
    if first.startswith(("{", "[")):
        raise DataError(f"{path}: looks like JSON; {remedy}")
    return "dcs" if _is_dcs(first) else "csv"


def _is_dcs(line: str) -> bool:
    """Return True if a line is ``id label pred p1 ... pN`` with spaces between.

    >>> _is_dcs("17 0 1 0.250000 0.750000"), _is_dcs("label,a,b")
    (True, False)
    """
    shares = line.split()[len(_DCS_CELLS) :]
    if len(shares) < _LEAST_CLASSES or "," in line or "\t" in line:
        return False
    return all((number := _number(share)) is not None and 0 <= number <= 1 for share in shares)


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _numbers(where: Callable[[int], str], values: Sequence[object]) -> FloatArray:
    """Return cells as numbers, shape (n,).

    Raises:
        DataError: a cell is no number; ``where`` names its place by its index.
    """
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        row = next(row for row, value in enumerate(values) if _number(value) is None)
    cell = values[row]
    shown = "is empty" if cell in ("", None) else f"is {str(cell)[:_N_SHOWN]!r}, which is no number"
    raise DataError(f"{where(row)} {shown}; give the probability of the class, or leave the row out")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: is no text in UTF-8 ({error.reason} at byte {error.start}); export it again"
        ) from error


def _read_csv(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read a CSV file with a header; its separator is a comma, a semicolon or a tab.

    pandas would fill short lines up, rename a column that stands twice, and not tell the line of a faulty cell.
    """
    path, text = choice.path, _text(choice.path)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines: list[int] = []
    cells: list[list[str]] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_names(path, names)
        for row in reader:
            if row and len(row) != len(names):
                raise DataError(
                    f"{path}: line {reader.line_num} has {len(row)} cells, and the header (line 1) {len(names)}; "
                    "correct the line"
                )
            if row:  # Many programs leave an empty line at the end.
                lines.append(reader.line_num)
                cells.append(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}; correct the line") from error
    columns = {name: [row[place] for row in cells] for place, name in enumerate(names)}
    return _rows_of_columns(columns, lambda row: f"line {lines[row]} (line 1 is the header)", choice, wanted)


def _read_parquet(choice: InputChoice, wanted: Wanted) -> Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = arrow_files.metadata(choice.path).schema.to_arrow_schema().names
    if "reading" in names and "exchanges" in names:
        raise DataError(f"{choice.path}: holds the records of a run; name the folder of the run instead")
    _check_names(choice.path, names)
    columns: dict[str, Sequence[object]] = {}
    try:
        for name, column in zip(names, pq.read_table(choice.path).columns, strict=True):
            # A missing number is nan, and everything else that is missing None.
            is_real = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
            columns[name] = column.cast(pa.float64()).to_numpy() if is_real else column.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise DataError(f"{choice.path}: not a readable parquet file: {reason}; make it again") from error
    return _rows_of_columns(columns, _row_from_1, choice, wanted)


def _row_from_1(row: int) -> str:
    return f"row {row + 1} (the first row is row 1)"


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not any(names):
        raise DataError(f"{path}: is empty; give a header, with one column per class and one with the right class")
    if (twice := _first_twice(names)) is not None:
        raise DataError(f"{path}: column '{twice}' stands {names.count(twice)} times; keep one, or rename it")


def _rows_of_columns(
    columns: Mapping[str, Sequence[object]], place_of: Callable[[int], str], choice: InputChoice, wanted: Wanted
) -> Rows:
    """Return the rows of columns with names."""
    source, label_column = str(choice.path), choice.label_column
    n_rows = len(next(iter(columns.values())))
    if not n_rows:
        raise DataError(f"{source}: has a header and no row; give at least one row")
    if label_column not in columns and wanted.labels:
        raise DataError(
            f"{source}: has no column '{label_column}'; have: {listed(list(columns))}; name the column with the right "
            "class with --label-column"
        )
    labels = [_label(value) for value in columns[label_column]] if label_column in columns else None
    column_of = _class_columns(source, columns, choice, wanted, {*(labels or ())})
    shares = [
        _numbers(lambda row, name=name: f"{source}: {place_of(row)}: column '{name}'", columns[name])  # type: ignore[misc]
        for name in column_of.values()
    ]
    kept = {name: values for name, values in columns.items() if name not in column_of.values()}
    return Rows(
        source=source,
        title=choice.path.name,
        classes=tuple(column_of),
        probabilities=np.stack(shares, axis=1) if shares else np.empty((n_rows, 0)),
        labels=labels,
        place_of=place_of,
        columns=kept,
    )


def _label(value: object) -> str | None:
    """Return the name of a class as a text; None for a missing one."""
    if value is None or value == "" or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # A column of whole numbers with a missing one becomes one of floats in some programs.
    return str(value)


def _class_columns(
    source: str,
    columns: Mapping[str, Sequence[object]],
    choice: InputChoice,
    wanted: Wanted,
    labels: set[str | None],
) -> dict[str, str]:
    """Return the column of each class by its name, in the order of the classes."""
    names = [name for name in columns if name not in (choice.label_column, *choice.ignored)]
    missing = [name for name in choice.ignored if name not in columns]
    if missing:
        raise ConfigError(f"--ignore {missing[0]}: {source} has no such column; have: {listed(names)}")
    prefix = PREFIX if choice.prefix is None else choice.prefix
    classes = choice.classes or wanted.classes
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
    """Return True if a column that no label names holds probabilities; it is then a class without rows.

    Raises:
        DataError: the column holds numbers that are no probabilities.
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


def _read_npz(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read the arrays ``probabilities`` and ``labels``, optionally ``classes``, and others with one value per row."""
    source = str(choice.path)
    if not zipfile.is_zipfile(source):
        raise DataError(f"{source}: is no NPZ file, or a part of one; write it again")
    try:
        with np.load(source, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise DataError(f"{source}: not a readable NPZ file of plain arrays: {reason}; write it again") from error
    if PROBABILITIES not in arrays:
        raise DataError(f"{source}: has no array '{PROBABILITIES}'; have: {listed(list(arrays)) or 'none'}")
    try:
        probabilities = np.asarray(arrays[PROBABILITIES], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{source}: array '{PROBABILITIES}' holds no numbers ({error}); give floats") from error
    if probabilities.ndim != 2:
        raise DataError(
            f"{source}: array '{PROBABILITIES}' has the shape {probabilities.shape}; give one row per item and one "
            "column per class"
        )
    if LABELS not in arrays and wanted.labels:
        raise DataError(f"{source}: has no array '{LABELS}' with the right class of each row; add it")
    n_rows, n_columns = probabilities.shape
    labels = _names(source, LABELS, arrays[LABELS], n_rows, "row") if LABELS in arrays else None
    own = _names(source, CLASSES, arrays[CLASSES], n_columns, "column") if CLASSES in arrays else None
    classes = _named_columns(source, n_columns, choice.classes or own or wanted.classes, labels, is_sorted=True)
    columns: dict[str, Sequence[object]] = {
        name: values.tolist()
        for name, values in arrays.items()
        if name not in (PROBABILITIES, LABELS, CLASSES) and values.shape == (n_rows,)
    }
    return Rows(
        source=source,
        title=choice.path.name,
        classes=classes,
        probabilities=probabilities,
        labels=None if labels is None else _by_number(labels, classes),
        place_of=_row_from_1,
        columns=columns if labels is None else {**columns, LABELS: labels},
    )


def _names(source: str, name: str, values: npt.NDArray[np.generic], n: int, unit: str) -> list[str]:
    if values.shape != (n,):
        raise DataError(f"{source}: array '{name}' has the shape {values.shape}; give one value per {unit}: ({n},)")
    if values.dtype.kind == "f" and np.isfinite(values.astype(np.float64)).all():
        numbers = values.astype(np.float64).tolist()
        return [str(int(number)) if number.is_integer() else str(number) for number in numbers]
    return [str(value) for value in values.tolist()]


def _read_dcs(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read lines ``id label pred p1 ... pN`` without a header; labels are names of classes, or their numbers from 0."""
    source = str(choice.path)
    numbered = enumerate(_text(choice.path).splitlines(), start=1)
    lines = [(number, line.split()) for number, line in numbered if line.strip()]
    if not lines:
        raise DataError(f"{source}: is empty; give lines 'id label pred p1 ... pN'")
    first, width = len(_DCS_CELLS), len(lines[0][1])
    for number, cells in lines:
        if len(cells) != width or width <= first:
            raise DataError(
                f"{source}: line {number} has {len(cells)} words, and {max(width, first + 2)} are needed: id, "
                "label, pred, and a probability per class, separated by spaces"
            )
    words = list(zip(*(cells for _, cells in lines), strict=True))
    columns = dict(zip(_DCS_CELLS, map(list, words), strict=False))
    shares = [
        _numbers(lambda row, place=place: f"{source}: line {lines[row][0]}: word {place}", cells)  # type: ignore[misc]
        for place, cells in enumerate(words[first:], start=first + 1)
    ]
    labels = columns["label"]
    classes = _named_columns(source, len(shares), choice.classes or wanted.classes, labels, is_sorted=False)
    return Rows(
        source=source,
        title=choice.path.name,
        classes=classes,
        probabilities=np.stack(shares, axis=1),
        labels=_by_number(labels, classes),
        place_of=lambda row: f"line {lines[row][0]}",
        columns=columns,
    )


def _named_columns(
    source: str, n: int, given: Sequence[str] | None, labels: Sequence[str] | None, *, is_sorted: bool
) -> tuple[str, ...]:
    """Return the name of each of n columns without names: given ones, or those that labels tell.

    Labels that are numbers below the number of columns count from 0. If ``is_sorted``, columns are otherwise those of
    the sorted labels, as scikit-learn has them.
    """
    if given is not None:
        if len(given) != n:
            raise DataError(
                f"{source}: has {n} columns of probabilities, and there are {len(given)} classes: {listed(given)}; "
                "give one column per class, in this order"
            )
        return tuple(given)
    occurring, numbers = {*(labels or ())}, tuple(map(str, range(n)))
    if occurring and occurring <= {*numbers}:
        return numbers
    if is_sorted and len(occurring) == n:
        return tuple(_sorted_names(occurring))
    known = listed(_sorted_names(occurring)) or "unknown"
    raise DataError(
        f"{source}: has {n} columns of probabilities, and the labels are {known}; name the class of each column with "
        "--classes a,b,c"
    )


def _by_number(labels: Sequence[str], classes: tuple[str, ...]) -> list[str | None]:
    """Return the names of classes for labels that are their numbers; labels that are names stay."""
    if {*labels} <= {*classes}:
        return [*labels]
    numbers = {str(place): name for place, name in enumerate(classes)}
    return [numbers.get(label, label) for label in labels]


def _read_run(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read the distributions over answers of one config of a run, whatever its task and its answers are.

    Records without a distribution are left out, where labels are wanted those without a right answer, and always those
    of items that the model has seen with their labels: examples of its prompts, and items of its training.
    """
    folders = finished_runs(choice.path)
    if len(folders) > 1:
        raise DataError(
            f"{choice.path}: holds {len(folders)} runs; name one: {listed([str(folder) for folder in folders])}"
        )
    folder, result = folders[0], read_complete_result(folders[0])
    configs = result.signature.configs
    if choice.config is None and len(configs) > 1:
        raise ConfigError(f"{choice.path}: has {len(configs)} configs; name one with --config: {listed(configs)}")
    config = configs[0] if choice.config is None else choice.config
    if config not in configs:
        raise ConfigError(f"--config {config}: the run has no such config; have: {listed(configs)}")
    source = f"{folder}, {config}"
    parts = read_parts(folder, result)
    records = RecordColumns.joined(part for part in parts if part.columns["config"].coded.texts == (config,))
    splits = Counter(split for split in records.columns["split"].texts if split is not None)
    for name in choice.splits:
        if name not in splits:
            raise ConfigError(f"--split {name}: config '{config}' has no such split; have: {', '.join(splits)}")
    if choice.splits:
        records = _where(records, records.columns["split"].coded.is_one_of(*choice.splits))
    task = load_task(result.signature.task)
    seen = task.shown_items(records)
    seen |= trained_items(folder, result).get(config, frozenset())
    is_seen = np.array([item_id in seen for item_id in records.columns["item_id"].texts], dtype=np.bool_)
    unseen = _where(records, ~is_seen)
    is_read = unseen.has_reading & (unseen.readings["probabilities"].lists.lengths > 0)
    is_labelled = unseen.columns["target"].known | (not wanted.labels)
    kept = _where(unseen, is_read & is_labelled)
    if not len(kept):
        lacking = "a right answer" if is_read.any() else "a distribution over answers"
        raise DataError(
            f"{source}: none of {len(unseen)} records has {lacking}; choose other splits, or a run of a task that "
            "scores options"
        )
    outcomes = kept.readings["outcomes"].lists.values.coded.texts
    names = choice.classes or wanted.classes or tuple(_sorted_names(outcomes))
    for outcome in outcomes:
        if outcome not in names:
            raise DataError(
                f"{source}: outcome '{outcome}' is no class; have: {listed(names)}; name all classes with --classes"
            )
    columns = {name: kept.columns[name].texts for name in ("item_id", "config", "split", "target")}
    left_out = (
        (~is_read, "without a distribution are left out (refused, failed or unread answers)"),
        (is_read & ~is_labelled, "without a right answer are left out"),
        (is_seen, "of items that the model was shown or trained on with labels are left out"),
    )
    return Rows(
        source=source,
        title=f"{config} of {folder.name}",
        classes=names,
        probabilities=_distributions(kept, names),
        labels=columns["target"],
        place_of=lambda row: f"item '{columns['item_id'][row]}'",
        columns={"label" if name == "target" else name: texts for name, texts in columns.items()},
        notes=tuple(_notes(kept, left_out)),
    )


def _where(records: RecordColumns, mask: BoolArray) -> RecordColumns:
    return RecordColumns(records.table.filter(mask))


def _distributions(records: RecordColumns, names: Sequence[str]) -> FloatArray:
    """Return the probability of each outcome, shape (n, n_classes); 0 for those that an item does not offer."""
    outcomes, shares = (records.readings[name].lists for name in ("outcomes", "probabilities"))
    if not np.array_equal(outcomes.lengths, shares.lengths):
        raise DataError("a reading has not one probability for each of its outcomes; run the model again")
    coded = outcomes.values.coded
    columns = np.array([names.index(text) for text in coded.texts], dtype=np.int64)
    probabilities = np.zeros((len(records), len(names)))
    probabilities[outcomes.owners, columns[coded.codes]] = shares.values.numbers
    return probabilities


def _notes(records: RecordColumns, left_out: Iterable[tuple[BoolArray, str]]) -> Iterator[str]:
    splits = Counter(map(str, records.columns["split"].texts))
    yield f"splits: {', '.join(f'{name} {n:,}' for name, n in splits.items())}"
    for mask, reason in left_out:
        if mask.any():
            yield f"{int(mask.sum()):,} records {reason}"
    lengths = records.readings["outcomes"].lists.lengths
    if lengths.min() < lengths.max():
        yield (
            f"items offer between {lengths.min()} and {lengths.max()} outcomes; one that is not offered has the "
            "probability 0"
        )


_READERS: dict[str, Callable[[InputChoice, Wanted], Rows]] = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "npz": _read_npz,
    "dcs": _read_dcs,
    "run": _read_run,
}
"""The reader of each kind of input."""
