"""A file of fitted reweighting rules: a rule for the probability of each class, applicable without this package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Le, MinLen
from typing_extensions import override

from schemas.documents.base import Count, Document, Positive, Share, Text

RuleMap: TypeAlias = Literal["weights", "full", "membership"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitReport(Document):
    """The rows that rules were fitted on, and what they did there."""

    n_rows: Positive
    supports: tuple[Count, ...]
    """Number of rows of each class."""
    class_accuracies_before: tuple[Share | None, ...]
    """Accuracy of each class by the uncorrected probabilities; None for a class without rows."""
    class_accuracies_after: tuple[Share | None, ...]
    accuracy_before: Share
    """Share of all rows that are predicted right."""
    accuracy_after: Share
    notes: tuple[str, ...]
    """Sentences about what the correction cost and which numbers to doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reweighting(Document):
    """Fitted rules: the class with the largest value ``weight · p`` or ``membership(p)`` is predicted.

    Where all values of a row are 0, its own probabilities decide. Of equal values the first one wins.
    """

    schema_file = "schemas/documents/reweighting.schema.json"

    format: Annotated[int, Ge(1), Le(1)]
    """Version of the format, 1."""
    classes: Annotated[tuple[str, ...], MinLen(2)]
    """Name of the class of each column."""
    has_integer_classes: bool
    """True if the names stand for whole numbers."""
    map: RuleMap
    """Kind of the rules. With membership functions, rows of probabilities must sum to 1."""
    index_base: Annotated[int, Ge(0), Le(0)]
    """Number of the first rule, 0."""
    rules: Annotated[tuple[Count | None, ...], MinLen(2)]
    """Number of each class's rule: 0 to 18 for membership functions, 19 and more for the weights of a grid; None for a
    weight of no grid."""
    weights: Annotated[tuple[Annotated[float, Ge(0)] | None, ...], MinLen(2)]
    """Weight of each class; None for a class with a membership function."""
    n_weights: Annotated[int, Ge(2)] | None
    """Number of weights of the grid that was searched; None if weights could be any numbers."""
    grid: Literal["log", "linear"] | None
    objective: Text
    solver: Text
    seed: int
    fit_report: FitReport

    @override
    def problems(self) -> Iterator[str]:
        n = len(self.classes)
        for name in ("rules", "weights"):
            if len(getattr(self, name)) != n:
                yield f"{name}: has {len(getattr(self, name))} entries, and there are {n} classes; fit the rules again"
        if len(set(self.classes)) < n:
            yield f"classes: {n} columns have {len(set(self.classes))} names; give each column its own"
        if self.weights and all(weight == 0 for weight in self.weights):
            yield "weights: all are 0, which leaves no class; fit the rules again"
        if self.has_integer_classes:
            for index, name in enumerate(self.classes):
                if not re.fullmatch(r"-?[0-9]+", name):
                    remedy = "name whole numbers, or say false"
                    yield f"classes.{index}: '{name}', and has_integer_classes is true; {remedy}"
        for index, (rule, weight) in enumerate(zip(self.rules, self.weights, strict=False)):
            reason = ""
            if weight is None and rule is None:
                reason = f"null, and rules.{index} is null too"
            elif weight is None and rule is not None and rule > 18:
                reason = f"null, and rules.{index} is {rule}, no membership function"
            elif weight is not None and rule is not None and rule < 19:
                reason = f"{weight}, and rules.{index} is {rule}, a membership function"
            elif weight is None and self.map == "weights":
                reason = "null, and the map is 'weights'"
            if reason:
                yield f"weights.{index}: {reason}; fit the rules again"
