"""Reports how often a model is right in each class, before and after each correction of its probabilities.

arXiv:2603.15654 shows such tables of a task (3 to 6, and 8) for its own correction.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.calibrator import calibrations
from evaluators.statistics.jackknife import deviations_of, interval_of
from evaluators.statistics.record_tables import mean
from evaluators.task_abilities import ClassAccuracy, ClassReport, CorrectedClasses
from evaluators.tasks.labels.label_measures import MEASURES
from evaluators.tasks.labels.label_tables import ConfigTable
from evaluators.tasks.labels.metric_variants import Variant

_MEASURES = ("accuracy", "gini", "cobias_paper", "top_class_dominance")
"""Measures of the tables in the paper, and the accuracy over all items, which it does not print."""


def class_report(table: ConfigTable) -> ClassReport | None:
    """Return the accuracies of the classes of one task; None if its items have labels of their own."""
    answers = table.answers
    if not answers.offered.all():
        return None
    methods = [
        ("", "Uncorrected", "as the model answers"),
        *((one.name, one.label, one.title) for one in calibrations()),
    ]
    return ClassReport(
        labels=answers.labels,
        columns=tuple(_column(table, *method) for method in methods),
        measures=tuple(MEASURES[name].heading for name in _MEASURES),
    )


def _column(table: ConfigTable, calibration: str, label: str, title: str) -> CorrectedClasses:
    metrics = tuple(Variant(name, calibration).name for name in _MEASURES)
    rights = table.rights(calibration)
    if isinstance(rights, str):
        return CorrectedClasses(label, title, (), metrics, rights)
    return CorrectedClasses(label, title, tuple(_accuracies(*rights)), metrics, None)


def _accuracies(credits: FloatArray, of_class: FloatArray) -> Iterator[ClassAccuracy]:
    """Yield the accuracy of each class; None for a class without items.

    Args:
        credits: Credit for the right label of each item, in the column of its class, shape (n, k).
        of_class: 1 in the column of the class of each item, of the same shape; 0 in others.
    """
    for right, is_of_class in zip(credits.T, of_class.T, strict=True):
        sums = np.column_stack([right, is_of_class])[is_of_class > 0]
        if not len(sums):
            yield ClassAccuracy(0, None, None, None)
            continue
        value = float(mean(sums.sum(axis=0)))
        interval, _ = interval_of(value, deviations_of(sums, mean))
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        yield ClassAccuracy(len(sums), value, low, high)
