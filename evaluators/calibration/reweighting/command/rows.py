"""Rows of class probabilities, from whatever file or run: what is refused of them, and how they are written."""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.array_checks import LEAST_CLASSES, first_fault

PREFIX = "p_"
"""Beginning of the names of columns with probabilities, in files that are written and, by default, that are read."""
PREDICTED = "predicted"
"""Name of the column with the predicted class, in files that are written."""
PROBABILITIES, LABELS, CLASSES = "probabilities", "labels", "classes"
"""Names of the arrays of an NPZ file."""
_MOST_LISTED = 12


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

    @cached_property
    def targets(self) -> IntArray:
        """The index of the right class of each row, shape (n,); -1 without one."""
        indices = {name: index for index, name in enumerate(self.classes)}
        labels = [None] * len(self) if self.labels is None else self.labels
        return np.array([-1 if label is None else indices.get(label, -1) for label in labels], dtype=np.int64)

    @property
    def without_rows(self) -> tuple[str, ...]:
        """The classes of which no row is, which may be other numbers than probabilities; none without labels."""
        occurring = {*(self.classes if self.labels is None else self.labels)}
        return tuple(name for name in self.classes if name not in occurring)

    def faults(self, wanted: Sequence[str] | None, *, needs_labels: bool, gets_rules: bool) -> Iterator[str]:
        """Yield what is wrong, with its place and the way out. All but the first may follow from the first.

        Args:
            wanted: Classes that rules have, or other rows; None for any.
            needs_labels: True if every row needs its right class.
            gets_rules: True if rules are to be applied.
        """
        if not len(self):
            yield "holds no row; give at least one"
        if len(self.classes) < LEAST_CLASSES:
            only = f" ({self.classes[0]})" if self.classes else ""
            yield f"has {len(self.classes)} column of a class{only}; give one per class, two at least"
        if (twice := first_twice(self.classes)) is not None:
            yield f"two columns are of class '{twice}'; give each class one column"
        if (fault := first_fault(self.probabilities)) is not None:
            if fault.column is None:
                yield f"{self.place_of(fault.row)}: the row {fault.problem}; {fault.remedy}"
            else:
                value, name = self.probabilities[fault.row, fault.column], self.classes[fault.column]
                problem = "is missing or no number (NaN)" if np.isnan(value) else f"is {value:g}"
                yield f"{self.place_of(fault.row)}: the probability of class '{name}' {problem}; {fault.remedy}"
        classes = self.classes if wanted is None else wanted
        if {*classes} != {*self.classes}:
            yield (
                f"has the classes {listed(self.classes)}, and these are wanted: {listed(classes)}; give probabilities "
                "of the same classes, or name them with --classes"
            )
        # Weights that are applied twice are squared, and nothing in the file would tell.
        if gets_rules and (again := {PREDICTED, *share_names(self.classes)}.intersection(self.columns)):
            yield (
                f"has a column '{next(name for name in self.columns if name in again)}' already, as corrected rows "
                "have; apply rules to uncorrected probabilities, or rename the column"
            )
        if needs_labels and self.labels is not None:
            for row in np.flatnonzero(self.targets < 0).tolist():
                remedy = "correct it, or tell the columns of the classes with --classes or --prefix"
                problem = f"label '{self.labels[row]}' is no class; have: {listed(classes)}; {remedy}"
                yield f"{self.place_of(row)}: {problem if self.labels[row] else 'has no label; leave it out'}"
            if len({*self.labels}) < LEAST_CLASSES:
                yield f"all {len(self)} rows are of class '{self.labels[0]}'; give rows of two classes at least"


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, of many only the first ones.

    >>> listed([str(number) for number in range(20)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more'
    """
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"


def first_twice(names: Sequence[str]) -> str | None:
    """Return the first name that stands several times; None if each stands once."""
    return next((name for name, n in Counter(names).items() if n > 1), None)


def share_names(classes: Sequence[str]) -> list[str]:
    """Return the names of the columns of corrected shares."""
    return [f"{PREFIX}{name}" for name in classes]


def _write_csv(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*rows.columns, PREDICTED, *share_names(rows.classes)])
    writer.writerows(zip(*rows.columns.values(), predicted, *shares.T.tolist(), strict=True))
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def _write_parquet(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {**rows.columns, PREDICTED: predicted, **dict(zip(share_names(rows.classes), shares.T, strict=True))}
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)


def _write_npz(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    arrays: dict[str, np.ndarray] = {
        PROBABILITIES: shares,
        CLASSES: np.array(rows.classes),
        PREDICTED: np.array(predicted),
    }
    if rows.labels is not None and None not in rows.labels:
        arrays[LABELS] = np.array(rows.labels)
    for name, values in rows.columns.items():
        if name not in arrays:
            arrays[name] = np.array(["" if value is None else value for value in values])
    # numpy.savez takes names as keywords, so that no column could be called 'file', and writes the time of day.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            with file.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


WRITERS: dict[str, Callable[[Path, Rows, Sequence[str], FloatArray], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".npz": _write_npz,
}
"""The writer of rows with their predicted classes and corrected shares, by the ending of the file."""
