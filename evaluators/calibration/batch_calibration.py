"""Batch calibration (BC): the prior is the mean distribution over all items that are evaluated, without their labels.

It assumes that the labels are about equally frequent, and its values depend on which other items are asked.

References:
    Zhou et al. 2024, arXiv:2309.17249.
"""

from __future__ import annotations

from evaluators.calibrator import Calibration, Correction, LabelAnswers, prior_ratio


class BatchCalibration(Calibration):
    """Division by the mean distribution over the items of the split *test*."""

    name = "bc"
    label = "BC"
    title = "batch calibration"
    description = "Calibrated by the mean distribution over all items of the split test, without their labels."

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        rows = answers.of_split("test")
        if not rows.any():
            return "there are no answers to items of the split test"
        return Correction(prior_ratio(answers, rows))


CALIBRATION = BatchCalibration()
