"""Fits the stored corrections of a result again, and compares their weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from evaluators.adapter_set import trained_items
from evaluators.metric import MetricInputs
from evaluators.runs.measure.measuring import Measurement
from schemas.documents.result import Result
from schemas.documents.run_files import FittedCorrection
from schemas.folders.run_folder import read_corrections, read_parts

_SAME = 1e-3
"""Largest difference of the logarithms of two weights that count as equal: processors round differently, and this moves
a probability of .5 by .00025."""


def differing_corrections(folder: Path, result: Result) -> Iterator[str]:
    """Fit the corrections of a result again from its records, and yield each difference from the stored ones.

    Metrics are computed with the stored corrections, so that weights chosen by hand would give a model any correction
    that it likes, and agree with its metrics.

    Args:
        folder: Folder of the result, whose records are valid.
        result: The result in it.

    Raises:
        DataError: a file is missing or damaged.
    """
    stored = read_corrections(folder, result)
    if stored is None:
        return
    signature = result.signature
    inputs = MetricInputs(trained=trained_items(folder, result))
    parts = read_parts(folder, result, recount=False)
    corrections = Measurement.of(parts, signature.task, inputs, is_suite=bool(signature.parts)).corrections
    fitted = {(correction.config, correction.calibration): correction for correction in corrections}
    for correction in stored.corrections:
        difference = _difference(correction, fitted.pop((correction.config, correction.calibration), None))
        if difference is not None:
            yield difference
    for correction in fitted.values():
        yield f"{correction.calibration} of config {correction.config} can be fitted and is not stored"


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
