"""Prepares the table of a result on one task: the accuracy of each class before and after each correction.

It is the form of the tables of arXiv:2603.15654, for every correction that a result has, with the accuracy over all
items and what always answering the most frequent class would get.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from biasboard.ground.memory import Memory
from evaluators.runs.measure.measuring import read_inputs
from evaluators.statistics.class_accuracies import mean_accuracy
from evaluators.task import load_task
from evaluators.task_abilities import ClassReport, CorrectedClasses, ReportsLabels
from leaderboard.pages.exports import DownloadTable, Files, Line
from leaderboard.ranking.fields import Columns
from leaderboard.verify.entries import Entry
from leaderboard.verify.intake import contents_of
from schemas.folders.run_folder import verified_parts

_KIND = "classes of a task"
_MEAN = "Mean class accuracy"
_COLUMNS: Columns = {
    "row": str,
    "kind": str,
    "correction": str,
    "n_items": int,
    "value": float,
    "low": float,
    "high": float,
    "relative_change": float,
}


class ClassTable(NamedTuple):
    """The classes of a task before and after each correction."""

    columns: tuple[CorrectedClasses, ...]
    """The corrections that there are, of which the first is none."""
    missing: tuple[CorrectedClasses, ...]
    """Those that there are not, with reasons."""
    table: DownloadTable
    """The accuracies of all classes, then measures over them: a line for each column."""
    most_frequent: str
    constant_accuracy: float
    """Share of the items that always answering the most frequent class gets right."""
    constant_mean: float
    """Mean of the class accuracies that it gets."""
    above: tuple[str, ...]
    """Headings of the columns whose accuracy over all items is larger."""
    n_items: int


def class_table(entry: Entry, name: str, memory: Memory) -> ClassTable | None:
    """Return the classes of a result before and after each correction.

    Args:
        entry: A result.
        name: Name of its files without what tells them apart and the ending.
        memory: The memory of this machine.

    Returns:
        The table; None if the result is of a suite, a baseline or a task without classes, or if its records are not
        here.
    """
    if entry.folder is None or entry.is_baseline or entry.result.signature.parts:
        return None
    report = _report(entry, entry.folder, memory)
    if report is None or not any(one.n_items for one in report.columns[0].accuracies):
        return None
    # A task may have no metric of some correction, because it makes no sense for its items.
    known = [column for column in report.columns if entry.metric(column.metrics[0]) is not None]
    columns = tuple(column for column in known if column.accuracies)
    supports = [one.n_items for one in columns[0].accuracies]
    top, n_items = int(np.argmax(supports)), sum(supports)
    share = supports[top] / n_items
    accuracies = [one for column in columns if (one := entry.metric(column.metrics[0])) is not None]
    return ClassTable(
        columns=columns,
        missing=tuple(column for column in known if not column.accuracies),
        table=DownloadTable(
            Files(f"files/{name}-classes"),
            _COLUMNS,
            [tuple(line.values()) for line in _lines(entry, report, columns)],
            str(entry.result.signature),
        ),
        most_frequent=report.labels[top],
        constant_accuracy=share,
        constant_mean=1 / np.count_nonzero(supports),
        above=tuple(
            column.label
            for column, accuracy in zip(columns, accuracies, strict=True)
            if (accuracy.value or 0.0) > share
        ),
        n_items=n_items,
    )


def _report(entry: Entry, folder: Path, memory: Memory) -> ClassReport | None:
    """Return the report of the task, which takes reading all records and fitting what is not stored."""
    task, result = load_task(entry.result.signature.task), entry.result

    def made() -> list[ClassReport]:
        if not isinstance(task, ReportsLabels):
            return []
        inputs = read_inputs(folder, result)
        reports = [task.class_report(records, inputs) for records in verified_parts(folder, result)]
        return [report for report in reports if report is not None]

    return next(iter(memory.remembered(_KIND, contents_of(result), list[ClassReport], made)), None)


def _values(column: CorrectedClasses) -> list[float]:
    """Return the accuracy of each class; NaN for one without items."""
    return [np.nan if one.value is None else one.value for one in column.accuracies]


def _lines(entry: Entry, report: ClassReport, columns: Sequence[CorrectedClasses]) -> Iterator[Line]:
    """Yield the accuracies of the classes, then the measures over them with their changes from no correction."""
    unknown = dict.fromkeys(_COLUMNS)
    for number, label in enumerate(report.labels):
        for column in columns:
            about = {"row": label, "kind": "class", "correction": column.label}
            yield unknown | about | column.accuracies[number]._asdict()
    measures: dict[str, list[float | None]] = {}
    for number, heading in enumerate(report.measures):
        metrics = [entry.metric(column.metrics[number]) for column in columns]
        measures[heading] = [None if metric is None else metric.value for metric in metrics]
        if number == 0:  # Beside the accuracy over all items, from which it can be far.
            measures[_MEAN] = [float(mean_accuracy(_values(column))) for column in columns]
    for heading, values in measures.items():
        before = values[0]
        for column, value in zip(columns, values, strict=True):
            change = None if column is columns[0] or value is None or not before else value / before - 1
            about = {"row": heading, "kind": "measure", "correction": column.label}
            yield unknown | about | {"value": value, "relative_change": change}
