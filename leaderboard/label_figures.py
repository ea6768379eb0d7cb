"""Describes the figures of class accuracies, which benchmarks of labels share."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.calibrator import StoredCalibration, calibrations
from evaluators.tasks.labels.label_measures import QUARTERS
from evaluators.tasks.labels.metric_variants import METHODS, Variant, calibrated_measures
from leaderboard.benchmark_figures import Lorenz, Shown, Strips

_QUARTERS = tuple(QUARTERS.items())
_TITLES = {method.name: method.title for method in calibrations()}
_CHANCE = "Chance alone sets classes with few items apart, so that even models are not quite even here."


def class_figures(methods: Sequence[str], suffix: str = "", means_over: str = "") -> tuple[Strips, Lorenz]:
    """Return the figures of class accuracies before and after corrections (arXiv:2603.15654).

    Classes are shown by quarters, since the tasks of a suite have different labels.

    Args:
        methods: Names of the calibrations of the benchmark.
        suffix: What follows the name of a metric in that of the value to show, if that is an index.
        means_over: A sentence on what the values are means over, with a space at its end.
    """
    judged = [method.name for method in calibrations() if {*QUARTERS} <= {*calibrated_measures(method)}]
    each = {"": "none", **{name: METHODS[name] for name in methods if name in judged}}
    # The correction of the paper is one weight per label, which is stored.
    reweighting = [method.name for method in calibrations() if isinstance(method, StoredCalibration)]
    corrections = [f"{_TITLES[name]} ({label})" for name, label in each.items() if name]
    accuracies = Strips(
        name="class-accuracies",
        caption="How often a model is right in the worst quarter of its classes and in the best, before and after each "
        f"correction of the probabilities: none, {', '.join(corrections)}. The nearer the two are, the more even is "
        f"the model. {_CHANCE} {means_over}Lines are 95 % intervals.",
        subject="accuracy in their worst and their best classes before and after each correction",
        panels={
            f"{words.capitalize()} quarter": tuple(
                Shown(label, f"{Variant(quarter, name).name}{suffix}") for name, label in each.items()
            )
            for quarter, words in (_QUARTERS[0], _QUARTERS[-1])
        },
    )
    curves = Lorenz(
        name="lorenz",
        caption="How the accuracy is spread over the classes (Lorenz curves), before and after reweighting. A model "
        "that is right as often in each class is on the dashed line; the farther below, the less even it is. The Gini "
        f"index measures the area between. {_CHANCE} {means_over}".strip(),
        subject="Accuracy in the worse half of the classes",
        x_title="Share of the classes, the worst first",
        panels={
            f"Share of the accuracy, {title}": tuple(
                Shown(words, f"{Variant(quarter, name).name}{suffix}") for quarter, words in _QUARTERS
            )
            for name, title in {"": "uncorrected", **{name: _TITLES[name] for name in reweighting}}.items()
        },
    )
    return accuracies, curves
