"""The tables of tasks that read distributions over labels: of the items of one task, and of the tasks of a suite.

Both give each measure under the names of its variants: the model's own distributions, and those of each calibration.
On one task a measure is computed from sums over its items, each of which is left out in turn. On a suite it is the mean
over the tasks that have a value, and each task is left out in turn.

A correction that a calibration stores is taken over from the run, and fitted only if there is none.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.errors import DataError
from evaluators.calibrator import Correction, LabelAnswers, StoredCalibration, calibrations
from evaluators.metric import NO_INPUTS, MetricInputs
from evaluators.statistics.evenness import deal
from evaluators.statistics.jackknife import deviations_of, interval_of
from evaluators.statistics.option_scores import predicted_share
from evaluators.statistics.record_tables import MeasureTable, Statistics, mean
from evaluators.task import ClassAccuracy
from evaluators.tasks.labels.label_answers import BALANCE, BIAS, ENGLISH_WORDS, OF_TASK, RANDOM_WORDS, TEST
from evaluators.tasks.labels.label_measures import (
    N_CLASS,
    ClassSums,
    FoldSums,
    PriorSums,
    WordSums,
    class_columns,
    fold_columns,
    prior_columns,
    value_of,
    word_columns,
)
from evaluators.tasks.labels.metric_variants import Variant, variants
from schemas.documents.run_files import FittedCorrection

IN_WORDS = "the answers are words, and it is of probabilities"
"""Reason why there is no value for a model whose answers name a label."""
_MOST_CROSSED = 64
"""Maximum number of labels for sums by pair of labels to fit into memory: 64 labels have 20,480 columns per item."""

_Key: TypeAlias = tuple[type | None, bool, str, bool]
"""What determines the columns of a variant: the kind of sums, True for answers without their probabilities, the
calibration, and True for its softmax."""


def _key(variant: Variant) -> _Key:
    return variant.kind.sums, variant.kind.of_answers, variant.calibration, variant.is_softmax


@dataclass(frozen=True, eq=False)
class ConfigTable:
    """The answers to one task in one context; each item is a cluster."""

    answers: LabelAnswers
    reasons: Mapping[str, str]
    """Reason why there is no calibration, by its name."""
    probabilities: Mapping[tuple[str, bool], FloatArray]
    """Distributions by name of the calibration (empty for the model's own), and True for the softmax of the paper."""
    corrections: tuple[FittedCorrection, ...] = ()
    """Corrections that are stored."""
    _rows_of_measures: dict[_Key, tuple[BoolArray, BoolArray, FloatArray]] = field(default_factory=dict)
    _sums_of_measures: dict[_Key, FloatArray] = field(default_factory=dict)
    crossing: ClassVar[None] = None
    sizes: ClassVar[None] = None

    @classmethod
    def of(cls, answers: LabelAnswers, names: Container[str] | None = None, inputs: MetricInputs = NO_INPUTS) -> Self:
        """Fit calibrations and apply them.

        Args:
            answers: The answers.
            names: Names of the variants that are needed; None for all.
            inputs: Corrections that were fitted before.

        Raises:
            DataError: a stored correction is for other labels.
        """
        reasons, probabilities = {}, {("", False): answers.probabilities}
        stored = []
        used = {variant.calibration for variant in variants() if names is None or variant.name in names}
        for calibration in calibrations():
            if calibration.name not in used:
                continue
            fitted: Correction | str
            if answers.in_words:
                fitted = IN_WORDS
            elif isinstance(calibration, StoredCalibration):
                fitted, correction = stored_correction(calibration, answers, inputs)
                stored += [] if correction is None else [correction]
            else:
                fitted = calibration.fit(answers)
            if isinstance(fitted, str):
                reasons[calibration.name] = fitted
                continue
            probabilities[calibration.name, False] = fitted.apply(answers)
            if calibration.is_of_paper:
                probabilities[calibration.name, True] = fitted.apply_as_in_paper(answers)
        return cls(answers, reasons, probabilities, tuple(stored))

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return nothing: a single task is not sliced."""
        return ()

    def undefined(self, variant: Variant) -> str | None:
        """Return why a variant has no value on a single task; None if it may have one."""
        if self.answers.in_words and variant.reads_probabilities:
            return IN_WORDS
        if variant.kind.sums is PriorSums and len(self.answers.labels) > _MOST_CROSSED:
            return f"it compares each label with each other one, for at most {_MOST_CROSSED} labels"
        if variant.kind.correlates:
            return "it correlates measures over tasks, and this is a single one"
        return self.reasons.get(variant.calibration)

    def statistics(self, variant: Variant, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a variant: the columns of the measure, one row per item."""
        if variant.kind.sums is None:
            return self._mean(variant.measure)
        asked, used, columns = self._rows(variant)
        if variant.measure == "accuracy":
            # Two columns, as for any mean over items: gates, which count missing answers as wrong, need that form.
            k = columns.shape[1] // N_CLASS
            columns = np.column_stack([columns[:, :k].sum(axis=1), columns[:, k : 2 * k].sum(axis=1)])
        n_used = int(used.sum())
        return Statistics(columns, n_used, int(asked.sum()) - n_used)

    def values(self, wanted: Iterable[Variant]) -> dict[str, float]:
        """Return the value of each variant by its name; nan for one that has none."""
        values = {variant.name: np.nan for variant in wanted}
        of_measures: dict[str, list[Variant]] = {}
        for variant in wanted:
            if self.undefined(variant) is not None:
                continue
            if variant.kind.sums is FoldSums:
                # Its cubes round differently in an array.
                values[variant.name] = float(value_of(variant.measure, self._sums(variant)))
            else:
                of_measures.setdefault(variant.measure, []).append(variant)
        # A formula takes as long for the sums of all calibrations as for those of one.
        for measure, alike in of_measures.items():
            sums = np.stack([self._sums(variant) for variant in alike])
            values |= zip((variant.name for variant in alike), value_of(measure, sums).tolist(), strict=True)
        return values

    def class_accuracies(self, calibration: str) -> tuple[ClassAccuracy, ...] | str:
        """Return the accuracy of each class, or the reason why there is no such calibration.

        Args:
            calibration: Its name; empty for the model's own distributions.
        """
        variant = Variant("accuracy", calibration)
        if (reason := self.undefined(variant)) is not None:
            return reason
        _, used, columns = self._rows(variant)
        accuracies = []
        of_fields = columns[used].reshape(-1, N_CLASS, len(self.answers.labels))
        # Of each class, the credit for it and 1 on its own items, and 0 on all others, shape (n, 2).
        for sums in of_fields[:, :2].transpose(2, 0, 1):
            of_items = sums[sums[:, 1] > 0]
            if not len(of_items):
                accuracies.append(ClassAccuracy(0, None, None, None))
                continue
            value = float(mean(of_items.sum(axis=0)))
            interval, _ = interval_of(value, deviations_of(of_items, mean))
            low, high = (None, None) if interval is None else (interval.low, interval.high)
            accuracies.append(ClassAccuracy(len(of_items), value, low, high))
        return tuple(accuracies)

    def _sums(self, variant: Variant) -> FloatArray:
        if variant.kind.sums is None:
            return np.asarray(self._mean(variant.measure).cluster_sums.sum(axis=0))
        key = _key(variant)
        if key not in self._sums_of_measures:
            _, used, columns = self._rows(variant)
            self._sums_of_measures[key] = columns[used].sum(axis=0)
        return self._sums_of_measures[key]

    def _rows(self, variant: Variant) -> tuple[BoolArray, BoolArray, FloatArray]:
        """Return the items of a variant.

        Returns:
            The masks of the items that it is about, and of those among them that it is computed from, and the columns
            of the measure, one row per item; zeros for items that it is not computed from.
        """
        key = kind, of_answers, *_ = _key(variant)
        if key in self._rows_of_measures:
            return self._rows_of_measures[key]
        answers, of_all = self.answers, self.probabilities[variant.calibration, variant.is_softmax]
        if kind is WordSums:
            asked: BoolArray = np.isin(answers.content_free, (ENGLISH_WORDS, RANDOM_WORDS))
            used = asked & ~np.isnan(of_all[:, 0])
        else:
            asked = answers.splits == (BIAS if kind is PriorSums else TEST)
            used = asked & ~np.isnan(of_all[:, 0]) & (answers.targets >= 0)
        shares, targets = of_all[used], answers.targets[used]
        if kind is ClassSums:
            found = class_columns(shares, targets)
        elif kind is FoldSums:
            found = fold_columns(shares, targets, self._folds[used])
        elif kind is WordSums:
            found = word_columns(shares, answers.content_free[used] == RANDOM_WORDS)
        else:
            found = prior_columns(predicted_share(shares) if of_answers else shares, targets, answers.evenly[used])
        # Measures of the same sums share one array: the metrics of 16,006 answers with 100 labels then need 0.7 GB in
        # all.
        columns = np.zeros((len(used), math.prod(found.shape[1:])))
        columns[used] = found.reshape(len(shares), columns.shape[1])
        self._rows_of_measures[key] = asked, used, columns
        return asked, used, columns

    @cached_property
    def _folds(self) -> IntArray:
        # By class, so that a class with few items has them in several folds; of all items, so that two models have the
        # same folds, whichever of their answers could be read.
        return deal(self.answers.targets * 2 + (self.answers.splits == TEST))

    def _mean(self, measure: str) -> Statistics:
        used = (self.answers.splits == TEST) & (self.answers.n_shown >= 0)
        values = self.answers.n_shown if measure == "n_shown" else self.answers.is_cut
        sums = np.column_stack([np.where(used, values, 0.0), used.astype(np.float64)])
        return Statistics(sums, int(used.sum()), 0)


@dataclass(frozen=True, eq=False)
class SuiteTable:
    """The measures of each task of a suite; each task is a cluster."""

    measures: MeasureTable
    reasons: Mapping[str, str]
    """Reason why no task has a calibration, by its name."""
    corrections: tuple[FittedCorrection, ...] = ()
    """Corrections that are stored, of all tasks."""
    in_words: bool = False
    """True if the answers to some task are words."""
    crossing: ClassVar[None] = None
    sizes: ClassVar[None] = None

    @classmethod
    def of(
        cls, parts: Iterable[LabelAnswers], names: Container[str] | None = None, inputs: MetricInputs = NO_INPUTS
    ) -> Self:
        """Measure each task of a suite, one after the other.

        Args:
            parts: The answers to each task.
            names: Names of the variants that are needed; None for all. A correlation needs both of its measures.
            inputs: Corrections that were fitted before.

        Raises:
            DataError: a stored correction is for other labels.
        """
        named = [variant for variant in variants() if names is None or variant.name in names]
        measures = {name for variant in named for name in variant.kind.correlates}
        wanted = [variant for variant in variants() if variant in named or variant.name in measures]
        measured = {variant.name for variant in wanted}
        values: list[Mapping[str, float]] = []
        groups: list[Mapping[str, str]] = []
        reasons: list[Mapping[str, str]] = []
        corrections: list[FittedCorrection] = []
        in_words = False
        # Only the values of each task are kept, since the records of a whole suite may not fit into memory.
        for answers in parts:
            table = ConfigTable.of(answers, measured, inputs)
            corrections += table.corrections
            in_words |= answers.in_words
            values.append(table.values(wanted))
            facts = {name: answers.groups.get(name, "") for name in (*OF_TASK, BALANCE)}
            groups.append({**facts, "n_labels": n_labels_group(len(answers.labels))})
            reasons.append(table.reasons)
        everywhere = {name: why for name, why in reasons[0].items() if all(name in of_task for of_task in reasons)}
        table_of_means = MeasureTable.of(
            {name: np.array([of_task[name] for of_task in values]) for name in values[0]},
            {name: np.array([of_task[name] for of_task in groups], dtype=np.str_) for name in groups[0]},
        )
        return cls(table_of_means, everywhere, tuple(corrections), in_words)

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the values of a group of tasks that occur, sorted."""
        return self.measures.group_values(key)

    def undefined(self, variant: Variant) -> str | None:
        """Return why a variant has no value on any task; None if it may have one."""
        if self.in_words and variant.reads_probabilities:
            return IN_WORDS
        return self.reasons.get(variant.calibration)

    def statistics(self, variant: Variant, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of the mean over the tasks of a slice that have a value, or of a correlation."""
        if not variant.kind.correlates:
            return self.measures.mean_of(variant.name, group)
        x, y = (self.measures.values[name] for name in variant.kind.correlates)
        rows = self.measures.rows(group)
        used = rows & ~np.isnan(x) & ~np.isnan(y)
        columns = np.column_stack([np.ones_like(x), x, y, x**2, y**2, x * y])
        return Statistics(np.where(used[:, None], columns, 0.0), int(used.sum()), int(rows.sum() - used.sum()))


def n_labels_group(n_labels: int) -> str:
    """Return the group of tasks by their number of labels, as in table 3 of the paper."""
    return str(n_labels) if n_labels <= 5 else "6 to 9" if n_labels <= 9 else "10 or more"


def corrections_of(answers: LabelAnswers, inputs: MetricInputs) -> list[FittedCorrection]:
    """Return the corrections of one task that a run stores."""
    stored = [] if answers.in_words else [one for one in calibrations() if isinstance(one, StoredCalibration)]
    corrections = (stored_correction(calibration, answers, inputs)[1] for calibration in stored)
    return [correction for correction in corrections if correction is not None]


def stored_correction(
    calibration: StoredCalibration, answers: LabelAnswers, inputs: MetricInputs
) -> tuple[Correction | str, FittedCorrection | None]:
    """Return the correction of one task, or the reason why there is none, and its stored form.

    Args:
        calibration: A calibration whose correction is stored.
        answers: The answers to the task.
        inputs: Corrections that were fitted before; one of another version of the calibration is not used.

    Raises:
        DataError: the stored correction is for other labels or items, or it is missing while others are stored.
    """
    key = (answers.config, calibration.name, calibration.version)
    correction = next(
        (stored for stored in inputs.corrections if (stored.config, stored.calibration, stored.version) == key), None
    )
    if correction is None:
        if not inputs.may_fit:
            if inputs.corrections:
                raise DataError(
                    f"no correction {calibration.name} {calibration.version} of config {answers.config} is stored, "
                    "though others are; rescore the run"
                )
            return "no correction is stored beside the records; rescore the run", None
        fitted = calibration.fit(answers)
        correction = FittedCorrection(
            config=answers.config,
            calibration=calibration.name,
            version=calibration.version,
            n_items=int(calibration.fitted_items(answers).sum()),
            labels=() if isinstance(fitted, str) else answers.labels,
            weights=() if isinstance(fitted, str) else tuple((1.0 / fitted.ratios[0]).tolist()),
            reason=fitted if isinstance(fitted, str) else None,
        )
    else:
        _check(correction, calibration, answers)
    if correction.reason is not None:
        return correction.reason, correction
    # Fitted weights go through the stored form too, so that both give the same numbers.
    return Correction(1.0 / np.array(correction.weights)[None, :]), correction


def _check(correction: FittedCorrection, calibration: StoredCalibration, answers: LabelAnswers) -> None:
    """Check everything about a stored correction that does not depend on a processor's rounding.

    The weights do depend on it: a fit that compares predictions can end elsewhere on another processor.
    """
    name = f"the stored correction {correction.calibration} of config {correction.config}"
    n_items, reason = int(calibration.fitted_items(answers).sum()), calibration.obstacle(answers)
    if correction.n_items != n_items:
        raise DataError(
            f"{name} says that it is fitted on {correction.n_items} items, and there are {n_items}; rescore it"
        )
    if correction.reason != reason:
        present = "weights can be fitted" if reason is None else reason
        raise DataError(f"{name} has the reason {correction.reason!r}, and {present}; run the model again")
    if reason is None and correction.labels != answers.labels:
        raise DataError(
            f"{name} is for labels {', '.join(correction.labels)[:80]}, and the items offer "
            f"{', '.join(answers.labels)[:80]}; rescore the run"
        )
