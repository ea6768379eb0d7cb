"""Domain-context calibration (DC): the prior is read from inputs of random words of the task.

References:
    Fei et al. 2023, arXiv:2305.19148; in the form of Reif & Schwartz 2024, arXiv:2405.02743: the mean of distributions
    that each sum to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluators.calibrator import Correction, LabelAnswers, prior_ratio


@dataclass(frozen=True)
class DomainContextCalibration:
    """Division by the mean distribution over inputs of random words."""

    name: str = "dc"
    version: str = "1.0"
    label: str = "DC"
    title: str = "domain-context calibration"
    description: str = "Calibrated by the mean distribution over inputs of random words of the task's own inputs."
    is_of_paper: bool = True
    is_stored: bool = False
    learns_from: frozenset[str] = frozenset()

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        rows = answers.has_reading & (answers.content_free == "random_words")
        if not rows.any():
            return "there are no answers to inputs of random words"
        return Correction(prior_ratio(answers, rows))


CALIBRATION = DomainContextCalibration()
