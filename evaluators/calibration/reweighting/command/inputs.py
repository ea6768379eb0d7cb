"""Reads class probabilities with their right classes, from tables and from finished runs, and checks them."""

from __future__ import annotations

import csv
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from biasboard.ground import plain_text
from biasboard.ground.columns import FloatArray, IntArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.options import option
from evaluators.adapter_set import trained_items
from evaluators.calibration.reweighting.problem import LEAST_CLASSES
from evaluators.task import ShowsExamples, load_task
from schemas.files.record_columns import RecordColumns
from schemas.files.user_tables import read_frame
from schemas.folders.run_folder import RESULT, finished_runs, read_complete_result, read_parts

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "p_"
"""Beginning of the names of columns with probabilities: in written files, and in read ones where no column bears the
name of a class."""
PREDICTED = "predicted"
"""Name of the column with the predicted class in written files."""
_ZIP = b"PK\x03\x04"
"""First bytes of an NPZ file, which is a ZIP archive."""
_ROW = "row {} (the first row is row 1)"
listed = partial(plain_text.listed, most=12)
"""Function that joins names for messages, at most the first 12."""


def _class_names(text: str) -> tuple[str, ...]:
    """Return the names in a list of classes, which must be two at least, each once."""
    names = tuple(name for name in next(csv.reader([text], skipinitialspace=True), []) if name)
    if len({*names}) < max(len(names), LEAST_CLASSES):
        raise ConfigError(
            f"--classes {text}: names {len({*names})} classes in {len(names)} places; name each once, two at least"
        )
    return names


@dataclass(frozen=True, kw_only=True)
class InputChoice:
    """The options of an input: its columns, and for a run its config and splits."""

    label_column: str = option("Column of a CSV or Parquet file with the right class of each row.", default="label")
    classes: tuple[str, ...] | None = option(
        "Names of the classes separated by commas, in the order of their columns; by default those of the file. A "
        "name with a comma stands in double quotes.",
        read=_class_names,
    )
    config: str | None = option("Config of a run; needed if the run has several.")
    splits: tuple[str, ...] = option("Split of a run; by default all. Repeatable.", flag="--split", default=())


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledRows:
    """The probabilities of the classes in some rows, and their right classes."""

    source: str
    """Name of the input, for messages."""
    classes: tuple[str, ...]
    probabilities: FloatArray
    """Probability of each class, shape (n, n_classes)."""
    labels: Sequence[str | None]
    """Name of the right class of each row; None for a row without one."""
    columns: pd.DataFrame
    """Other values of each row, such as ids, and the label."""
    notes: tuple[str, ...] = ()
    """Sentences about which rows were taken and which were left out."""

    @cached_property
    def targets(self) -> IntArray:
        """The index of the right class of each row, shape (n,); -1 without one."""
        indices = {name: index for index, name in enumerate(self.classes)}
        return np.array([-1 if label is None else indices.get(label, -1) for label in self.labels], dtype=np.int64)


def read_rows(
    path: Path, choice: InputChoice, wanted: tuple[str, ...] | None = None, *, needs_labels: bool = True
) -> LabelledRows:
    """Read an input, and check its probabilities and classes.

    Args:
        path: The file, or the folder of the run.
        choice: The options of the input.
        wanted: Classes of the rules that will be applied, in their order; None for no rules.
        needs_labels: True if every row needs its right class.

    Raises:
        ConfigError: an option does not fit the input.
        DataError: the input cannot be read, or a value in it is wrong.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file; give a file of probabilities or the folder of a run")
    if path.is_dir() or path.name == RESULT:
        rows = _run_rows(path, choice, wanted, needs_labels)
    elif choice.config is not None or choice.splits:
        flag = "--config" if choice.config is not None else "--split"
        raise ConfigError(f"{flag} picks records of a run, and {path} is a file; leave it out")
    else:
        rows = _table_rows(path, choice, wanted, needs_labels)
    _check(rows, needs_labels=needs_labels, gets_rules=wanted is not None)
    return rows


def _check(rows: LabelledRows, *, needs_labels: bool, gets_rules: bool) -> None:
    """Raise the first fault of classes, probabilities or labels, with its place and its remedy."""

    def fault(problem: str, row: int | None = None) -> DataError:
        if row is None:
            return DataError(f"{rows.source}: {problem}")
        of_item = "item_id" in rows.columns
        where = f"item '{rows.columns['item_id'].iloc[row]}'" if of_item else _ROW.format(row + 1)
        return DataError(f"{rows.source}: {where}: {problem}")

    if len(rows.classes) < LEAST_CLASSES:
        found = f"has {len(rows.classes)} columns that bear the name of a label"
        raise fault(f"{found}; give one per class, two at least, or name them with --classes")
    with np.errstate(over="ignore"):
        sums = rows.probabilities.sum(axis=1)
    for is_bad, problem in (
        ((rows.probabilities < 0).any(axis=1), "has a negative value; exponentiate logarithms first"),
        (~np.isfinite(sums), "has no finite sum; give probabilities, not odds or their logarithms"),
        (sums == 0, "has nothing but zeros; leave it out, since it says nothing about any class"),
    ):
        if is_bad.any():
            raise fault(f"the row {problem}", int(is_bad.argmax()))
    # Applying weights twice squares them, and nothing in the written file would show it.
    of_corrected = {PREDICTED, *(f"{PREFIX}{name}" for name in rows.classes)}
    for name in rows.columns:
        if gets_rules and name in of_corrected:
            remedy = "apply rules to uncorrected probabilities, or rename the column"
            raise fault(f"has a column '{name}' already, as corrected rows have; {remedy}")
    if needs_labels:
        for row in np.flatnonzero(rows.targets < 0).tolist():
            remedy = "correct it, or tell the columns of the classes with --classes"
            wrong = f"label '{rows.labels[row]}' is no class; have: {listed(rows.classes)}; {remedy}"
            raise fault(wrong if rows.labels[row] else "has no label; leave it out", row)
        if len({*rows.labels}) < LEAST_CLASSES:
            only = f"all {len(rows.labels)} rows are of class '{rows.labels[0]}'"
            raise fault(f"{only}; give rows of two classes at least")


def _table_rows(path: Path, choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> LabelledRows:
    """Return the rows of a CSV, Parquet or NPZ file."""
    check_readable(path)
    with path.open("rb") as file:
        kind = file.read(4)
    frame = _arrays(path, choice.label_column) if kind == _ZIP else read_frame(path)
    if [*frame.index.names] != [None]:
        frame = frame.reset_index(allow_duplicates=True)
    frame = frame.reset_index(drop=True).set_axis([str(name).strip() for name in frame.columns], axis=1)
    if kind not in (_ZIP, b"PAR1"):
        frame = frame.map(plain_text.unprotected).rename(columns=plain_text.unprotected)
    names = [*frame.columns]
    # A Parquet file may have no column.
    (twice, n), *_ = Counter(names).most_common(1) or [("", 0)]
    if n > 1:
        raise DataError(f"{path}: column '{twice}' stands {n} times; keep one, or rename it")
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
    # The columns of arrays are classes by their place, whatever their names and values.
    of_arrays = tuple(name for name in names if name != choice.label_column) if kind == _ZIP else None
    column_of = _class_columns(path, frame, choice.label_column, wanted or choice.classes or of_arrays, {*labels})
    numbers = np.array([[*map(_number, frame[name].tolist())] for name in column_of.values()])
    numbers = numbers.T.reshape(len(frame), len(column_of))
    others = [name for name in names if name not in (choice.label_column, *column_of.values())]
    for row, column in np.argwhere(np.isnan(numbers)).tolist():
        name = [*column_of.values()][column]
        raise DataError(
            f"{path}: {_ROW.format(row + 1)}: column '{name}' is {str(frame[name][row])[:60]!r}; give the "
            "probability of the class, or leave the row out"
        )
    return LabelledRows(
        source=str(path),
        classes=tuple(column_of),
        probabilities=numbers,
        labels=labels,
        columns=frame.drop(columns=[*column_of.values()]),
        # A class without rows may be among them.
        notes=(f"columns of no class: {listed([*map(plain_text.visible, others)])}",) if others else (),
    )


def _arrays(path: Path, label_column: str) -> pd.DataFrame:
    """Return the arrays ``probabilities`` (rows, classes), ``classes`` and, if given, ``labels`` of an NPZ file."""
    import pandas as pd

    from schemas.files import arrow_files

    try:
        with zipfile.ZipFile(path) as file:
            if sum(member.file_size for member in file.infolist()) > arrow_files.MOST_BYTES:
                raise arrow_files.too_large(path)
        with np.load(path, allow_pickle=False) as arrays:
            frame = pd.DataFrame(arrays["probabilities"], columns=[*map(_label, arrays["classes"].tolist())])
            if "labels" in arrays:
                # A class of that name is told as a column that stands twice.
                frame.insert(0, label_column, arrays["labels"], allow_duplicates=True)
    except DataError:
        raise
    # A broken file can raise any exception: the headers of its arrays are parsed as Python.
    except Exception as error:
        raise DataError(
            f"{path}: holds no plain arrays 'probabilities' (one row per item, one column per class) and 'classes' "
            f"that can be read ({plain_text.one_line(error)}); write it again"
        ) from error
    return frame


def _class_columns(
    path: Path, frame: pd.DataFrame, label_column: str, classes: Sequence[str] | None, labels: set[str | None]
) -> dict[str, str]:
    """Return the column of each class by its name: of given ones in their order, or of those that have rows."""
    names = [name for name in frame.columns if name != label_column]
    if classes is not None:
        column_of = {}
        for label in classes:
            name = next((name for name in (label, f"{PREFIX}{label}") if name in names), None)
            if name is None:
                raise DataError(
                    f"{path}: has no column for class '{label}'; have: {listed(names)}; name the columns of the "
                    f"classes by the classes, perhaps with {PREFIX} before them"
                )
            column_of[label] = name
        return column_of
    prefixed = {name.removeprefix(PREFIX): name for name in names if name.startswith(PREFIX) and name != PREFIX}
    if len(prefixed) > 1 and not labels & {*names}:
        return prefixed
    return {name: name for name in names if name in labels}


def _number(value: object) -> float:
    """Return a cell as a number; nan if it is none."""
    # Not pandas.to_numeric, which fails on the lists that a Parquet file may hold.
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _label(value: object) -> str | None:
    """Return the name of a class as a text; None for a missing one."""
    # Cells of Parquet files can be arrays, which cannot be compared with a text.
    if value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # Some programs turn a column of whole numbers with a missing value into floats.
    return str(value)


def _run_rows(path: Path, choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> LabelledRows:
    """Return the answer distributions of one config of a run of any task.

    Records without a distribution are left out and, if labels are needed, those without a right answer. So are items
    whose labels the model has seen: examples of its prompts, and items that it was trained on.
    """
    import pandas as pd

    folders = finished_runs(path)
    if len(folders) > 1:
        raise DataError(f"{path}: holds {len(folders)} runs; name one: {listed([str(folder) for folder in folders])}")
    folder, result = folders[0], read_complete_result(folders[0])
    configs = result.signature.configs
    if choice.config is None and len(configs) > 1:
        raise ConfigError(f"{path}: has {len(configs)} configs; name one with --config: {listed(configs)}")
    config = configs[0] if choice.config is None else choice.config
    if config not in configs:
        raise ConfigError(f"--config {config}: the run has no such config; have: {listed(configs)}")
    source = f"{folder}, {config}"
    parts = (part for part in read_parts(folder, result) if part.columns["config"].coded.texts == (config,))
    records = RecordColumns.joined(parts)
    frame = records.table.select(["item_id", "config", "split", "target", "reading"]).to_pandas()
    splits = [*frame["split"].unique()]
    for name in choice.splits:
        if name not in splits:
            raise ConfigError(f"--split {name}: config '{config}' has no such split; have: {', '.join(splits)}")
    task = load_task(result.signature.task)
    seen = task.shown_items(records) if isinstance(task, ShowsExamples) else frozenset()
    seen |= trained_items(folder, result).get(config, frozenset())
    if choice.splits:
        frame = frame[frame["split"].isin(choice.splits)]
    is_seen = frame["item_id"].isin(seen)
    is_read = frame["reading"].map(lambda reading: reading is not None and len(reading["probabilities"]) > 0)
    is_labelled = frame["target"].notna() | (not needs_labels)
    kept = frame[~is_seen & is_read & is_labelled]
    if kept.empty:
        lacking = "a right answer" if (is_read & ~is_seen).any() else "a distribution over answers"
        raise DataError(
            f"{source}: none of {len(frame) - is_seen.sum()} records has {lacking}; choose other splits, or a run of a "
            "task that scores options"
        )
    # An outcome that an item does not offer has the probability 0.
    try:
        rows = [dict(zip(one["outcomes"], one["probabilities"], strict=True)) for one in kept["reading"]]
    except ValueError as error:
        raise DataError(
            f"{source}: a reading has not one probability for each of its outcomes; run the model again"
        ) from error
    shares = pd.DataFrame(rows, dtype=np.float64).fillna(0.0)
    outcomes = [*map(str, shares.columns)]
    names = wanted or choice.classes or tuple(sorted(outcomes, key=int if are_numbers(outcomes) else str))
    for outcome in outcomes:
        if outcome not in names:
            raise DataError(
                f"{source}: outcome '{outcome}' is no class; have: {listed(names)}; name all classes with --classes"
            )
    left_out = {
        "without a distribution are left out (refused, failed or unread answers)": ~is_read & ~is_seen,
        "without a right answer are left out": is_read & ~is_labelled & ~is_seen,
        "of items that the model was shown or trained on with labels are left out": is_seen,
    }
    return LabelledRows(
        source=source,
        classes=names,
        probabilities=shares.reindex(columns=[*names], fill_value=0.0).to_numpy(),
        labels=[None if target is None else str(target) for target in kept["target"].astype(object)],
        columns=kept.drop(columns="reading").rename(columns={"target": "label"}).reset_index(drop=True),
        notes=(
            f"splits: {', '.join(f'{name} {n:,}' for name, n in kept['split'].value_counts(sort=False).items())}",
            *(f"{int(mask.sum()):,} records {reason}" for reason, mask in left_out.items() if mask.any()),
        ),
    )


def are_numbers(names: Iterable[str]) -> bool:
    """Return True if all names are whole numbers in plain decimal form, of up to 18 digits."""
    return all(re.fullmatch("0|-?[1-9][0-9]{0,17}", name) for name in names)
