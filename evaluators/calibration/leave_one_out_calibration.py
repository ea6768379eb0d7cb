"""Leave-one-out calibration (LOOC): the prior is read from the examples, each asked with the others in its prompt.

References:
    Reif & Schwartz 2024, arXiv:2405.02743. The mean is over the labels that occur among the examples. If an item's
    prompt has room for only j of the k examples, its prior is that of the first j.
"""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.calibrator import Calibration, Correction, LabelAnswers, prior_ratio


class LeaveOneOutCalibration(Calibration):
    """Division by the mean distribution over the examples of the prompt, each label with the same weight."""

    name = "looc"
    label = "LOOC"
    title = "leave-one-out calibration"
    description = "Calibrated by the distributions over the examples, each asked with the others in its prompt."
    is_of_paper = True
    learns_from = frozenset({"pool"})
    needs_examples = True

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        most = max(int(answers.n_shown.max()), int(answers.positions.max()) + 1)
        if most == 0:
            return "the prompt shows no examples"
        if not answers.shown.any():
            return "there are no answers to the examples of the prompt"
        is_evaluated = np.isin(answers.splits, ("test", "bias"))
        # Prompts that were cut may have lost all examples. Only 0 means that: an unknown number is -1.
        if is_evaluated.any() and not answers.n_shown[is_evaluated].any():
            return "no example fits into the prompt of any item that is evaluated"
        return Correction(np.vstack([self._ratio(answers, n_shown) for n_shown in range(most + 1)]))

    def _ratio(self, answers: LabelAnswers, n_shown: int) -> FloatArray:
        """Return the prior of the first examples divided by their uniform distributions, shape (1, k); nan if none."""
        rows = answers.shown & (answers.positions < n_shown)
        if not rows.any():
            return np.full((1, len(answers.labels)), np.nan)
        targets = answers.targets[rows]
        counts = np.bincount(targets, minlength=len(answers.labels))
        weights = 1 / (counts[targets] * np.count_nonzero(counts))
        return prior_ratio(answers, rows, weights)


CALIBRATION = LeaveOneOutCalibration()
