"""The file of a run with corrections of its distributions that were fitted once and are applied from then on.

A fit that compares predictions can end elsewhere on another processor, because rounding decides a tie. Whoever
recomputes the metrics of a result therefore applies the stored corrections, and fits them again only on request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Count, Document, Text, repeated

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCorrection(Document):
    """A correction of the distributions of one config, or the reason why there is none."""

    config: Text
    calibration: Text
    """Name of the calibration."""
    version: Text
    """Version of the calibration."""
    n_items: Count
    """Number of items that it was fitted on."""
    labels: tuple[str, ...]
    """Labels of the config, sorted; empty if there is no correction."""
    weights: tuple[Annotated[float, Ge(1e-30), Le(1)], ...]
    """Factor of the probability of each label, of which the largest is 1; empty if there is no correction."""
    reason: Text | None
    """Reason why there is no correction; None if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections(Document):
    """All stored corrections of a run."""

    schema_version: Annotated[str, StringConstraints(pattern=r"^1\.[0-9]+$")]
    corrections: Annotated[tuple[FittedCorrection, ...], MinLen(1)]

    @override
    def problems(self) -> Iterator[str]:
        for config, calibration in repeated((entry.config, entry.calibration) for entry in self.corrections):
            yield f"corrections: config {config} has calibration {calibration} twice; rescore the run"
        for entry in self.corrections:
            where = f"corrections: {entry.calibration} of config {entry.config}"
            if len(entry.labels) != len(entry.weights):
                yield f"{where} has {len(entry.labels)} labels and {len(entry.weights)} weights; rescore the run"
            if (entry.reason is None) != bool(entry.weights):
                yield f"{where} must have either weights or a reason; rescore the run"
            if entry.weights and max(entry.weights) != 1.0:
                largest = max(entry.weights)
                yield f"{where} has {largest} as its largest weight, and that of any fit is 1; rescore the run"
