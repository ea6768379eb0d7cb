"""Rows of class probabilities as every kind of input gives them, and the checks that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evaluators.reweighting.inputs import first_fault
from schemas.columns import FloatArray, IntArray
from schemas.errors import ConfigError, DataError

PREFIX = "p_"
"""Beginning of the names of columns with probabilities, in files that are written and, by default, that are read."""
PREDICTED = "predicted"
"""Name of the column with the predicted class, in files that are written."""
MOST_NAMED = 12
_LEAST_CLASSES = 2


@dataclass(frozen=True, kw_only=True)
class InputChoice:
    """The choices of an input: its kind, its columns, and of a run its records."""

    path: Path
    kind: str | None = None
    """Kind of the file; None to recognise it."""
    label_column: str = "label"
    prefix: str | None = None
    """Beginning of the names of the columns of classes; None for ``p_`` where columns begin with it."""
    classes: tuple[str, ...] | None = None
    """Names of the classes in their order; None for those that the input has."""
    ignored: tuple[str, ...] = ()
    """Columns that are no class."""
    config: str | None = None
    splits: tuple[str, ...] = ()


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
        """Return the rows with the classes in the order that is wanted, and check every value.

        Raises:
            DataError: a probability cannot be one, or the classes are not those that are wanted.
        """
        self._check_classes()
        fault = first_fault(self.probabilities)
        if fault is not None:
            where = self._at(fault.row)
            if fault.column is None:
                raise DataError(f"{where}: the row {fault.problem}; {fault.remedy}")
            value, name = self.probabilities[fault.row, fault.column], self.classes[fault.column]
            said = "is missing or no number (NaN)" if np.isnan(value) else f"is {value:g}"
            raise DataError(f"{where}: the probability of class '{name}' {said}; {fault.remedy}")
        if wanted.classes is None or wanted.classes == self.classes:
            return self
        if {*wanted.classes} != {*self.classes}:
            raise DataError(
                f"{self.source}: has the classes {shortened(self.classes)}, and these are wanted: "
                f"{shortened(wanted.classes)}; give probabilities of the same classes, or name them with --classes"
            )
        order = [self.classes.index(name) for name in wanted.classes]
        return replace(self, classes=wanted.classes, probabilities=self.probabilities[:, order])

    def _check_classes(self) -> None:
        if not len(self):
            raise DataError(f"{self.source}: holds no row; give at least one")
        if len(self.classes) < _LEAST_CLASSES:
            raise DataError(
                f"{self.source}: has {len(self.classes)} column of a class{_named(self.classes)}; give one per class, "
                "two at least"
            )
        twice = [name for name in dict.fromkeys(self.classes) if self.classes.count(name) > 1]
        if twice:
            raise DataError(f"{self.source}: two columns are of class '{twice[0]}'; give each class one column")

    def targets(self) -> IntArray:
        """Return the index of the right class of each row, shape (n,).

        Raises:
            DataError: there are no labels, a label is missing or no class, or all rows have the same.
        """
        if self.labels is None:
            raise DataError(f"{self.source}: has no right classes; add them, or only use 'apply'")
        places = {name: place for place, name in enumerate(self.classes)}
        found = np.array([-1 if label is None else places.get(label, -1) for label in self.labels], dtype=np.int64)
        strange = np.flatnonzero(found < 0)
        if len(strange):
            label = self.labels[int(strange[0])]
            said = "has no label; leave it out" if not label else f"label '{label}' is no class"
            remedy = "correct it, or tell the columns of the classes with --classes or --prefix"
            have = f"; have: {shortened(self.classes)}; {remedy}" if label else ""
            raise DataError(f"{self._at(int(strange[0]))}: {said}{have}")
        if len(np.unique(found)) < _LEAST_CLASSES:
            only = self.classes[int(found[0])]
            raise DataError(
                f"{self.source}: all {len(self)} rows are of class '{only}'; give rows of two classes at least"
            )
        return found

    @property
    def without_rows(self) -> tuple[str, ...]:
        """The classes of which no row is, which may be other numbers than probabilities; none without labels."""
        return () if self.labels is None else tuple(name for name in self.classes if name not in {*self.labels})

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

    def _at(self, row: int) -> str:
        return f"{self.source}: {self.place_of(row)}"


def shortened(names: Sequence[str]) -> str:
    """Return names separated by commas, of many only the first ones.

    >>> shortened([str(number) for number in range(20)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more'
    """
    shown = ", ".join(names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def share_names(classes: Sequence[str]) -> list[str]:
    """Return the names of the columns of corrected shares."""
    return [f"{PREFIX}{name}" for name in classes]


def sorted_names(names: Iterable[str]) -> list[str]:
    """Return names in their order, whole numbers by their size.

    >>> sorted_names(["10", "9"]), sorted_names(["b", "10", "9"])
    (['9', '10'], ['10', '9', 'b'])
    """
    found = list(names)
    return sorted(found, key=int) if are_numbers(found) else sorted(found)


def are_numbers(names: Iterable[str]) -> bool:
    """Return True if all names are whole numbers, written without anything else."""
    return all(name.lstrip("-").isdecimal() and str(int(name)) == name for name in names)


def _named(names: Sequence[str]) -> str:
    return f" ({names[0]})" if names else ""


def check_place(path: Path, *inputs: Path | None) -> None:
    """Check that a file can be written without destroying an input.

    Raises:
        ConfigError: the path is a folder or one of the inputs.
    """
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a file")
    if any(other is not None and other.exists() and path.exists() and path.samefile(other) for other in inputs):
        raise ConfigError(f"{path}: is an input of this command; choose another name for --out")
