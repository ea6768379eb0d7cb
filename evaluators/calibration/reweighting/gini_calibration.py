"""Reweighting by class accuracies: one weight per label, so that all labels are right about equally often.

The weights are fitted on labelled items outside the test: those of the pool that the prompt does not show and no
adapter was trained on, and those of the split *bias*. They maximise the Sen welfare of the class accuracies, which is
the mean accuracy times one minus the Gini index, and never lower the mean on these items. If a class has few items, a
single number is searched for, since a search over all weights would overfit.

References:
    "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654. Its objective is the
    Gini index alone, and it has membership functions besides weights.
"""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.calibration.reweighting.fitting import FEW_ROWS, FitSettings, fit_rules
from evaluators.calibration.reweighting.problem import LEAST_CLASSES
from evaluators.calibrator import Correction, LabelAnswers, StoredCalibration
from evaluators.statistics.class_accuracies import mean_accuracy, sen_welfare
from evaluators.statistics.jackknife import ratio
from evaluators.statistics.option_scores import predicted_share


class GiniReweighting(StoredCalibration):
    """Weights of labels that make class accuracies high and even on labelled items."""

    name = "gini"
    label = "Gini"
    title = "Gini reweighting"
    description = (
        "Calibrated by one weight per label, fitted on labelled items for class accuracies that are high and even."
    )
    learns_from = frozenset({"pool", "bias"})

    def fitted_items(self, answers: LabelAnswers) -> BoolArray:
        """Return the mask of the items to fit on, shape (n,)."""
        rows = answers.unshown_pool | answers.of_split("bias")
        return rows & (answers.targets >= 0) & answers.probabilities.any(axis=1)

    def obstacle(self, answers: LabelAnswers) -> str | None:
        """Return the reason why nothing can be fitted; None if it can."""
        n_classes = len(np.unique(answers.targets[self.fitted_items(answers)]))
        if n_classes < LEAST_CLASSES:
            return f"the labelled items beside the test have {n_classes} of {len(answers.labels)} labels"
        return None

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        if (reason := self.obstacle(answers)) is not None:
            return reason
        rows = self.fitted_items(answers)
        probabilities, targets = answers.probabilities[rows], answers.targets[rows]
        supports = np.bincount(targets, minlength=len(answers.labels))
        few = int(supports[supports > 0].min()) < FEW_ROWS
        # The fit gives a tie to the first label, so labels are sorted by probability, not by name.
        order = np.argsort(-probabilities.mean(axis=0), kind="stable")
        rank_of = np.argsort(order)
        settings = FitSettings(solver="path" if few else "coordinate")
        fitted = fit_rules(probabilities[:, order], rank_of[targets], settings)
        weights = fitted.rules.weights[rank_of]
        # Metrics split the credit of a tie, so a gain in the fit may be none in them.
        before, after = (_accuracies(shares, targets) for shares in (probabilities, probabilities * weights))
        is_worse = mean_accuracy(after) < mean_accuracy(before) or sen_welfare(after) < sen_welfare(before)
        return Correction(1.0 / (np.ones_like(weights) if is_worse else weights)[None, :])


def _accuracies(values: FloatArray, targets: IntArray) -> FloatArray:
    """Return the accuracy of each label if the largest value wins and ties are split; nan for labels without items."""
    credits = predicted_share(values / values.sum(axis=1, keepdims=True))[np.arange(len(values)), targets]
    n = values.shape[1]
    supports = np.bincount(targets, minlength=n).astype(np.float64)
    return ratio(np.bincount(targets, credits, minlength=n).astype(np.float64), supports)


CALIBRATION = GiniReweighting()
