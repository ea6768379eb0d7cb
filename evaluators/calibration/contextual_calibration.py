"""Contextual calibration (CC): the prior is read from placeholders such as ``N/A``.

References:
    Zhao et al. 2021, arXiv:2102.09690; in the form of Reif & Schwartz 2024, arXiv:2405.02743, with the placeholder in
    place of the whole input.
"""

from __future__ import annotations

from evaluators.calibrator import Calibration, Correction, LabelAnswers, prior_ratio


class ContextualCalibration(Calibration):
    """Division by the mean distribution over placeholders."""

    name = "cc"
    label = "CC"
    title = "contextual calibration"
    description = "Calibrated by the mean distribution over inputs without content: N/A, [MASK] and an empty one."
    is_of_paper = True

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        rows = answers.has_reading & (answers.content_free == "placeholder")
        if not rows.any():
            return "there are no answers to placeholders"
        return Correction(prior_ratio(answers, rows))


CALIBRATION = ContextualCalibration()
