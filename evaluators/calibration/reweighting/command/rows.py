"""Rows of class probabilities with their right classes: the options that describe them, and their checks."""

from __future__ import annotations

import csv
import re
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
from biasboard.ground.options import option
from evaluators.calibration.reweighting.problem import LEAST_CLASSES
from evaluators.calibration.reweighting.rules import first_fault

if TYPE_CHECKING:
    import pandas as pd

_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")
PREFIX = "p_"
"""Beginning of the names of columns with probabilities, in written files and, by default, in read ones."""
PREDICTED = "predicted"
"""Name of the column with the predicted class in written files."""
listed = partial(plain_text.listed, most=12)
"""Function that joins names for messages, at most the first 12."""


@dataclass(frozen=True, kw_only=True)
class InputChoice:
    """The options of an input: its columns, and for a run its config and splits."""

    path: Path = Path()
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
        """Check that the list of classes names each class once.

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
        """The names of the classes in order; None for the input's own."""
        if self.class_list is None:
            return None
        return tuple(name for name in next(csv.reader([self.class_list], skipinitialspace=True), []) if name)


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledRows:
    """The probabilities of the classes in some rows, and their right classes."""

    source: str
    """Name of the input, for messages."""
    title: str
    """Short name of the input, for titles."""
    classes: tuple[str, ...]
    probabilities: FloatArray
    """Probability of each class, shape (n, n_classes)."""
    labels: Sequence[str | None]
    """Name of the right class of each row; None for a row without one."""
    columns: pd.DataFrame
    """Other values of each row, such as ids, and the label."""
    items: Sequence[str | None] | None = None
    """Id of each row's item in a run; None for the rows of a file."""
    notes: tuple[str, ...] = ()
    """Sentences about which rows were taken and which were left out."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.probabilities)

    @cached_property
    def targets(self) -> IntArray:
        """The index of the right class of each row, shape (n,); -1 without one."""
        indices = {name: index for index, name in enumerate(self.classes)}
        return np.array([-1 if label is None else indices.get(label, -1) for label in self.labels], dtype=np.int64)

    def check(self, wanted: Sequence[str] | None, *, needs_labels: bool, gets_rules: bool) -> None:
        """Check the classes, the probabilities and the labels.

        Args:
            wanted: Classes of rules or of other rows that these rows must have; None for any.
            needs_labels: True if every row needs its right class.
            gets_rules: True if rules will be applied, so that no column may have the name of a corrected one.

        Raises:
            DataError: the first fault, with its place and its remedy.
        """
        if len(self.classes) < LEAST_CLASSES:
            only = f" ({self.classes[0]})" if self.classes else ""
            raise self._fault(f"has {len(self.classes)} column of a class{only}; give one per class, two at least")
        if (twice := first_twice(self.classes)) is not None:
            raise self._fault(f"two columns are of class '{twice}'; give each class one column")
        if (fault := first_fault(self.probabilities)) is not None:
            row, column, problem = fault
            of_class = "the row" if column is None else f"the probability of class '{self.classes[column]}'"
            raise self._fault(f"{of_class} {problem}", row)
        if wanted is not None and {*wanted} != {*self.classes}:
            raise self._fault(
                f"has the classes {listed(self.classes)}, and these are wanted: {listed(wanted)}; give probabilities "
                "of the same classes, or name them with --classes"
            )
        # Applying weights twice squares them, and nothing in the written file would show it.
        if gets_rules and (again := {PREDICTED, *share_names(self.classes)}.intersection(self.columns)):
            raise self._fault(
                f"has a column '{next(name for name in self.columns if name in again)}' already, as corrected rows "
                "have; apply rules to uncorrected probabilities, or rename the column"
            )
        if needs_labels:
            for row in np.flatnonzero(self.targets < 0).tolist():
                remedy = "correct it, or tell the columns of the classes with --classes or --prefix"
                wrong = f"label '{self.labels[row]}' is no class; have: {listed(wanted or self.classes)}; {remedy}"
                raise self._fault(wrong if self.labels[row] else "has no label; leave it out", row)
            if len({*self.labels}) < LEAST_CLASSES:
                only = f"all {len(self)} rows are of class '{self.labels[0]}'"
                raise self._fault(f"{only}; give rows of two classes at least")

    def _fault(self, problem: str, row: int | None = None) -> DataError:
        if row is None:
            return DataError(f"{self.source}: {problem}")
        where = row_from_1(row) if self.items is None else f"item '{self.items[row]}'"
        return DataError(f"{self.source}: {where}: {problem}")


def row_from_1(row: int) -> str:
    """Return words that locate a row of a file by its index."""
    return f"row {row + 1} (the first row is row 1)"


def first_twice(names: Sequence[str]) -> str | None:
    """Return the first name that occurs more than once; None if each occurs once."""
    return next((name for name, n in Counter(names).items() if n > 1), None)


def share_names(classes: Sequence[str]) -> list[str]:
    """Return the names of the columns of corrected shares."""
    return [f"{PREFIX}{name}" for name in classes]


def are_numbers(names: Iterable[str]) -> bool:
    """Return True if all names are whole numbers in plain decimal form, of up to 18 digits."""
    return all(map(_WHOLE.fullmatch, names))
