"""Bounds a metric by what its missing answers could change, so that no model gains by leaving answers out.

Beside it stand the words in which tables, commands and findings say how sure an order is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.plain_text import listed
from schemas.documents.result import Metric

_MOST_NAMED = 12


class Bounds(NamedTuple):
    """The values of a metric if every missing unit counted as the worst or as the best that it could be."""

    worst: float
    best: float


def bounds_note(bounds: Bounds | None) -> str:
    """Return words for a cell about the bounds of its value; empty if no answer is missing."""
    if bounds is None:
        return ""
    return f"{bounds.worst:.3f} to {bounds.best:.3f} with missing answers at their worst and best"


def detectable_note(difference: float | None, label: str) -> str:
    """Return a sentence about the difference that a table can detect; empty if it is unknown.

    Args:
        difference: Difference that is detected with a probability of 80 %, adjusted for all pairs of a table.
        label: Name of the metric that ranks.
    """
    if difference is None:
        return ""
    differ = f"Two models have to differ by about {difference:.2g} in {label}"
    return f"{differ} to be told apart in 8 of 10 cases, if neither leaves answers out."


def top_note(names: Sequence[str]) -> str:
    """Return words on the models that no other ranked model is separably better than.

    >>> top_note(["a", "b"]), top_note(["a"])
    ('not beaten: a, b', 'alone at the top: a')
    """
    # Of several, one may stand behind a model that is beaten, so that none is called the best.
    return f"{'not beaten' if len(names) > 1 else 'alone at the top'}: {listed(names, most=_MOST_NAMED)}"


def bounds_of(metric: Metric | None, missing_share: float = 0.0) -> Bounds | None:
    """Return the bounds of a metric; None if it has no value, no ideal or no maximum.

    Each missing unit, such as a pair with an answer that was refused, counts as one end of the metric's range and
    weighs as much as each unit that was scored. For a mean over units these are its exact bounds. For other metrics the
    same rule is a convention: it moves the value towards an end of the range by the share of missing units.

    Args:
        metric: Value of all items, with the numbers of scored and of missing units.
        missing_share: Share of the answers that is missing within the units, as within the parts of a suite.
    """
    if metric is None or metric.value is None or metric.ideal is None or metric.maximum is None:
        return None
    total = metric.n + metric.n_excluded
    missing = metric.n_excluded / total if total else 0.0
    missing += (1 - missing) * missing_share
    low, high = ((1 - missing) * metric.value + missing * end for end in (metric.minimum, metric.maximum))
    ideal = metric.ideal
    worst = max(low, high, key=lambda value: abs(value - ideal))
    return Bounds(worst=worst, best=min(max(ideal, low), high))
