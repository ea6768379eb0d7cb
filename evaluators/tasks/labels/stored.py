"""Takes over stored corrections of distributions over labels, or fits them if there are none."""

from __future__ import annotations

import numpy as np

from biasboard.ground.errors import DataError
from evaluators.calibrator import Correction, LabelAnswers, StoredCalibration
from evaluators.metric import MetricInputs
from schemas.documents.corrections import FittedCorrection

_NOT_STORED = "no correction is stored beside the records; rescore the run"


def stored_correction(
    calibration: StoredCalibration, answers: LabelAnswers, inputs: MetricInputs
) -> tuple[Correction | str, FittedCorrection | None]:
    """Return the correction of one task, or the reason why there is none, and what is stored of it.

    Args:
        calibration: A calibration whose correction is stored.
        answers: The answers to the task.
        inputs: Corrections that were fitted before; one of another version of the calibration is not used.

    Raises:
        DataError: the stored correction is for other labels or items, or it is missing while others are stored.
    """
    key = (answers.config, calibration.name, calibration.version)
    correction = next((stored for stored in inputs.corrections if _key(stored) == key), None)
    if correction is None:
        if not inputs.may_fit:
            if inputs.corrections:
                raise DataError(
                    f"no correction {calibration.name} {calibration.version} of config {answers.config} is stored, "
                    "though others are; rescore the run"
                )
            return _NOT_STORED, None
        correction = fitted_correction(calibration, answers)
    else:
        _check(correction, calibration, answers)
    if correction.reason is not None:
        return correction.reason, correction
    # Fitted weights take the same way as stored ones, so that both give the same numbers.
    return Correction(1.0 / np.array(correction.weights)[None, :]), correction


def fitted_correction(calibration: StoredCalibration, answers: LabelAnswers) -> FittedCorrection:
    """Fit the correction of one task, as it is stored.

    Args:
        calibration: A calibration whose correction is stored.
        answers: The answers to the task.
    """
    fitted = calibration.fit(answers)
    return FittedCorrection(
        config=answers.config,
        calibration=calibration.name,
        version=calibration.version,
        n_items=int(calibration.fitted_items(answers).sum()),
        labels=() if isinstance(fitted, str) else answers.labels,
        weights=() if isinstance(fitted, str) else tuple((1.0 / fitted.ratios[0]).tolist()),
        reason=fitted if isinstance(fitted, str) else None,
    )


def _check(correction: FittedCorrection, calibration: StoredCalibration, answers: LabelAnswers) -> None:
    """Check everything about a stored correction that does not depend on how a processor rounds."""
    name = f"the stored correction {correction.calibration} of config {correction.config}"
    n_items, reason = int(calibration.fitted_items(answers).sum()), calibration.obstacle(answers)
    if correction.n_items != n_items:
        raise DataError(
            f"{name} says that it is fitted on {correction.n_items} items, and there are {n_items}; rescore it"
        )
    if correction.reason != reason:
        present = "weights can be fitted" if reason is None else reason
        raise DataError(f"{name} has the reason {correction.reason!r}, and {present}; run the model again")
    if reason is None and correction.labels != answers.labels:
        raise DataError(
            f"{name} is for labels {_shown(correction.labels)}, and the items offer {_shown(answers.labels)}; rescore "
            "the run"
        )


def _key(correction: FittedCorrection) -> tuple[str, str, str]:
    return correction.config, correction.calibration, correction.version


def _shown(labels: tuple[str, ...]) -> str:
    return ", ".join(labels)[:80]
