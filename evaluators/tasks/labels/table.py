"""The tables of tasks that read distributions over labels: of the items of one task, and of the tasks of a suite.

Both give each measure under the names of its variants: the model's own distributions, and those of each calibration.
On one task a measure is computed from sums over its items, which are resampled. On a suite it is the mean over the
tasks that have a value, and the tasks are resampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.calibrator import Calibration, Correction, LabelAnswers, StoredCalibration, calibrations
from evaluators.metric import NO_INPUTS, MetricInputs, RecordTable
from evaluators.statistics.measure_table import MeasureTable
from evaluators.statistics.outcomes import predicted_share
from evaluators.statistics.record_tables import Statistics, mean
from evaluators.tasks.labels.answers import BALANCE
from evaluators.tasks.labels.measures import (
    CLASS_FLOORS,
    CLASS_MEASURES,
    CORRELATIONS,
    PRIOR_FLOORS,
    PRIOR_MEASURES,
    ClassSums,
    PriorSums,
    correlation,
)
from evaluators.tasks.labels.stored import stored_correction
from schemas.documents.corrections import FittedCorrection

SOFTMAX = "softmax"
_CLASS = {**CLASS_MEASURES, **CLASS_FLOORS}
_PRIOR = {**PRIOR_MEASURES, **PRIOR_FLOORS}
_OF_TASK = ("category", "equivalent_labels", BALANCE)
"""Groups of a task that slices are made by, beside its number of labels."""
_ONE_TASK = "it correlates measures over tasks, and this is a single one"
_MEANS = ("n_shown", "cut_rate")
_TEST, _BIAS = "test", "bias"
"""Splits that performance and prior are measured on."""
_MOST_CROSSED = 64
"""Number of labels up to which sums by right label and label fit into memory: 64 have 20,480 columns per item."""
_N_CLASS, _N_PRIOR = len(ClassSums._fields), len(PriorSums._fields)


class Variant(NamedTuple):
    """A measure of the distributions of a model, or of their calibration."""

    measure: str
    calibration: str = ""
    """Name of the calibration; empty for the model's own distributions."""
    is_softmax: bool = False
    """True for the softmax that the paper writes."""

    @property
    def is_floor(self) -> bool:
        """True if it says what chance alone would give."""
        return self.measure in CLASS_FLOORS or self.measure in PRIOR_FLOORS

    @property
    def name(self) -> str:
        """The name of its metric."""
        parts = (self.measure, self.calibration, SOFTMAX if self.is_softmax else "")
        return "_".join(part for part in parts if part)


def variants() -> tuple[Variant, ...]:
    """Return all measures of all distributions, the model's own ones first."""
    measures = (*CLASS_MEASURES, *PRIOR_MEASURES)
    own = [Variant(name) for name in (*measures, *CLASS_FLOORS, *PRIOR_FLOORS, *CORRELATIONS, *_MEANS)]
    calibrated = [Variant(name, one.name) for one in calibrations() for name in calibrated_measures(one)]
    # The softmax has the same most probable label, so that only BiasScore differs.
    softmax = [Variant("bias_score", one.name, is_softmax=True) for one in calibrations() if one.is_of_paper]
    return (*own, *calibrated, *softmax)


def calibrated_measures(calibration: Calibration) -> tuple[str, ...]:
    """Return the measures that a calibration is judged by: those on items whose labels it does not learn from."""
    of_prior = () if _BIAS in calibration.learns_from else PRIOR_MEASURES
    return (*CLASS_MEASURES, *of_prior)


class LabelTable(RecordTable, Protocol):
    """A table that gives the statistics of each variant of a measure."""

    def statistics(self, variant: Variant, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a variant on a slice."""

    def undefined(self, variant: Variant) -> str | None:
        """Return why a variant has no value; None if it may have one."""


def aggregate(variant: Variant) -> Callable[[FloatArray], FloatArray]:
    """Return the function from sums to values: the mean of two columns, or the measure of more."""

    def value(sums: FloatArray) -> FloatArray:
        if variant.measure in CORRELATIONS:
            return correlation(sums)
        if sums.shape[-1] == 2:
            return mean(sums)
        return _value(variant.measure, sums)

    return value


def _value(measure: str, sums: FloatArray) -> FloatArray:
    """Return a measure from its columns."""
    if measure in _CLASS:
        return _CLASS[measure](ClassSums(*np.moveaxis(_split(sums, _N_CLASS), -2, 0)))
    k = round((sums.shape[-1] / _N_PRIOR) ** 0.5)
    blocks = _split(sums, _N_PRIOR)
    return _PRIOR[measure](PriorSums(*np.moveaxis(blocks.reshape(*blocks.shape[:-1], k, k), -3, 0)))


def _split(sums: FloatArray, n: int) -> FloatArray:
    return sums.reshape(*sums.shape[:-1], n, -1)


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
        reasons, found = {}, {("", False): answers.probabilities}
        stored = []
        used = {variant.calibration for variant in variants() if names is None or variant.name in names}
        for one in calibrations():
            if one.name not in used:
                continue
            fitted: Correction | str
            if isinstance(one, StoredCalibration):
                fitted, correction = stored_correction(one, answers, inputs)
                stored += [] if correction is None else [correction]
            else:
                fitted = one.fit(answers)
            if isinstance(fitted, str):
                reasons[one.name] = fitted
                continue
            found[one.name, False] = fitted.apply(answers)
            if one.is_of_paper:
                found[one.name, True] = fitted.apply_as_in_paper(answers)
        return cls(answers, reasons, found, tuple(stored))

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return nothing: a single task is not sliced."""
        return ()

    def undefined(self, variant: Variant) -> str | None:
        """Return why a variant has no value on a single task; None if it may have one."""
        if variant.measure in _PRIOR and len(self.answers.labels) > _MOST_CROSSED:
            return f"it compares each label with each other one, for at most {_MOST_CROSSED} labels"
        return _ONE_TASK if variant.measure in CORRELATIONS else self.reasons.get(variant.calibration)

    def statistics(self, variant: Variant, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a variant: the columns of the measure, one row per item."""
        if variant.measure in _MEANS:
            return self._mean(variant.measure)
        asked, used = self._used(variant)
        columns = self._columns(variant, used)
        if variant.measure == "accuracy":
            # It is a mean over items, and gates, which count missing answers as wrong ones, read it as one.
            k = columns.shape[1] // _N_CLASS
            columns = np.column_stack([columns[:, :k].sum(axis=1), columns[:, k : 2 * k].sum(axis=1)])
        # Measures of the same sums share one array, which is resampled once.
        key = (id(self._columns(variant, used)), columns.shape[1])
        if key not in self._wholes:
            self._wholes[key] = np.zeros((len(used), columns.shape[1]))
            self._wholes[key][used] = columns
        return Statistics(self._wholes[key], len(columns), int(asked.sum()) - len(columns))

    def value(self, variant: Variant) -> float:
        """Return the value of a variant; nan if it has none."""
        if self.undefined(variant) is not None:
            return np.nan
        if variant.measure in _MEANS:
            sums = self._mean(variant.measure).cluster_sums.sum(axis=0)
        else:
            sums = self._columns(variant, self._used(variant)[1]).sum(axis=0)
        return float(aggregate(variant)(sums))

    def _used(self, variant: Variant) -> tuple[BoolArray, BoolArray]:
        """Return the mask of the items that a variant is about, and of those among them that it is computed from."""
        asked: BoolArray = self.answers.splits == (_TEST if variant.measure in _CLASS else _BIAS)
        known = ~np.isnan(self.probabilities[variant.calibration, variant.is_softmax][:, 0])
        return asked, asked & known & (self.answers.targets >= 0)

    def _columns(self, variant: Variant, used: BoolArray) -> FloatArray:
        """Return the columns of a measure, one row per item that it is computed from."""
        is_class = variant.measure in _CLASS
        key = (is_class, variant.calibration, variant.is_softmax)
        if key not in self._known:
            shares, targets = self.probabilities[key[1:]][used], self.answers.targets[used]
            made = (
                _class_columns(shares, targets)
                if is_class
                else _prior_columns(shares, targets, self.answers.evenly[used])
            )
            self._known[key] = made.reshape(len(shares), math.prod(made.shape[1:]))
        return self._known[key]

    @cached_property
    def _wholes(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[bool, str, bool], FloatArray]:
        return {}

    def _mean(self, measure: str) -> Statistics:
        used = (self.answers.splits == _TEST) & (self.answers.n_shown >= 0)
        values = self.answers.n_shown if measure == "n_shown" else self.answers.is_cut
        sums = np.column_stack([np.where(used, values, 0.0), used.astype(np.float64)])
        return Statistics(sums, int(used.sum()), 0)


def _class_columns(shares: FloatArray, targets: IntArray) -> FloatArray:
    """Return the columns of :class:`ClassSums`, shape (n, 3, k)."""
    rows, credits = np.arange(len(shares)), predicted_share(shares)
    columns = np.zeros((len(shares), _N_CLASS, shares.shape[1]))
    columns[rows, 0, targets] = credits[rows, targets]
    columns[rows, 1, targets] = 1.0
    columns[:, 2] = credits
    return columns


def _prior_columns(shares: FloatArray, targets: IntArray, even: FloatArray) -> FloatArray:
    """Return the columns of :class:`PriorSums`, shape (n, 5, k, k)."""
    n, k = shares.shape
    columns = np.zeros((n, _N_PRIOR, k, k))
    for place, values in enumerate((shares, shares**2, even, even**2, np.ones_like(shares))):
        columns[np.arange(n), place, targets] = values
    return columns


@dataclass(frozen=True, eq=False)
class SuiteTable:
    """The measures of each task of a suite; each task is a cluster."""

    measures: MeasureTable
    reasons: Mapping[str, str]
    """Reason why no task has a calibration, by its name."""
    corrections: tuple[FittedCorrection, ...] = ()
    """Corrections that are stored, of all tasks."""

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
        measures = {one for variant in named for one in CORRELATIONS.get(variant.measure, ())}
        wanted = [variant for variant in variants() if variant in named or variant.name in measures]
        measured = {variant.name for variant in wanted}
        values: dict[str, list[float]] = {variant.name: [] for variant in wanted}
        groups: dict[str, list[str]] = {name: [] for name in (*_OF_TASK, "n_labels")}
        reasons: list[Mapping[str, str]] = []
        corrections: list[FittedCorrection] = []
        for answers in parts:
            table = ConfigTable.of(answers, measured, inputs)
            corrections += table.corrections
            for variant in wanted:
                values[variant.name].append(table.value(variant))
            for name in _OF_TASK:
                groups[name].append(answers.groups.get(name, ""))
            groups["n_labels"].append(n_labels_group(len(answers.labels)))
            reasons.append(table.reasons)
        everywhere = {name: why for name, why in reasons[0].items() if all(name in one for one in reasons)}
        return cls(
            MeasureTable.of(
                {name: np.array(found) for name, found in values.items()},
                {name: _texts(found) for name, found in groups.items()},
            ),
            everywhere,
            tuple(corrections),
        )

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the values of a group of tasks that occur, sorted."""
        return self.measures.group_values(key)

    def undefined(self, variant: Variant) -> str | None:
        """Return why a calibration could not be fitted on any task; None if it could."""
        return self.reasons.get(variant.calibration)

    def statistics(self, variant: Variant, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of the mean over the tasks of a slice that have a value, or of a correlation."""
        if variant.measure not in CORRELATIONS:
            return self.measures.mean_of(variant.name, group)
        x, y = (self.measures.values[name] for name in CORRELATIONS[variant.measure])
        rows = self.measures.rows(group)
        used = rows & ~np.isnan(x) & ~np.isnan(y)
        columns = np.column_stack([np.ones_like(x), x, y, x**2, y**2, x * y])
        return Statistics(np.where(used[:, None], columns, 0.0), int(used.sum()), int(rows.sum() - used.sum()))


def _texts(values: list[str]) -> npt.NDArray[np.str_]:
    return np.array(values, dtype=np.str_)


def n_labels_group(n_labels: int) -> str:
    """Return the group of tasks by their number of labels, as in table 3 of the paper."""
    if n_labels <= 5:
        return str(n_labels)
    return "6 to 9" if n_labels <= 9 else "10 or more"
