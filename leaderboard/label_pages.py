"""What the pages of benchmarks of labels share: counts of the tasks of a dataset, and figures of class accuracies.

The counts, by category, by number of labels and by label, are tables 2 to 4 of Reif & Schwartz (NAACL 2024,
arXiv:2405.02743).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow.compute as pc

from evaluators.calibrator import StoredCalibration, calibrations
from evaluators.tasks.labels.label_answers import TEST
from evaluators.tasks.labels.label_measures import QUARTERS
from evaluators.tasks.labels.label_tables import n_labels_group
from evaluators.tasks.labels.metric_variants import METHODS, Variant, calibrated_measures
from leaderboard.benchmark_figures import Lorenz, Shown, Strips
from leaderboard.benchmark_pages import CountTable
from schemas.documents.dataset import Manifest
from schemas.files import arrow_files

_MOST_LABELS = 20
"""Number of labels that the paper lists."""
_QUARTERS = tuple(QUARTERS.items())
_TITLES = {method.name: method.title for method in calibrations()}
_CHANCE = "Chance alone sets classes with few items apart, so that even models are not quite even here."
LabelledTask: TypeAlias = tuple[str, tuple[str, ...], int]
"""Category, labels that any item offers, and number of evaluated items of a classification task."""


def label_counts(folder: Path, manifest: Manifest) -> tuple[CountTable, ...]:
    """Return the tables of a dataset whose configs are classification tasks.

    Raises:
        DataError: a data file cannot be read.
    """
    tasks = []
    for entry in (one for one in manifest.splits if one.split == TEST):
        # Of 264,178 items only these columns are read.
        columns = arrow_files.foreign_table(folder / entry.path, ["category", "labels"])
        labels = pc.unique(pc.list_flatten(columns["labels"])).to_pylist()
        tasks.append((str(columns["category"][0]), tuple(labels), entry.n_items))
    return count_tables(tasks)


def count_tables(tasks: Sequence[LabelledTask]) -> tuple[CountTable, ...]:
    """Return the tables of some tasks, each with its most frequent row first, but that of numbers of labels."""
    categories = Counter(category for category, *_ in tasks)
    items: Counter[str] = Counter()
    for category, _, n_items in tasks:
        items[category] += n_items
    groups = Counter(n_labels_group(len(labels)) for _, labels, _ in tasks)
    # Lower-cased, with their punctuation, as in the paper; a task counts once, even if it has a label in two cases.
    counted = Counter(label for _, labels, _ in tasks for label in {label.lower() for label in labels})
    most = _by_frequency(counted)[:_MOST_LABELS]
    return (
        CountTable(
            "categories",
            "Tasks and items to evaluate by category",
            ("Category", "Tasks", "Items"),
            tuple((name, n, items[name]) for name, n in _by_frequency(categories)),
        ),
        CountTable(
            "label-numbers",
            "Tasks by number of labels",
            ("Labels", "Tasks"),
            tuple((name, groups[name]) for name in ("2", "3", "4", "5", "6 to 9", "10 or more")),
        ),
        CountTable(
            "labels",
            f"Tasks by label: the {len(most)} most frequent of {len(counted)} labels, in small letters and with their "
            "punctuation",
            ("Label", "Tasks"),
            tuple(most),
        ),
    )


def _by_frequency(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


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
