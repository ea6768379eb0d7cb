"""Domain-context calibration (DC): the prior is read from inputs of random words of the task.

References:
    Fei et al. 2023, arXiv:2305.19148; in the form of Reif & Schwartz 2024, arXiv:2405.02743: the mean of distributions
    that each sum to 1.
"""

from __future__ import annotations

from evaluators.calibrator import Calibration, Correction, LabelAnswers, prior_ratio


class DomainContextCalibration(Calibration):
    """Division by the mean distribution over inputs of random words."""

    name = "dc"
    label = "DC"
    title = "domain-context calibration"
    description = "Calibrated by the mean distribution over inputs of random words of the task's own inputs."
    is_of_paper = True

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        rows = answers.has_reading & (answers.content_free == "random_words")
        if not rows.any():
            return "there are no answers to inputs of random words"
        return Correction(prior_ratio(answers, rows))


CALIBRATION = DomainContextCalibration()
