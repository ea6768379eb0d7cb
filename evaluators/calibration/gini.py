"""Reweighting by class accuracies: one weight per label, so that all labels are right about equally often.

The weights are fitted on the labelled items beside the test: those of the pool that the prompt does not show and no
adapter was trained on, and those of the split *bias*. They make the Sen welfare of the class accuracies large, which
is the mean accuracy times one minus the Gini index, and never lower their mean on these items. Where a class has few
items, the search is over a single number, since a search over all weights would overfit.

References:
    "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654, whose objective is the
    Gini index alone, with membership functions beside the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluators.calibrator import BoolArray, Correction, LabelAnswers
from evaluators.reweighting.fitting import FEW_ROWS, Settings, fit_rules


@dataclass(frozen=True)
class GiniReweighting:
    """Weights of labels under which class accuracies are high and even on labelled items."""

    name: str = "gini"
    version: str = "1.0"
    label: str = "Gini"
    title: str = "Gini reweighting"
    description: str = (
        "Calibrated by one weight per label, fitted on labelled items for class accuracies that are high and even."
    )
    is_of_paper: bool = False
    is_stored: bool = True
    learns_from: frozenset[str] = frozenset({"pool", "bias"})

    def fitted_items(self, answers: LabelAnswers) -> BoolArray:
        """Return the mask of the items that it is fitted on, shape (n,)."""
        rows = answers.unshown_pool | answers.of_split("bias")
        return rows & (answers.targets >= 0) & answers.probabilities.any(axis=1)

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        rows = self.fitted_items(answers)
        targets = answers.targets[rows]
        supports = np.bincount(targets, minlength=len(answers.labels))
        n_classes = int((supports > 0).sum())
        if n_classes < 2:
            return f"the labelled items beside the test have {n_classes} of {len(supports)} labels"
        few = int(supports[supports > 0].min()) < FEW_ROWS
        probabilities = answers.probabilities[rows]
        # The fit gives a tie to the first label. Sorted by their probabilities, labels may have any names.
        order = np.argsort(-probabilities.mean(axis=0), kind="stable")
        place_of = np.argsort(order)
        settings = Settings(solver="path" if few else "coordinate")
        fitted = fit_rules(probabilities[:, order], place_of[targets], settings)
        return Correction(1.0 / fitted.rules.weights[place_of][None, :])


CALIBRATION = GiniReweighting()
