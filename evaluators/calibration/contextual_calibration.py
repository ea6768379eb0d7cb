"""Contextual calibration (CC): the prior is read from placeholders such as ``N/A``.

References:
    Zhao et al. 2021, arXiv:2102.09690; in the form of Reif & Schwartz 2024, arXiv:2405.02743, with the placeholder in
    place of the whole input.
"""

from __future__ import annotations

from evaluators.calibrator import ContentFreeCalibration


class ContextualCalibration(ContentFreeCalibration):
    """Division by the mean distribution over placeholders."""

    name = "cc"
    label = "CC"
    title = "contextual calibration"
    description = "Calibrated by the mean distribution over inputs without content: N/A, [MASK] and an empty one."
    is_of_paper = True
    no_items = "there are no answers to placeholders"
    content_free = "placeholder"


CALIBRATION = ContextualCalibration()
