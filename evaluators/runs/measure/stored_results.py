"""Measures a result again from what lies in its folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from biasboard.ground.errors import DataError
from evaluators.runs.measure.correction_files import read_inputs
from evaluators.runs.measure.measuring import Measurement
from evaluators.runs.measure.stored_sums import measured_by_sums
from evaluators.text_scores import TextScores, read_scores
from schemas.documents.result import Result
from schemas.files.record_columns import RecordColumns


def measurement_of(
    folder: Path, result: Result, parts: Iterable[RecordColumns], scores: TextScores | None = None
) -> Measurement:
    """Return the measurement of a result: from its records and scores, or from its sums if its texts are elsewhere.

    Args:
        folder: Folder of the result.
        result: The result in it.
        parts: The records of each part, each of which is read once.
        scores: Scores of its texts; None to read them.

    Raises:
        DataError: a file is damaged, or the records do not come from the task.
    """
    if result.withheld is not None:
        return measured_by_sums(folder, result, parts)
    signature = result.signature
    inputs = read_inputs(folder, result, read_scores(folder, result.scores) if scores is None else scores)
    measurement = Measurement.of(parts, signature.task, inputs, is_suite=bool(signature.parts))
    used = {(correction.config, correction.calibration) for correction in measurement.corrections}
    for correction in inputs.corrections:
        if (correction.config, correction.calibration) not in used:
            unused = f"{correction.calibration} of config {correction.config}"
            raise DataError(f"{folder}: corrections.json has {unused}, which no metric applies; rescore the run")
    return measurement
