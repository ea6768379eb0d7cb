"""Reports how a model uses the labels of a part, and how often it is right in each class of a task.

arXiv:2603.15654 shows such tables of the classes (3 to 6, and 8), before and after its own correction.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.calibrator import LabelAnswers, calibrations
from evaluators.statistics.certainty import predicted_share
from evaluators.statistics.jackknife import deviations_of, interval_of
from evaluators.statistics.record_tables import mean
from evaluators.task_abilities import ClassAccuracy, ClassReport, CorrectedClasses, LabelUse, PartReport
from evaluators.tasks.labels.label_answers import BIAS, TEST
from evaluators.tasks.labels.label_measures import MEASURES
from evaluators.tasks.labels.label_tables import IN_WORDS, ConfigTable
from evaluators.tasks.labels.metric_variants import Variant

_MEASURES = ("accuracy", "gini", "cobias_paper", "top_class_dominance")
"""Measures of the tables in the paper, and the accuracy over all items, which it does not print."""


def class_report(table: ConfigTable) -> ClassReport | None:
    """Return the accuracies of the classes of one task; None if its items have labels of their own."""
    answers = table.answers
    if not answers.offered.all():
        return None
    columns = []
    named = [("", "Uncorrected", "as the model answers"), *((one.name, one.label, one.title) for one in calibrations())]
    for calibration, label, title in named:
        metrics = tuple(Variant(name, calibration).name for name in _MEASURES)
        rights = table.rights(calibration)
        if isinstance(rights, str):
            columns.append(CorrectedClasses(label, title, (), metrics, rights))
        else:
            columns.append(CorrectedClasses(label, title, tuple(_accuracies(*rights)), metrics, None))
    return ClassReport(answers.labels, tuple(columns), tuple(MEASURES[name].heading for name in _MEASURES))


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


def part_report(answers: LabelAnswers) -> PartReport:
    """Return for each label its number of items, its share of the answers, and its prior under the model.

    The prior is the mean distribution on the split *bias* with equal weight for each right label: its distance from the
    uniform distribution is BiasScore.
    """
    n_right = np.bincount(
        answers.targets[(answers.splits == TEST) & (answers.targets >= 0)], minlength=len(answers.labels)
    )
    shares = prior = None
    if (used := answers.of_split(TEST)).any():
        shares = predicted_share(answers.probabilities[used]).mean(axis=0)
    used = answers.of_split(BIAS) & (answers.targets >= 0)
    if used.any() and not answers.in_words:
        targets = answers.targets[used]
        means = [answers.probabilities[used][targets == target].mean(axis=0) for target in np.unique(targets)]
        prior = np.mean(means, axis=0)
    return PartReport(
        groups=dict(answers.groups),
        labels=tuple(
            LabelUse(
                name=name,
                n_right=int(n_right[column]),
                predicted_share=None if shares is None else float(shares[column]),
                prior=None if prior is None else float(prior[column]),
            )
            for column, name in enumerate(answers.labels)
        ),
        are_same=bool(answers.offered.all()),
        why_no_share=None if shares is not None else f"no item of split {TEST} has a reading",
        why_no_prior=None
        if prior is not None
        else IN_WORDS
        if answers.in_words
        else f"no item of split {BIAS} has a reading",
    )
