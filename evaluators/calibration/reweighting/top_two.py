"""The two largest corrected values of each row, kept up to date while the values of single classes change.

When the value of a class changes, comparing it with the largest other value decides the row::

    row    largest       second        class 2 gets 0.5      class 0 gets 0.2
    17     0.6 (class 0) 0.4 (class 1) 0.5 < 0.6: loses      0.2 < 0.4: class 1 wins, and the second is ranked anew

A trial thus takes a few passes over the rows, whatever the number of classes: with 10,000 rows of 100 classes, 1/100 of
the time of computing all values again. Numba would speed up whole searches by less than a factor of two.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import BoolArray, FloatArray, IntArray

Scalar = TypeVar("Scalar", bound=np.generic)


class Ranked(NamedTuple):
    """The class of a certain rank in each row."""

    values: FloatArray
    """Its corrected value, shape (n,)."""
    classes: IntArray
    """Its index, shape (n,)."""
    are_right: BoolArray
    """Mask of the rows where it is the right one, shape (n,)."""


class TopTwo:
    """The corrected values of some rows, with the largest and the second largest of each.

    Args:
        probabilities: Probability of each class in each row, shape (n, n_classes).
        targets: Index of the right class of each row, shape (n,).
        values: Corrected values to start with, of the shape of the probabilities.
    """

    def __init__(self, probabilities: FloatArray, targets: IntArray, values: FloatArray) -> None:
        # Rows are ordered by their right class, so those of a class are a slice, and its right rows a single sum.
        order = np.argsort(targets, kind="stable")
        self.targets = targets[order]
        self.probabilities = np.ascontiguousarray(probabilities[order].T)
        """Probabilities, shape (n_classes, n): the rows are ordered by their right class."""
        self.supports = np.bincount(targets, minlength=len(self.probabilities))
        self._values = np.ascontiguousarray(values[order].T)
        ends = np.cumsum(self.supports)
        self._slices = [slice(end - n, end) for end, n in zip(ends.tolist(), self.supports.tolist(), strict=True)]
        self._occurring = np.flatnonzero(self.supports)
        self._starts = (ends - self.supports)[self._occurring]
        # Rows without a positive corrected value are decided by their probabilities.
        self._unchanged_right = self.probabilities.argmax(axis=0) == self.targets
        n = len(targets)
        self._first, self._second = (
            Ranked(np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.bool_)) for _ in range(2)
        )
        self._rank(np.arange(n))

    def n_right(self) -> FloatArray:
        """Return how many rows of each class are right under the current values, shape (n_classes,)."""
        return self._counted(np.where(self._first.values <= 0, self._unchanged_right, self._first.are_right))

    def others(self, class_index: int) -> tuple[FloatArray, BoolArray]:
        """Return the value of the best of all other classes in each row, and whether that is the right one."""
        rows = np.flatnonzero(self._first.classes == class_index)
        values = _with(self._first.values, self._second.values, rows)
        return values, _with(self._first.are_right, self._second.are_right, rows)

    def trial(self, class_index: int, values: FloatArray) -> FloatArray:
        """Return how many rows of each class would be right if a class had other corrected values.

        Args:
            class_index: Index of the class.
            values: Its corrected values, shape (n,), in the order of :attr:`probabilities`.
        """
        best_other, right = self.others(class_index)
        wins = values > best_other
        ties = values == best_other
        has_ties = bool(ties.any())
        if has_ties:
            rows = np.flatnonzero(self._first.classes == class_index)
            wins |= ties & (_with(self._first.classes, self._second.classes, rows) > class_index)
        right &= ~wins
        own = self._slices[class_index]
        right[own] = wins[own]
        if has_ties:
            # Corrected values are never negative, so a row without a positive one has a tie at 0.
            np.copyto(right, self._unchanged_right, where=ties & (values <= 0))
        return self._counted(right)

    def accept(self, class_index: int, values: FloatArray) -> None:
        """Replace the corrected values of a class.

        Args:
            class_index: Index of the class.
            values: Its corrected values, shape (n,).
        """
        self._values[class_index] = values
        # Other rows keep their first two classes: this one was not among them, and is not now.
        is_concerned = (self._first.classes == class_index) | (self._second.classes == class_index)
        is_concerned |= values >= self._second.values
        self._rank(np.flatnonzero(is_concerned))

    def _rank(self, rows: IntArray) -> None:
        """Determine the first and second class of some rows from all values."""
        values, targets = self._values[:, rows], self.targets[rows]
        columns = np.arange(len(rows))
        for ranked in (self._first, self._second):
            classes = values.argmax(axis=0)
            ranked.values[rows] = values[classes, columns]
            ranked.classes[rows] = classes
            ranked.are_right[rows] = classes == targets
            if ranked is self._first:
                values[classes, columns] = -np.inf

    def _counted(self, right: BoolArray) -> FloatArray:
        n_right = np.zeros(len(self.supports))
        n_right[self._occurring] = np.add.reduceat(right.view(np.int8), self._starts, dtype=np.int64)
        return n_right


def _with(values: npt.NDArray[Scalar], others: npt.NDArray[Scalar], rows: IntArray) -> npt.NDArray[Scalar]:
    """Return a copy of values with some rows replaced; few are, so this is faster than a choice in every row."""
    mixed = values.copy()
    mixed[rows] = others[rows]
    return mixed
