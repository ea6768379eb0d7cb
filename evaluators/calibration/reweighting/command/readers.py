"""Reads class probabilities with their right classes, from files of four kinds and from the folders of finished runs.

A file becomes a :class:`Table`, and a table or a run becomes :class:`Rows`, whose faults are then the same::

    CSV, Parquet   columns with names, some of them classes   ─┐
    NPZ, DCS       columns without names: they are told by    ─┴─ Table ── classes are told ──┐
                   --classes, the file, or the labels                                         ├── Rows ── faults
    run            records, each with the names of its outcomes ──────────────────────────────┘
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.options import option
from evaluators.adapter_set import trained_items
from evaluators.calibration.reweighting.array_checks import LEAST_CLASSES
from evaluators.calibration.reweighting.command.rows import (
    CLASSES,
    LABELS,
    PREFIX,
    PROBABILITIES,
    Rows,
    first_twice,
    listed,
)
from evaluators.task import load_task
from schemas.files import arrow_files
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import RESULT, finished_runs, read_complete_result, read_parts

_N_SHOWN = 60
_N_SNIFFED = 65_536
# Of the control characters, texts have tabs, line breaks and form feeds.
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13}
_DELIMITERS = ",;\t"
# Names of columns that number the rows; pandas calls an index without a name "Unnamed: 0" when it reads it again.
_NO_CLASS = {"", "id", "idx", "index", "row", "unnamed: 0"}
# Files print probabilities with six decimals, so that one may be larger than 1 by rounding.
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
        if (names := self.classes) is not None and len({*names}) < max(len(names), LEAST_CLASSES):
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


class Table(NamedTuple):
    """The cells of a file, of which the classes are not told yet."""

    columns: dict[str, Sequence[object]]
    """Values of each row, by the name of their column."""
    label_column: str
    """Name of the column with the right classes, which may be missing."""
    place_of: Callable[[int], str]
    """Function from the index of a row to the words that name its place in the file."""
    shares: FloatArray | None = None
    """Probabilities whose columns have no names, shape (n, n_columns); None if they are among the columns."""
    classes: tuple[str, ...] | None = None
    """Names of their classes, if the file tells them."""
    are_sorted: bool = False
    """True if they are those of the sorted labels, as scikit-learn has them, where nothing tells them."""


def read_rows(
    choice: InputChoice, wanted: tuple[str, ...] | None = None, *, needs_labels: bool = True, gets_rules: bool = False
) -> Rows:
    """Read an input, and check its probabilities and classes.

    Args:
        choice: The input and its choices.
        wanted: Classes that rules have, or other rows, in their order; None for any.
        needs_labels: True if every row needs its right class.
        gets_rules: True if rules are to be applied, so that no column may bear the name of a corrected one.

    Raises:
        ConfigError: a choice does not exist, or does not fit the kind of the input.
        DataError: the input cannot be read, or a value in it is wrong.
    """
    kind = _kind(choice)
    if kind == "run":
        rows = _read_run(choice, wanted, needs_labels)
    elif choice.config is not None or choice.splits:
        flag = "--config" if choice.config is not None else "--split"
        raise ConfigError(f"{flag} picks records of a run, and {choice.path} is a file; leave it out")
    else:
        rows = _rows_of(_READERS[kind](choice), choice, wanted, needs_labels)
    for fault in rows.faults(wanted, needs_labels=needs_labels, gets_rules=gets_rules):
        raise DataError(f"{rows.source}: {fault}")
    if wanted is None or wanted == rows.classes:
        return rows
    order = [rows.classes.index(name) for name in wanted]
    return replace(rows, classes=wanted, probabilities=rows.probabilities[:, order])


def are_numbers(names: Iterable[str]) -> bool:
    """Return True if all names are whole numbers, written without anything else."""
    return all(name.lstrip("-").isdecimal() and str(int(name)) == name for name in names)


def _sorted_names(names: Iterable[str]) -> list[str]:
    """Return names in their order, whole numbers by their size.

    >>> _sorted_names(["10", "9"]), _sorted_names(["b", "10", "9"])
    (['9', '10'], ['10', '9', 'b'])
    """
    texts = list(names)
    return sorted(texts, key=int) if are_numbers(texts) else sorted(texts)


def _kind(choice: InputChoice) -> str:
    """Return the kind of an input, which is named or recognised from its content."""
    path = choice.path
    if choice.kind is not None and choice.kind not in _KINDS:
        raise ConfigError(f"--format {choice.kind} does not exist; have: {', '.join(_KINDS)}")
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

    pandas would fill short lines up, rename a column that stands twice, and not tell the line of a faulty cell.
    """
    path, text = choice.path, _text(choice.path)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    # A quoted cell can hold line breaks, so that the number of a row does not tell its line.
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
    columns: dict[str, Sequence[object]] = {name: [row[index] for row in cells] for index, name in enumerate(names)}
    return Table(columns, choice.label_column, lambda row: f"line {lines[row]} (line 1 is the header)")


def _read_parquet(choice: InputChoice) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = choice.path
    names = arrow_files.metadata(path).schema.to_arrow_schema().names
    if "reading" in names and "exchanges" in names:
        raise DataError(f"{path}: holds the records of a run; name the folder of the run instead")
    _check_names(path, names)
    columns: dict[str, Sequence[object]] = {}
    try:
        for name, column in zip(names, pq.read_table(path).columns, strict=True):
            # A missing number is nan, and everything else that is missing None.
            is_real = pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
            columns[name] = column.cast(pa.float64()).to_numpy() if is_real else column.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
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
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise DataError(f"{path}: not a readable NPZ file of plain arrays: {reason}; write it again") from error
    if PROBABILITIES not in arrays:
        raise DataError(f"{path}: has no array '{PROBABILITIES}'; have: {listed(list(arrays)) or 'none'}")
    try:
        probabilities = np.asarray(arrays.pop(PROBABILITIES), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: array '{PROBABILITIES}' holds no numbers ({error}); give floats") from error
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

    def place_of(row: int) -> str:
        return f"line {lines[row][0]}"

    shares = _as_numbers(path, place_of, {f"word {n}": cells for n, cells in enumerate(words[first:], start=first + 1)})
    columns: dict[str, Sequence[object]] = {name: list(cells) for name, cells in zip(_DCS_CELLS, words, strict=False)}
    return Table(columns, "label", place_of, shares)


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _as_numbers(path: Path, place_of: Callable[[int], str], columns: Mapping[str, Sequence[object]]) -> FloatArray:
    """Return columns of cells as numbers, shape (n, n_columns).

    Raises:
        DataError: a cell is no number.
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
                f"{path}: {place_of(row)}: {name} {'is empty' if cells[row] in ('', None) else problem}; give the "
                "probability of the class, or leave the row out"
            )
        numbers.append(values)
    return np.stack(numbers, axis=1)


def _label(value: object) -> str | None:
    """Return the name of a class as a text; None for a missing one."""
    if value is None or value == "" or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # A column of whole numbers with a missing one becomes one of floats in some programs.
    return str(value)


def _rows_of(table: Table, choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> Rows:
    """Return the rows of a table, whose classes are told by the choice, the file, the rules or the labels."""
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
        shares = _as_numbers(path, table.place_of, cells) if cells else np.empty((n_rows, 0))
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
        place_of=table.place_of,
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


def _named_columns(
    table: Table, choice: InputChoice, wanted: Sequence[str] | None, labels: Sequence[str | None] | None
) -> tuple[str, ...]:
    """Return the class of each column without a name: a given one, or that which the labels tell.

    Labels that are numbers below the number of columns count from 0.
    """
    assert table.shares is not None
    path, n = choice.path, table.shares.shape[1]
    given = choice.classes or table.classes or wanted
    if given is not None:
        if len(given) != n:
            raise DataError(
                f"{path}: has {n} columns of probabilities, and there are {len(given)} classes: {listed(given)}; "
                "give one column per class, in this order"
            )
        return tuple(given)
    occurring, numbers = {label for label in labels or () if label is not None}, tuple(map(str, range(n)))
    if occurring and occurring <= {*numbers}:
        return numbers
    if table.are_sorted and len(occurring) == n:
        return tuple(_sorted_names(occurring))
    known = listed(_sorted_names(occurring)) or "unknown"
    raise DataError(
        f"{path}: has {n} columns of probabilities, and the labels are {known}; name the class of each column with "
        "--classes a,b,c"
    )


def _read_run(choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> Rows:
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
    is_labelled = unseen.columns["target"].known | (not needs_labels)
    kept = _where(unseen, is_read & is_labelled)
    if not len(kept):
        lacking = "a right answer" if is_read.any() else "a distribution over answers"
        raise DataError(
            f"{source}: none of {len(unseen)} records has {lacking}; choose other splits, or a run of a task that "
            "scores options"
        )
    outcomes = kept.readings["outcomes"].lists.values.coded.texts
    names = choice.classes or wanted or tuple(_sorted_names(outcomes))
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


_READERS: dict[str, Callable[[InputChoice], Table]] = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "npz": _read_npz,
    "dcs": _read_dcs,
}
"""The reader of each kind of file."""
_KINDS = (*_READERS, "run")
