"""A file of fitted reweighting rules: a rule for the probability of each class, applicable without this package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

RuleMap: TypeAlias = Literal["weights", "full", "membership"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitReport:
    """The rows that rules were fitted on, and what they did there."""

    n_rows: int
    supports: tuple[int, ...]
    """Number of rows of each class."""
    class_accuracies_before: tuple[float | None, ...]
    """Accuracy of each class by the uncorrected probabilities; None for a class without rows."""
    class_accuracies_after: tuple[float | None, ...]
    accuracy_before: float
    """Share of all rows that are predicted right."""
    accuracy_after: float
    notes: tuple[str, ...]
    """Sentences about what was traded and what to doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reweighting:
    """Fitted rules: the class with the largest value ``weight · p`` or ``membership(p)`` is predicted.

    Where all values of a row are 0, its own probabilities decide. Of equal values the first one wins.
    """

    format: int
    """Version of the format, 1."""
    classes: tuple[str, ...]
    """Name of the class of each column."""
    has_integer_classes: bool
    """True if the names stand for whole numbers."""
    map: RuleMap
    """Kind of the rules. With membership functions, rows of probabilities must sum to 1."""
    index_base: int
    """Number of the first rule, 0."""
    rules: tuple[int | None, ...]
    """Number of each class's rule: 0 to 18 for membership functions, 19 and more for the weights of a grid; None for a
    weight of no grid."""
    weights: tuple[float | None, ...]
    """Weight of each class; None for a class with a membership function."""
    n_weights: int | None
    """Number of weights of the grid that was searched; None if weights could be any numbers."""
    grid: Literal["log", "linear"] | None
    objective: str
    solver: str
    seed: int
    fit_report: FitReport


def reweighting_problems(document: Reweighting) -> Iterator[str]:
    """Yield a message for each rule of a file that a schema cannot express and that is broken."""
    n = len(document.classes)
    for name in ("rules", "weights"):
        if len(getattr(document, name)) != n:
            yield f"{name}: has {len(getattr(document, name))} entries, and there are {n} classes; fit the rules again"
    if len(set(document.classes)) < n:
        yield f"classes: {n} columns have {len(set(document.classes))} names; give each column its own"
    if document.has_integer_classes:
        for place, name in enumerate(document.classes):
            if not re.fullmatch(r"-?[0-9]+", name):
                yield f"classes.{place}: '{name}', and has_integer_classes is true; name whole numbers, or say false"
    for place, (rule, weight) in enumerate(zip(document.rules, document.weights, strict=False)):
        if weight is None and rule is None:
            yield f"weights.{place}: null, and rules.{place} is null too; fit the rules again"
        elif weight is None and rule is not None and rule > 18:
            yield f"weights.{place}: null, and rules.{place} is {rule}, no membership function; fit the rules again"
        elif weight is not None and rule is not None and rule < 19:
            yield f"weights.{place}: {weight}, and rules.{place} is {rule}, a membership function; fit the rules again"
        elif weight is None and document.map == "weights":
            yield f"weights.{place}: null, and the map is 'weights'; fit the rules again"
