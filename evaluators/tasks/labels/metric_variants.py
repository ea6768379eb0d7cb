"""Defines the metrics of tasks that read distributions over labels: performance, bias, and both after calibration.

On a suite each metric is the mean over the tasks that have a value. RSD, the Gini index and the dominance of a class
have none where nothing is right, so that failing a task entirely can lower their means: read them with the accuracy.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from evaluators.calibrator import Calibration, calibrations
from evaluators.metric import MetricDefinition, MetricName, RecordTable
from evaluators.statistics.jackknife import STUDENT, WILSON
from evaluators.statistics.record_tables import Statistics
from evaluators.tasks.labels.label_answers import BALANCE, BIAS
from evaluators.tasks.labels.label_measures import (
    FEW_WORDS,
    MEASURES,
    NO_WORDS,
    UNCOUNTED,
    ClassSums,
    FoldSums,
    LabelMeasure,
    PriorSums,
    WordSums,
    value_of,
)

_VERSION = "1.1"
"""Values are the same as in 1.0, whose results use one unit name for the tasks of a suite and the items of a task."""
_VERSIONS = {
    "rsd": "2.1",
    "cobias": "2.0",
    "gini": "3.0",
    "squared_cv": "2.1",
    "bias_score_floor": "1.2",
    "bias_score_answers_floor": "1.2",
}
"""Of measures of evenness that were the paper's formula in 1.1, which has a name of its own since; 2.0 of ``rsd`` and
``squared_cv`` was a plain quotient. 1.1 of the floors was 0 of tasks none of whose answers could be read."""
_FORMERLY = {
    "gini": MetricName("gini_paper", "1.1"),
    "gini_floor": MetricName("gini_paper_floor", "1.1"),
    "squared_cv": MetricName("gini", "2.1"),
}
"""Of measures whose values were stored under another name: ``gini`` 2.0 and 2.1 was what is ``squared_cv`` now."""
SOFTMAX = "softmax"
METHODS = {calibration.name: calibration.label for calibration in calibrations()}
"""Heading of each calibration."""
_OF_UNASKED = frozenset({UNCOUNTED, NO_WORDS, FEW_WORDS})
"""Reasons that also hold where nothing was asked that a measure could be computed from."""
_SLICES = ("n_labels", "equivalent_labels", BALANCE, "category")


class Variant(NamedTuple):
    """A measure of a model's distributions, uncalibrated or calibrated."""

    measure: str
    calibration: str = ""
    """Name of the calibration; empty for the model's own distributions."""
    is_softmax: bool = False
    """True for the softmax in the paper's text, which its code does not compute."""

    @property
    def kind(self) -> LabelMeasure:
        """The measure."""
        return MEASURES[self.measure]

    @property
    def reads_probabilities(self) -> bool:
        """True if it depends on more than which label is most probable, as every calibration does."""
        return bool(self.calibration) or self.kind.reads_probabilities

    @property
    def name(self) -> str:
        """The name of its metric."""
        return "_".join(filter(None, (self.measure, self.calibration, SOFTMAX if self.is_softmax else "")))


def variants() -> tuple[Variant, ...]:
    """Return all measures of all distributions, uncalibrated ones first."""
    own = [Variant(name) for name in MEASURES]
    calibrated = [Variant(name, method.name) for method in calibrations() for name in calibrated_measures(method)]
    # The softmax has the same most probable label, so that only BiasScore differs.
    softmax = [Variant("bias_score", method.name, is_softmax=True) for method in calibrations() if method.is_of_paper]
    return (*own, *calibrated, *softmax)


def calibrated_measures(calibration: Calibration) -> tuple[str, ...]:
    """Return the measures to judge a calibration by: those on items whose labels it does not learn from."""
    kinds = (ClassSums, FoldSums) if BIAS in calibration.learns_from else (ClassSums, FoldSums, PriorSums)
    return tuple(
        name for name, kind in MEASURES.items() if kind.sums in kinds and not kind.is_floor and not kind.of_answers
    )


class LabelTable(RecordTable, Protocol):
    """A table that gives the statistics of each variant of a measure."""

    def statistics(self, variant: Variant, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a variant on a slice."""

    def undefined(self, variant: Variant) -> str | None:
        """Return why a variant has no value; None if it may have one."""


def label_metrics(
    task: str, without: Container[str] = (), learned_from: Mapping[str, str] | None = None
) -> tuple[MetricDefinition[LabelTable], ...]:
    """Return the metrics of a task whose table is a :class:`LabelTable`, the model's own distributions first.

    Args:
        task: Name of the task.
        without: Names of measures and calibrations that make no sense for its items.
        learned_from: Descriptions of what a calibration learns from in this task, by its name; other calibrations keep
            their own description.
    """
    return tuple(
        _definition(variant, task, learned_from or {})
        for variant in variants()
        if variant.measure not in without and variant.calibration not in without
    )


def metric_headings() -> dict[str, str]:
    """Return the heading of each metric of labels, by its name."""
    headings = {}
    for variant in variants():
        parts = (variant.kind.heading, METHODS.get(variant.calibration), SOFTMAX if variant.is_softmax else None)
        headings[variant.name] = ", ".join(filter(None, parts))
    return headings


def _definition(variant: Variant, task: str, learned_from: Mapping[str, str]) -> MetricDefinition[LabelTable]:
    """Return the metric of a variant of a measure."""
    kind = variant.kind
    method = next((method for method in calibrations() if method.name == variant.calibration), None)
    learned = "" if method is None else f"+{method.name}.{method.version}"
    former, floor = _FORMERLY.get(variant.measure), f"{variant.measure}_floor"
    sentences = [kind.description]
    if method is not None:
        sentences.append(learned_from.get(method.name, method.description))
    if variant.is_softmax:
        sentences.append(f"With the {SOFTMAX} that the paper writes in place of the shares that its code computes.")
    return MetricDefinition[LabelTable](
        name=variant.name,
        version=_VERSIONS.get(variant.measure, _VERSION) + learned,
        formerly=former and MetricName(variant._replace(measure=former.name).name, former.version + learned),
        task=task,
        unit="items",
        unit_of_suite="tasks",
        minimum=-1.0 if kind.correlates else 0.0,
        maximum=kind.maximum,
        ideal=kind.ideal,
        overshoots=kind.sums is FoldSums,
        # Domain-label bias is of tasks, each of which the board shows: slices would only make pages larger.
        slices=() if method is not None or kind.sums is WordSums else _SLICES,
        undefined=lambda table: table.undefined(variant),
        statistics=lambda table, group: table.statistics(variant, group),
        aggregate=partial(value_of, variant.measure),
        why_nan=lambda sums: kind.why_nan if sums.any() or kind.why_nan in _OF_UNASKED else None,
        # Resampling increases absolute differences, so that a percentile interval would be above small values.
        interval_method=STUDENT if kind.ideal == 0.0 else WILSON,
        no_interval="it says what chance alone gives, and estimates nothing" if kind.is_floor else None,
        # The value by chance differs for calibrated distributions.
        floor=floor if floor in MEASURES and method is None else None,
        description=" ".join(sentences),
    )
