"""Batch calibration with a learned strength (BCL), fitted on the items of the pool that the prompt does not show.

References:
    Zhou et al. 2024, arXiv:2309.17249: ``log q = log p - strength · log prior``, with the strength that has the best
    accuracy on labelled items, from a grid.
"""

from __future__ import annotations

import numpy as np

from evaluators.calibrator import Calibration, Correction, LabelAnswers, prior_ratio
from evaluators.statistics.option_scores import predicted_share

STRENGTHS = np.linspace(-5.0, 5.0, 101)
_SAME = 1e-9


class FittedBatchCalibration(Calibration):
    """Division by a power of the mean distribution over the pool, with the most accurate exponent there."""

    name = "bcl"
    label = "BCL"
    title = "batch calibration fitted on the pool"
    description = "Calibrated by that power of the mean distribution over the pool that is right most often there."
    learns_from = frozenset({"pool"})

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none; of equally good exponents, the one nearest to 1."""
        rows = answers.unshown_pool
        if not rows.any():
            return "there are no answers to items of the pool that the prompt does not show"
        ratio = prior_ratio(answers, rows)
        targets = answers.targets[rows]
        credits = []
        for strength in STRENGTHS:
            share = predicted_share(Correction(ratio, float(strength)).apply(answers)[rows])
            credits.append(share[np.arange(len(targets)), targets].sum())
        best = np.flatnonzero(np.array(credits) >= max(credits) - _SAME)
        # Exponent 1 is plain batch calibration.
        nearest = best[np.argmin(np.abs(STRENGTHS[best] - 1.0))]
        return Correction(ratio, float(STRENGTHS[nearest]))


CALIBRATION = FittedBatchCalibration()
