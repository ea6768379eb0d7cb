"""The rules that correct the probability of a class, and their file: weights, and 19 triangular membership functions.

Rules are numbered from 0, as in the published code of DCS (arXiv:2503.05157); its paper counts from 1. 0 to 18 are the
membership functions, and 19 to 18 + K the weights. The membership function with level L and position i is
``max(0, min(L·p - (i - 1), (i + 1) - L·p))``: a triangle with its peak of 1 at i / L and its feet at (i - 1) / L and
(i + 1) / L. Level 1 with position 1 leaves a probability unchanged, and with position 0 gives ``1 - p``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray, IntArray
from biasboard.ground.errors import DataError
from schemas.documents.reweighting import Reweighting, RuleMap

# Files give probabilities with six decimals, so a sum that differs from 1 by no more counts as 1.
_SUM_TOLERANCE = 1e-6
TRIANGLES = (*((level, position) for level in (2, 4, 8) for position in range(level + 1)), (1, 1), (1, 0))
"""Level and position of the membership functions, by the number of their rule."""
N_FUNCTIONS = len(TRIANGLES)


def membership(number: int, probabilities: FloatArray) -> FloatArray:
    """Return the values of a membership function, of the shape of the probabilities, in [0, 1]."""
    level, position = TRIANGLES[number]
    scaled = probabilities * level
    rising = scaled - (position - 1)
    falling = np.subtract(position + 1, scaled, out=scaled)
    values: FloatArray = np.maximum(np.minimum(rising, falling, out=rising), 0.0, out=rising)
    return values


@dataclass(frozen=True)
class RuleSet:
    """The rules that annealing may give to a class: the weights k / n_weights, and the membership functions."""

    n_weights: int = 30
    """By default that of the papers: the first of the 30, 50, 70 and 90 that DCS tried, and of its configuration."""

    @cached_property
    def weights(self) -> FloatArray:
        """The weights, shape (n_weights,), rising to 1."""
        return np.arange(1, self.n_weights + 1) / self.n_weights

    @property
    def n_rules(self) -> int:
        """The number of rules; the last one is the weight 1, which changes nothing."""
        return N_FUNCTIONS + self.n_weights

    def value(self, number: int, probabilities: FloatArray) -> FloatArray:
        """Apply a rule to the probabilities of a class."""
        if number < N_FUNCTIONS:
            return membership(number, probabilities)
        corrected: FloatArray = probabilities * self.weights[number - N_FUNCTIONS]
        return corrected

    def rules(self, numbers: IntArray) -> ClassRules:
        """Return the rules with the given numbers, one for each class."""
        is_function = numbers < N_FUNCTIONS
        weights = np.full(len(numbers), np.nan)
        weights[~is_function] = self.weights[numbers[~is_function] - N_FUNCTIONS]
        return ClassRules(np.where(is_function, numbers, -1), weights)


PAPER_RULES = RuleSet()


@dataclass(frozen=True, eq=False)
class ClassRules:
    """The rule of each class in a fitted correction."""

    functions: IntArray
    """Number of the membership function of each class, shape (n_classes,); -1 for a class with a weight."""
    weights: FloatArray
    """Weight of each class, shape (n_classes,); nan for a class with a membership function."""

    @classmethod
    def of_weights(cls, weights: FloatArray) -> ClassRules:
        """Return weights as rules, scaled so that the largest is 1."""
        return cls(np.full(len(weights), -1), weights / weights.max())

    @property
    def has_functions(self) -> bool:
        """True if a class has a membership function, which needs rows that sum to 1."""
        return bool((self.functions >= 0).any())

    def transform(self, probabilities: FloatArray) -> FloatArray:
        """Return the corrected values, shape (n, n_classes), which are not probabilities: rows need not sum to 1."""
        values: FloatArray = probabilities * np.where(np.isnan(self.weights), 0.0, self.weights)
        for column in np.flatnonzero(self.functions >= 0):
            values[:, column] = membership(self.functions[column], probabilities[:, column])
        return values

    def shares(self, probabilities: FloatArray) -> FloatArray:
        """Return the corrected values of each row divided by their sum, shape (n, n_classes)."""
        values = self._decisive(probabilities)
        sums = values.sum(axis=1, keepdims=True)
        shares: FloatArray = np.divide(values, sums, out=np.full_like(values, 1 / values.shape[1]), where=sums > 0)
        return shares

    def predict(self, probabilities: FloatArray) -> IntArray:
        """Return the index of the predicted class of each row, shape (n,): the first with the largest value."""
        predicted: IntArray = self._decisive(probabilities).argmax(axis=1)
        return predicted

    def _decisive(self, probabilities: FloatArray) -> FloatArray:
        # Membership functions are 0 over wide ranges; a row in which all are 0 is decided by its probabilities.
        values = self.transform(probabilities)
        is_empty = ~values.any(axis=1)
        values[is_empty] = probabilities[is_empty]
        return values


def prepared(probabilities: FloatArray, kind: RuleMap) -> FloatArray:
    """Return the probabilities to apply rules to: normalised if there are membership functions.

    Each row is treated by itself. One whose sum differs from 1 only by rounding stays unchanged.

    Args:
        probabilities: Probability of each class in each row, shape (n, n_classes), none negative.
        kind: Kind of the rules.
    """
    if kind == "weights":
        return probabilities
    sums = probabilities.sum(axis=1, keepdims=True)
    is_off = (np.abs(sums - 1) > _SUM_TOLERANCE) & (sums > 0)
    shares: FloatArray = np.divide(probabilities, sums, out=probabilities.copy(), where=is_off)
    return shares


def read_rules(path: Path) -> Reweighting:
    """Read and check a file of rules.

    Raises:
        DataError: there is no such file, or it holds no rules.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; fit rules first, and name the file that was written")
    from schemas.files import contract  # Imported here because it loads all documents, which a fit does not need.

    return contract.read(path, Reweighting)


def write_rules(path: Path, document: Reweighting) -> None:
    """Write a file of rules.

    Raises:
        DataError: the rules violate the schema of the file; nothing is written.
    """
    from schemas.files import contract

    contract.check(document, where=str(path))
    strict_json.write(path, contract.dump(document))


def rules_of(document: Reweighting) -> ClassRules:
    """Return the rules in a file."""
    weights = np.array([np.nan if weight is None else weight for weight in document.weights], dtype=np.float64)
    # A weight may have no rule number; a class without a weight always has that of its membership function.
    numbers = np.array([-1 if number is None else number for number in document.rules])
    return ClassRules(np.where(np.isnan(weights), numbers, -1), weights)
