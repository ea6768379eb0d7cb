"""Batch calibration (BC): the prior is the mean distribution over all evaluated items; it uses no right labels.

It assumes that labels are about equally frequent, and its values depend on which other items are asked.

References:
    Zhou et al. 2024, arXiv:2309.17249.
"""

from __future__ import annotations

from biasboard.ground.columns import BoolArray
from evaluators.calibrator import LabelAnswers, PriorCalibration


class BatchCalibration(PriorCalibration):
    """Division by the mean distribution over the items of the split *test*."""

    name = "bc"
    label = "BC"
    title = "batch calibration"
    description = "Calibrated by the mean distribution over all items of the split test, without their labels."
    no_items = "there are no answers to items of the split test"

    def rows(self, answers: LabelAnswers) -> BoolArray:
        """Return the mask of these items, each with a distribution, shape (n,)."""
        return answers.of_split("test")


CALIBRATION = BatchCalibration()
