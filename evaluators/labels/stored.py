"""Takes over stored corrections of distributions over labels, or fits them if there are none."""

from __future__ import annotations

import numpy as np

from evaluators.calibrator import Correction, LabelAnswers, StoredCalibration
from evaluators.corrected_task import Beside
from schemas.corrections import FittedCorrection
from schemas.errors import DataError

_NOT_STORED = "no correction is stored beside the records; rescore the run"


def stored_correction(
    calibration: StoredCalibration, answers: LabelAnswers, beside: Beside
) -> tuple[Correction | str, FittedCorrection | None]:
    """Return the correction of one task, or the reason why there is none, and what is stored of it.

    Args:
        calibration: A calibration whose correction is stored.
        answers: The answers to the task.
        beside: Corrections that were fitted before; one of another version of the calibration is not used.

    Raises:
        DataError: the stored correction is for other labels.
    """
    told = next((one for one in beside.corrections if _is_same(one, calibration, answers)), None)
    if told is None:
        if not beside.may_fit:
            return _NOT_STORED, None
        told = fitted_correction(calibration, answers)
    if told.reason is not None:
        return told.reason, told
    if told.labels != answers.labels:
        raise DataError(
            f"the stored correction {told.calibration} of config {told.config} is for labels {_shown(told.labels)}, "
            f"and the items offer {_shown(answers.labels)}; rescore the run"
        )
    # Fitted weights take the same way as stored ones, so that both give the same numbers.
    return Correction(1.0 / np.array(told.weights)[None, :]), told


def fitted_correction(calibration: StoredCalibration, answers: LabelAnswers) -> FittedCorrection:
    """Fit the correction of one task, as it is stored.

    Args:
        calibration: A calibration whose correction is stored.
        answers: The answers to the task.
    """
    found = calibration.fit(answers)
    return FittedCorrection(
        config=answers.config,
        calibration=calibration.name,
        version=calibration.version,
        n_items=int(calibration.fitted_items(answers).sum()),
        labels=() if isinstance(found, str) else answers.labels,
        weights=() if isinstance(found, str) else tuple((1.0 / found.ratios[0]).tolist()),
        reason=found if isinstance(found, str) else None,
    )


def _is_same(one: FittedCorrection, calibration: StoredCalibration, answers: LabelAnswers) -> bool:
    return (one.config, one.calibration, one.version) == (answers.config, calibration.name, calibration.version)


def _shown(labels: tuple[str, ...]) -> str:
    return ", ".join(labels)[:80]
