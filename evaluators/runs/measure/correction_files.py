"""Reads and writes the corrections that calibrations have learned, which lie beside the records of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from evaluators.adapters import trained_items
from evaluators.metric_inputs import MetricInputs
from evaluators.text_scores import NO_SCORES, TextScores
from schemas.documents.corrections import SCHEMA_VERSION, Corrections, FittedCorrection
from schemas.documents.result import CorrectionsFile, Result
from schemas.files import contract
from schemas.folders.run_folder import CORRECTIONS, read_corrections


def read_inputs(folder: Path, result: Result, scores: TextScores = NO_SCORES, *, may_fit: bool = False) -> MetricInputs:
    """Return what the metrics of a result need: its corrections, and the items that its adapters were trained on.

    Args:
        folder: Folder of the result.
        result: The result in it.
        scores: Scores of its texts.
        may_fit: True to fit corrections that are missing.

    Raises:
        DataError: a file is missing or damaged.
    """
    stored = read_corrections(folder, result)
    corrections = () if stored is None else stored.corrections
    return MetricInputs(scores, corrections, trained_items(folder, result), may_fit)


def write_corrections(folder: Path, corrections: Sequence[FittedCorrection]) -> CorrectionsFile | None:
    """Write the corrections of a run beside its records; without any, remove an earlier file.

    Returns:
        The reference to the file for the result; None if there are no corrections.
    """
    path = folder / CORRECTIONS
    if not corrections:
        path.unlink(missing_ok=True)
        return None
    document = Corrections(schema_version=SCHEMA_VERSION, corrections=tuple(corrections))
    contract.check(document, where=str(path))
    strict_json.write(path, contract.dump(document))
    return CorrectionsFile(path=CORRECTIONS, sha256=sha256_file(path))
