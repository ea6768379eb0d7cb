"""Names of the measures of labels and of their calibrations for readers of tables."""

from __future__ import annotations

from evaluators.calibrator import calibrations
from evaluators.tasks.labels.table import variants

HEADINGS = {
    "accuracy": "Accuracy",
    "macro_f1": "Macro-F1",
    "rsd": "RSD",
    "rsd_release": "RSD, release",
    "cobias": "COBias",
    "gini": "Gini index",
    "top_class_dominance": "Dominance of the top class",
    "smallest_class_accuracy": "Smallest class accuracy",
    "bias_score": "BiasScore",
    "bias_score_normalised": "BiasScore over its range",
    "rsd_floor": "RSD by chance",
    "cobias_floor": "COBias by chance",
    "gini_floor": "Gini index by chance",
    "bias_score_floor": "BiasScore by chance",
    "f1_rsd_correlation": "Correlation of F1 and RSD",
    "f1_bias_score_correlation": "Correlation of F1 and BiasScore",
    "n_shown": "Examples shown",
    "cut_rate": "Cut inputs",
}
"""Heading of each measure."""
METHODS = {one.name: one.label for one in calibrations()}
"""Heading of each calibration."""


def metric_headings() -> dict[str, str]:
    """Return the heading of each metric of labels, by its name."""
    return {
        one.name: ", ".join(
            filter(
                None,
                (HEADINGS[one.measure], METHODS.get(one.calibration), "softmax" if one.is_softmax else None),
            )
        )
        for one in variants()
    }
