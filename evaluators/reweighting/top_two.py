"""The two largest corrected values of each row, kept up to date while the values of single classes change.

A changed value of one class decides a row by a comparison with the larger value of another class::

    row    largest       second        class 2 gets 0.5      class 0 gets 0.2
    17     0.6 (class 0) 0.4 (class 1) 0.5 < 0.6: loses      0.2 < 0.4: class 1 wins, and the second is ranked anew

A trial therefore costs a few passes over the rows, whatever the number of classes: with 10,000 rows of 100 classes it
takes 1/100 of the time of computing all values again.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evaluators.reweighting.problem import Counts
from evaluators.statistics.bootstrap import BoolArray, FloatArray, IntArray

Scalar = TypeVar("Scalar", bound=np.generic)


class Others(NamedTuple):
    """The best of all classes but one, in each row."""

    values: FloatArray
    """Largest corrected value, shape (n,)."""
    classes: IntArray
    """Index of the class that has it, shape (n,)."""
    are_right: BoolArray
    """Mask of the rows where that class is the right one, shape (n,)."""


class TopTwo:
    """The corrected values of some rows, with the largest and the second largest of each.

    Args:
        probabilities: Probability of each class in each row, shape (n, n_classes).
        targets: Index of the right class of each row, shape (n,).
        values: Corrected values to start with, of the shape of the probabilities.
    """

    def __init__(self, probabilities: FloatArray, targets: IntArray, values: FloatArray) -> None:
        # Ordered by their right class, the rows of a class are a slice, and its right rows one sum.
        order = np.argsort(targets, kind="stable")
        self.targets = targets[order]
        self.probabilities = np.ascontiguousarray(probabilities[order].T)
        """Probabilities, shape (n_classes, n): the rows are ordered by their right class."""
        self.supports = np.bincount(targets, minlength=len(self.probabilities))
        self._values = np.ascontiguousarray(values[order].T)
        self._occurring = np.flatnonzero(self.supports)
        ends = np.cumsum(self.supports)
        self._slices = [slice(end - n, end) for end, n in zip(ends.tolist(), self.supports.tolist(), strict=True)]
        self._starts = (ends - self.supports)[self._occurring]
        self._unchanged = self.probabilities.argmax(axis=0)
        self._unchanged_right = self._unchanged == self.targets
        n_rows = len(targets)
        self._first, self._second = np.empty(n_rows), np.empty(n_rows)
        self._first_class, self._second_class = np.empty((2, n_rows), dtype=np.int64)
        self._first_right, self._second_right = np.empty((2, n_rows), dtype=np.bool_)
        self._rank(np.arange(n_rows))

    def own_rows(self, place: int) -> slice:
        """Return the rows of which a class is the right one."""
        return self._slices[place]

    def counts(self, *, with_predicted: bool = False) -> Counts:
        """Return the counts by class under the present values."""
        is_empty = self._first <= 0
        right = np.where(is_empty, self._unchanged_right, self._first_right)
        predicted = np.where(is_empty, self._unchanged, self._first_class) if with_predicted else None
        return self._counted(right, predicted)

    def others(self, place: int) -> Others:
        """Return the best of all classes but one in each row."""
        is_first = self._first_class == place
        return Others(
            np.where(is_first, self._second, self._first),
            np.where(is_first, self._second_class, self._first_class),
            np.where(is_first, self._second_right, self._first_right),
        )

    def trial(self, place: int, values: FloatArray, *, with_predicted: bool = False) -> Counts:
        """Return the counts by class if the corrected values of one class were others.

        Args:
            place: Index of the class.
            values: Its corrected values, shape (n,), in the order of :attr:`probabilities`.
            with_predicted: True to count how often each class is predicted.
        """
        firsts = np.flatnonzero(self._first_class == place)
        best_other = _with(self._first, self._second, firsts)
        wins = values > best_other
        ties = values == best_other
        has_ties = bool(ties.any())
        if has_ties:
            wins |= ties & (_with(self._first_class, self._second_class, firsts) > place)
        right = _with(self._first_right, self._second_right, firsts)
        right &= ~wins
        own = self._slices[place]
        right[own] = wins[own]
        # Corrected values are never negative, so that a row without a positive one has a tie at 0.
        is_empty = ties & (values <= 0) if has_ties else ties
        if has_ties:
            np.copyto(right, self._unchanged_right, where=is_empty)
        if not with_predicted:
            return self._counted(right, None)
        predicted = np.where(wins, place, _with(self._first_class, self._second_class, firsts))
        np.copyto(predicted, self._unchanged, where=is_empty)
        return self._counted(right, predicted)

    def accept(self, place: int, values: FloatArray) -> None:
        """Give one class other corrected values.

        Args:
            place: Index of the class.
            values: Its corrected values, shape (n,).
        """
        self._values[place] = values
        is_first = self._first_class == place
        is_above_first = _beats(values, place, self._first, self._first_class)
        is_above_second = _beats(values, place, self._second, self._second_class)
        rises = ~is_first & is_above_first
        enters = ~is_first & ~rises & is_above_second
        # A class that falls behind the second may be passed by a third one, which is unknown: such rows are ranked
        # anew.
        falls = is_first & ~is_above_second
        falls |= (self._second_class == place) & ~rises & (values < self._second)
        own = np.zeros(len(values), dtype=np.bool_)
        own[self._slices[place]] = True
        np.copyto(self._second, self._first, where=rises)
        np.copyto(self._second_class, self._first_class, where=rises)
        np.copyto(self._second_right, self._first_right, where=rises)
        np.copyto(self._second, values, where=enters)
        np.copyto(self._second_class, place, where=enters)
        np.copyto(self._second_right, own, where=enters)
        np.copyto(self._first, values, where=rises | is_first)
        np.copyto(self._first_class, place, where=rises)
        np.copyto(self._first_right, own, where=rises)
        if falls.any():
            self._rank(np.flatnonzero(falls))

    def _rank(self, rows: IntArray) -> None:
        """Find the first and second class of some rows anew."""
        values = self._values[:, rows]
        columns = np.arange(len(rows))
        first = values.argmax(axis=0)
        self._first[rows] = values[first, columns]
        values[first, columns] = -np.inf
        second = values.argmax(axis=0)
        self._second[rows] = values[second, columns]
        self._first_class[rows], self._second_class[rows] = first, second
        targets = self.targets[rows]
        self._first_right[rows], self._second_right[rows] = first == targets, second == targets

    def _counted(self, right: BoolArray, predicted: IntArray | None) -> Counts:
        n_right = np.zeros(len(self.supports))
        n_right[self._occurring] = np.add.reduceat(right.view(np.int8), self._starts, dtype=np.int64)
        n_predicted = None if predicted is None else np.bincount(predicted, minlength=len(self.supports))
        return Counts(n_right, None if n_predicted is None else n_predicted.astype(np.float64))


def _beats(values: FloatArray, place: int, others: FloatArray, classes: IntArray) -> BoolArray:
    """Return the mask of the rows where a class comes before another: by its value, or by its index in a tie."""
    before: BoolArray = (values > others) | ((values == others) & (classes > place))
    return before


def _with(values: npt.NDArray[Scalar], others: npt.NDArray[Scalar], rows: IntArray) -> npt.NDArray[Scalar]:
    """Return values of which those of some rows are replaced. Few are, so that no choice is made in the other rows."""
    mixed = values.copy()
    mixed[rows] = others[rows]
    return mixed
