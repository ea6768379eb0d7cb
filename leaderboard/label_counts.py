"""Counts the classification tasks of a dataset: by category, by number of labels, and by label.

These are tables 2 to 4 of Reif & Schwartz (NAACL 2024, arXiv:2405.02743).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow.compute as pc

from evaluators.tasks.labels.label_answers import TEST
from evaluators.tasks.labels.label_tables import n_labels_group
from leaderboard.benchmark_pages import CountTable
from schemas.documents.dataset import Manifest
from schemas.files import arrow_files

_MOST_LABELS = 20
"""Number of labels that the paper lists."""
_GROUPS = ("2", "3", "4", "5", "6 to 9", "10 or more")
LabelledTask: TypeAlias = tuple[str, tuple[str, ...], int]
"""Category, labels and number of items of a classification task."""


def label_counts(folder: Path, manifest: Manifest) -> tuple[CountTable, ...]:
    """Return the tables of a dataset whose configs are classification tasks.

    Raises:
        DataError: a data file cannot be read.
    """
    return count_tables([*_tasks(folder, manifest)])


def _tasks(folder: Path, manifest: Manifest) -> Iterator[LabelledTask]:
    """Yield the category of each task, all labels that any of its items offers, and how many items are evaluated."""
    for entry in manifest.splits:
        if entry.split != TEST:
            continue
        # Of 264,178 items only these columns are read.
        columns = arrow_files.foreign_table(folder / entry.path, ["category", "labels"])
        labels = pc.unique(pc.list_flatten(columns["labels"])).to_pylist()
        yield str(columns["category"][0]), tuple(labels), entry.n_items


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
            tuple((name, groups[name]) for name in _GROUPS),
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
