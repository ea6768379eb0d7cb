"""Defines the metrics of a task that reads distributions over labels: performance, bias, and both after calibrations.

On a suite each metric is the mean over the tasks that have a value. RSD, the Gini index and the dominance of a class
have none where nothing is right, so that failing a task entirely can lower their means: read them beside the accuracy.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from evaluators.calibrator import Calibration, calibrations
from evaluators.metric import MetricDefinition
from evaluators.statistics.bootstrap import NORMAL, PERCENTILE
from evaluators.tasks.labels.answers import BALANCE
from evaluators.tasks.labels.measures import CORRELATIONS
from evaluators.tasks.labels.table import SOFTMAX, LabelTable, Variant, aggregate, variants

_VERSION = "1.1"
"""Values are those of 1.0, whose results call the tasks of a suite and the items of a task by one name."""
_NO_ITEMS = "no item has a reading"
_ZERO = "nothing is right, and the measure divides by the accuracy"
_UNCOUNTED = "no item was asked, or the prompt is cut by tokens, of which the records do not tell"
_CONSTANT = "one of the two measures is the same for all tasks"
_NO_PAIR = "no class has two items with a reading"
_ZERO_OR_SINGLE = "nothing is right, or there are fewer than two classes"


class Measure(NamedTuple):
    """The facts about a measure that are the same with and without a calibration."""

    heading: str
    """Heading of its column or chart."""
    maximum: float | None
    ideal: float | None
    why_nan: str
    description: str


MEASURES = {
    "accuracy": Measure("Accuracy", 1.0, 1.0, _NO_ITEMS, "Share of right labels."),
    "macro_f1": Measure("Macro-F1", 1.0, 1.0, _NO_ITEMS, "Mean over classes of F1."),
    "rsd": Measure(
        "RSD",
        None,
        0.0,
        _ZERO,
        "Spread of the class accuracies around the accuracy, over it (Reif & Schwartz 2024, RSD).",
    ),
    "rsd_release": Measure(
        "RSD, release",
        None,
        0.0,
        _ZERO,
        "RSD around the mean of the class accuracies, as the published code computes it.",
    ),
    "cobias": Measure(
        "COBias", 1.0, 0.0, _ZERO_OR_SINGLE, "Mean absolute difference between two class accuracies (arXiv:2405.07623)."
    ),
    "gini": Measure("Gini index", 1.0, 0.0, _ZERO_OR_SINGLE, "Gini index of the class accuracies (arXiv:2603.15654)."),
    "top_class_dominance": Measure(
        "Dominance of the top class", None, 1.0, _ZERO, "Largest class accuracy over the mean class accuracy."
    ),
    "smallest_class_accuracy": Measure("Smallest class accuracy", 1.0, 1.0, _NO_ITEMS, "Smallest class accuracy."),
    "bias_score": Measure(
        "BiasScore",
        1.0,
        0.0,
        _NO_ITEMS,
        "Distance of the mean distribution from the uniform one (Reif & Schwartz 2024, BiasScore).",
    ),
    "bias_score_normalised": Measure(
        "BiasScore over its range", 1.0, 0.0, _NO_ITEMS, "BiasScore over the largest value that it can have."
    ),
    "rsd_floor": Measure(
        "RSD by chance", None, None, _ZERO, "RSD by chance, at this accuracy and these numbers of items."
    ),
    "cobias_floor": Measure(
        "COBias by chance",
        None,
        None,
        _ZERO_OR_SINGLE,
        "COBias by chance, at this accuracy and these numbers of items.",
    ),
    "gini_floor": Measure(
        "Gini index by chance",
        None,
        None,
        _ZERO_OR_SINGLE,
        "Gini index by chance, at this accuracy and these numbers of items.",
    ),
    "bias_score_floor": Measure(
        "BiasScore by chance",
        None,
        None,
        _NO_PAIR,
        "BiasScore by chance, of an unbiased model whose distributions vary as much.",
    ),
    "f1_rsd_correlation": Measure(
        "Correlation of F1 and RSD", 1.0, None, _CONSTANT, "Pearson correlation of macro-F1 and RSD over the tasks."
    ),
    "f1_bias_score_correlation": Measure(
        "Correlation of F1 and BiasScore",
        1.0,
        None,
        _CONSTANT,
        "Pearson correlation of macro-F1 and BiasScore over the tasks.",
    ),
    "n_shown": Measure("Examples shown", None, None, _UNCOUNTED, "Mean number of examples that fit into a prompt."),
    "cut_rate": Measure(
        "Cut inputs", 1.0, None, _UNCOUNTED, "Share of prompts whose input or instruction was shortened."
    ),
}
METHODS = {calibration.name: calibration.label for calibration in calibrations()}
"""Heading of each calibration."""
_SLICES = ("n_labels", "equivalent_labels", BALANCE, "category")


def label_metrics(
    task: str, without: Container[str] = (), learned_from: Mapping[str, str] | None = None
) -> tuple[MetricDefinition[LabelTable], ...]:
    """Return the metrics of a task whose table is a :class:`LabelTable`, the model's own distributions first.

    Args:
        task: Name of the task.
        without: Names of measures and calibrations that make no sense for its items.
        learned_from: Sentences that say what a calibration learns from in this task, by its name; those that are left
            out keep the sentence of the calibration.
    """
    return tuple(
        _definition(variant, task, learned_from or {})
        for variant in variants()
        if variant.measure not in without and variant.calibration not in without
    )


def metric_headings() -> dict[str, str]:
    """Return the heading of each metric of labels, by its name."""
    return {
        variant.name: ", ".join(
            part
            for part in (
                MEASURES[variant.measure].heading,
                METHODS.get(variant.calibration),
                SOFTMAX if variant.is_softmax else None,
            )
            if part
        )
        for variant in variants()
    }


def _definition(variant: Variant, task: str, learned_from: Mapping[str, str]) -> MetricDefinition[LabelTable]:
    """Return the metric of a variant of a measure."""
    kind = MEASURES[variant.measure]
    method = next((method for method in calibrations() if method.name == variant.calibration), None)
    return MetricDefinition[LabelTable](
        name=variant.name,
        version=_VERSION if method is None else f"{_VERSION}+{method.name}.{method.version}",
        task=task,
        unit="items",
        unit_of_suite="tasks",
        minimum=-1.0 if variant.measure in CORRELATIONS else 0.0,
        maximum=kind.maximum,
        ideal=kind.ideal,
        slices=() if method is not None else _SLICES,
        undefined=lambda table: table.undefined(variant),
        statistics=lambda table, group: table.statistics(variant, group),
        aggregate=aggregate(variant),
        why_nan=lambda sums: kind.why_nan if sums.any() or kind.why_nan == _UNCOUNTED else None,
        # Percentiles of means of absolute differences would lie above small values.
        interval_method=NORMAL if kind.ideal == 0.0 else PERCENTILE,
        no_interval="it says what chance alone gives, and estimates nothing" if variant.is_floor else None,
        floor=_floor(variant),
        description=" ".join(_sentences(kind, method, learned_from, is_softmax=variant.is_softmax)),
    )


def _floor(variant: Variant) -> str | None:
    """Return the metric with the value by chance; None for calibrated distributions, whose chance is another."""
    name = f"{variant.measure}_floor"
    return name if name in MEASURES and not variant.calibration else None


def _sentences(
    kind: Measure, method: Calibration | None, learned_from: Mapping[str, str], *, is_softmax: bool
) -> Iterator[str]:
    yield kind.description
    if method is not None:
        yield learned_from.get(method.name, method.description)
    if is_softmax:
        yield f"With the {SOFTMAX} that the paper writes in place of the shares that its code computes."
