"""The file of a run with corrections of its distributions that were fitted once and are applied from then on.

A fit that compares predictions can end elsewhere on another processor, because rounding decides a tie. Whoever
recomputes the metrics of a result therefore applies the stored corrections, and fits them again only on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCorrection:
    """A correction of the distributions of one config, or the reason why there is none."""

    config: str
    calibration: str
    """Name of the calibration."""
    version: str
    """Version of the calibration."""
    n_items: int
    """Number of items that it was fitted on."""
    labels: tuple[str, ...]
    """Labels of the config, sorted; empty if there is no correction."""
    weights: tuple[float, ...]
    """Factor of the probability of each label, of which the largest is 1; empty if there is no correction."""
    reason: str | None
    """Reason why there is no correction; None if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """All stored corrections of a run."""

    schema_version: str
    corrections: tuple[FittedCorrection, ...]


def corrections_problems(document: Corrections) -> Iterator[str]:
    """Yield a message for each rule of the file that a schema cannot express and that is broken."""
    keys = Counter((one.config, one.calibration) for one in document.corrections)
    for config, calibration in (key for key, n in keys.items() if n > 1):
        yield f"corrections: config {config} has calibration {calibration} twice; rescore the run"
    for one in document.corrections:
        where = f"corrections: {one.calibration} of config {one.config}"
        if len(one.labels) != len(one.weights):
            yield f"{where} has {len(one.labels)} labels and {len(one.weights)} weights; rescore the run"
        if (one.reason is None) != bool(one.weights):
            yield f"{where} must have either weights or a reason; rescore the run"
        if one.weights and max(one.weights) != 1.0:
            yield f"{where} has {max(one.weights)} as its largest weight, and that of any fit is 1; rescore the run"
