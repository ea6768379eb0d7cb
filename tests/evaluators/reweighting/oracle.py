"""Measures, rules and objectives of reweighting, recomputed with plain loops from their definitions.

Nothing here imports what it checks. Equations are those of arXiv:2603.15654.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Row = Sequence[float]


def accuracies(targets: Sequence[int], predicted: Sequence[int], n_classes: int) -> list[float]:
    """Return the share of right predictions of each class (equation 6); nan for a class without rows."""
    found = []
    for one in range(n_classes):
        rows = [place for place, target in enumerate(targets) if target == one]
        found.append(sum(predicted[place] == one for place in rows) / len(rows) if rows else math.nan)
    return found


def known(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def mean(values: Sequence[float]) -> float:
    return sum(known(values)) / len(known(values)) if known(values) else math.nan


def gini(values: Sequence[float]) -> float:
    """Return equation 3, a double sum; nan where the mean is 0."""
    have = known(values)
    if not have or not sum(have):
        return math.nan
    return sum(abs(a - b) for a in have for b in have) / (2 * len(have) ** 2 * mean(have))


def cobias(values: Sequence[float]) -> float:
    """Return equation 4: the mean over unordered pairs."""
    have = known(values)
    pairs = [abs(a - b) for place, a in enumerate(have) for b in have[:place]]
    return sum(pairs) / len(pairs) if pairs else math.nan


def sen(values: Sequence[float]) -> float:
    """Return the expected smaller accuracy of two classes that are drawn with replacement."""
    have = known(values)
    return sum(min(a, b) for a in have for b in have) / len(have) ** 2


def dominance(values: Sequence[float]) -> float:
    return max(known(values)) / mean(values) if mean(values) else math.nan


MEASURES = {"mean": mean, "gini": gini, "cobias": cobias, "sen": sen, "top": dominance}
TRIANGLES = [(level, place) for level in (2, 4, 8) for place in range(level + 1)] + [(1, 1), (1, 0)]
"""Levels and places of the 19 membership functions in the order of the released code, which counts from 0."""


def membership(number: int, probability: float) -> float:
    """Return a triangle with feet a and c and the peak b, drawn by its two lines; its ends are shoulders."""
    level, place = TRIANGLES[number]
    a, b, c = (place - 1) / level, place / level, (place + 1) / level
    if probability <= b:
        return max(0.0, (probability - a) / (b - a)) if probability < b else 1.0
    return max(0.0, (c - probability) / (c - b))


def weights(n_weights: int) -> list[float]:
    return [(place + 1) / n_weights for place in range(n_weights)]


def corrected(row: Row, numbers: Sequence[int], of_weights: Sequence[float]) -> list[float]:
    """Return the values of a row under the rules of the released code: 19 functions, then the weights."""
    return [
        membership(number, value) if number < 19 else value * of_weights[number - 19]
        for value, number in zip(row, numbers, strict=True)
    ]


def first_largest(values: Row) -> int:
    best = 0
    for place, value in enumerate(values):
        if value > values[best]:
            best = place
    return best


def predict(row: Row, numbers: Sequence[int], of_weights: Sequence[float]) -> int:
    return decide(row, corrected(row, numbers, of_weights))


def decide(row: Row, values: Row) -> int:
    """Return the class of a row: the first largest value, or by its own probabilities where all values are 0."""
    return first_largest(values) if any(value > 0 for value in values) else first_largest(row)


def weighted(rows: Sequence[Row], of_classes: Sequence[float]) -> list[int]:
    """Return the predictions of rows whose classes have weights."""
    return [decide(row, [p * w for p, w in zip(row, of_classes, strict=True)]) for row in rows]


def counted(values: Sequence[int], n_classes: int) -> list[int]:
    return [sum(value == one for value in values) for one in range(n_classes)]


def objective(name: str, targets: Sequence[int], predicted: Sequence[int], n_classes: int) -> float:
    """Return the value to make small; infinity where no class is ever right."""
    values = accuracies(targets, predicted, n_classes)
    if not mean(values):
        return math.inf
    return 1 - sen(values) if name == "sen" else gini(values)
