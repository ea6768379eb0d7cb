"""Fits the stored corrections of a result again, and compares their weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from evaluators.adapter_set import trained_items
from evaluators.metric import MetricInputs
from evaluators.runs.measure.measuring import Measurement
from schemas.documents.run_files import FittedCorrection
from schemas.folders.run_folder import read_corrections, read_parts, read_result

_SAME = 1e-6
"""Largest difference of the logarithms of two weights that count as equal: processors round differently."""


class Refit(NamedTuple):
    """The comparison of stored corrections with those that are fitted now."""

    n: int
    """Number of corrections."""
    differing: tuple[str, ...]
    """Sentence about each correction that differs."""


def refit(folder: Path) -> Refit:
    """Fit the corrections of a result again from its records.

    Args:
        folder: Folder of a result that was verified.

    Raises:
        DataError: a file is missing or damaged.
    """
    result = read_result(folder)
    stored = read_corrections(folder, result)
    if stored is None:
        return Refit(0, ())
    signature = result.signature
    inputs = MetricInputs(trained=trained_items(folder, result))
    parts = read_parts(folder, result, recount=False)
    corrections = Measurement.of(parts, signature.task, inputs, is_suite=bool(signature.parts)).corrections
    fitted = {(one.config, one.calibration): one for one in corrections}
    differences = [_difference(one, fitted.pop((one.config, one.calibration), None)) for one in stored.corrections]
    differences += [
        f"{one.calibration} of config {one.config} can be fitted and is not stored" for one in fitted.values()
    ]
    return Refit(len(differences), tuple(one for one in differences if one is not None))


def _difference(stored: FittedCorrection, fitted: FittedCorrection | None) -> str | None:
    """Return a sentence about the difference of a correction; None if there is none."""
    name = f"{stored.calibration} of config {stored.config}"
    if fitted is None:
        return f"{name} cannot be fitted"
    if stored.reason is not None or fitted.reason is not None:
        return None if stored.reason == fitted.reason else f"{name}: {fitted.reason or 'weights can be fitted'}"
    if stored.version != fitted.version:
        return f"{name} is of version {stored.version}, and the present one is {fitted.version}"
    if (stored.labels, stored.n_items) != (fitted.labels, fitted.n_items):
        return f"{name} is fitted on {fitted.n_items} items, and {stored.n_items} were told"
    pairs = zip(stored.weights, fitted.weights, strict=True)
    distance = max(abs(math.log(weight) - math.log(other)) for weight, other in pairs)
    return f"a weight of {name} differs by the factor {math.exp(distance):.4g}" if distance > _SAME else None
