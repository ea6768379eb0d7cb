"""Prepares the table of a result on one task: the accuracy of each class before and after each correction.

It is the form of the tables of arXiv:2603.15654, for every correction that a result has, with the accuracy over all
items and what always answering the most frequent class would get.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import read_inputs
from evaluators.statistics.class_accuracies import lorenz_curve, mean_accuracy
from evaluators.statistics.jackknife import LEVEL, WILSON
from evaluators.task import ClassAccuracy, ClassReport, CorrectedClasses, load_task
from leaderboard.charts.curves import curves
from leaderboard.charts.rows import strips
from leaderboard.charts.values import Panel
from leaderboard.pages.exports import Files, Table
from leaderboard.pages.pictures import Picture, make_picture
from leaderboard.ranking.fields import Columns
from leaderboard.verify.entries import Entry
from schemas.documents.result import Interval, Metric
from schemas.folders.run_folder import verified_parts

_KIND = "classes of a task"
_MOST_DRAWN = 30
"""Largest number of classes whose accuracies are drawn: more would fill several screens."""
_MOST_PANELS = 3
"""Number of corrections in one drawing, which then fits a phone."""
_MOST_PLACES = 10
"""Number of places on a Lorenz curve that has more classes."""
_MEAN = "Mean class accuracy"


class Cell(NamedTuple):
    """A value under one correction."""

    value: float | None
    low: float | None = None
    high: float | None = None
    change: float | None = None
    """Change relative to the value without a correction; None if there is none to compare with, or if that is 0."""


class ClassLine(NamedTuple):
    """A class or a measure in the table."""

    name: str
    n_items: int | None
    """Number of items of the class; None for a measure."""
    cells: tuple[Cell, ...]


class ClassTable(NamedTuple):
    """The classes of a task before and after each correction."""

    columns: tuple[CorrectedClasses, ...]
    """The corrections that there are, of which the first is none."""
    missing: tuple[CorrectedClasses, ...]
    """Those that there are not, with reasons."""
    classes: tuple[ClassLine, ...]
    measures: tuple[ClassLine, ...]
    most_frequent: str
    constant_accuracy: float
    """Share of the items that always answering the most frequent class gets right."""
    constant_mean: float
    """Mean of the class accuracies that it gets."""
    above: tuple[str, ...]
    """Headings of the columns whose accuracy over all items is larger."""
    n_items: int
    pictures: tuple[Picture, ...]
    table: Table
    """The table for download."""


def class_table(entry: Entry, stem: str, memory: Memory) -> ClassTable | None:
    """Return the classes of a result before and after each correction.

    Args:
        entry: A result.
        stem: Path of its files without what tells them apart and the ending.
        memory: The memory of this machine.

    Returns:
        The table; None if the result is of a suite, a baseline or a task without classes, or if its records are not
        here.
    """
    if entry.folder is None or entry.is_baseline or entry.result.signature.parts:
        return None
    report = _report(entry, memory)
    if report is None or not any(one.n_items for one in report.columns[0].accuracies):
        return None
    # A task may have no metric of some correction, because it makes no sense for its items.
    known = [column for column in report.columns if entry.metric(column.metrics[0]) is not None]
    columns = tuple(column for column in known if column.accuracies)
    classes = tuple(
        ClassLine(label, of_class[0].n_items, tuple(Cell(one.value, one.low, one.high) for one in of_class))
        for label, of_class in zip(report.labels, zip(*(one.accuracies for one in columns), strict=True), strict=True)
    )
    supports = [line.n_items or 0 for line in classes]
    top, n_items = int(np.argmax(supports)), sum(supports)
    measures = tuple(_measures(entry, report, columns))
    share = supports[top] / n_items
    return ClassTable(
        columns=columns,
        missing=tuple(column for column in known if not column.accuracies),
        classes=classes,
        measures=measures,
        most_frequent=classes[top].name,
        constant_accuracy=share,
        constant_mean=1 / np.count_nonzero(supports),
        above=tuple(
            column.label
            for column, cell in zip(columns, measures[0].cells, strict=True)
            if cell.value is not None and cell.value > share
        ),
        n_items=n_items,
        pictures=(*_accuracy_pictures(columns, classes, stem), *_lorenz_picture(columns, classes, stem)),
        table=_download(columns, (*classes, *measures), stem, str(entry.result.signature)),
    )


def _report(entry: Entry, memory: Memory) -> ClassReport | None:
    """Return the report of the task, which takes reading all records and fitting what is not stored."""
    task, result = load_task(entry.result.signature.task), entry.result
    assert entry.folder is not None
    parts: dict[str, JsonValue] = {"records": result.records.sha256, "task": result.signature.task}
    parts |= {file.path: file.sha256 for file in (result.adapters, result.corrections) if file is not None}
    stored = memory.get(_KIND, parts)
    if not isinstance(stored, list):
        inputs = read_inputs(entry.folder, result)
        (report,) = (task.class_report(records, inputs) for records in verified_parts(entry.folder, result))
        stored = [] if report is None else cast("list[JsonValue]", [*report])
        memory.put(_KIND, parts, stored)
    if not stored:
        return None
    labels, columns, measures = cast("tuple[list[str], list[list[list[ClassAccuracy]]], list[str]]", stored)
    return ClassReport(
        tuple(labels),
        tuple(
            CorrectedClasses(label, title, tuple(ClassAccuracy(*one) for one in of_classes), tuple(metrics), reason)
            for label, title, of_classes, metrics, reason in cast(
                "list[tuple[str, str, list[tuple[int, float, float, float]], list[str], str | None]]", columns
            )
        ),
        tuple(measures),
    )


def _changes(values: Sequence[float | None]) -> tuple[Cell, ...]:
    """Return the cells of a measure, with the changes from the first, which is without a correction."""
    before = values[0]
    return tuple(
        Cell(value, change=None if number == 0 or value is None or not before else value / before - 1)
        for number, value in enumerate(values)
    )


def _measures(entry: Entry, report: ClassReport, columns: Sequence[CorrectedClasses]) -> Iterator[ClassLine]:
    means = [mean_accuracy([np.nan if one.value is None else one.value for one in of.accuracies]) for of in columns]
    for number, heading in enumerate(report.measures):
        metrics = [entry.metric(column.metrics[number]) for column in columns]
        yield ClassLine(heading, None, _changes([None if metric is None else metric.value for metric in metrics]))
        if number == 0:  # Beside the accuracy over all items, from which it can be far.
            yield ClassLine(_MEAN, None, _changes([float(mean) for mean in means]))


def _accuracy_pictures(
    columns: Sequence[CorrectedClasses], classes: Sequence[ClassLine], stem: str
) -> Iterator[Picture]:
    if not 1 < len(classes) <= _MOST_DRAWN:
        return
    corrected = list(enumerate(columns))[1:]
    for start in range(0, len(corrected), _MOST_PANELS):
        shown = corrected[start : start + _MOST_PANELS]
        panels = [
            Panel(
                column.label,
                ("before", "after"),
                [[_metric(line.cells[place], line.n_items) for place in (0, number)] for line in classes],
            )
            for number, column in shown
        ]
        names = ", ".join(column.title for _, column in shown)
        yield make_picture(
            strips([line.name for line in classes], panels, alt=f"Accuracy of each class before and after {names}."),
            f"{stem}-classes-{start // _MOST_PANELS + 1}",
            f"How often the model is right in each class, before and after: {names}. An even model has its marks of "
            "one kind below each other. Lines are 95 % intervals.",
        )


def _lorenz_picture(columns: Sequence[CorrectedClasses], classes: Sequence[ClassLine], stem: str) -> Iterator[Picture]:
    places = np.linspace(0.0, 1.0, min(len(classes), _MOST_PLACES) + 1)
    shares = [
        np.interp(places, *lorenz_curve([np.nan if one.value is None else one.value for one in column.accuracies]))
        for column in columns
    ]
    drawn = [(column, share) for column, share in zip(columns, shares, strict=True) if not np.isnan(share).any()]
    if not drawn or len(classes) < 2:
        return
    names = tuple(f"{100 * place:.0f} %" for place in places)
    panel = Panel("Share of the accuracy", names, [[_metric(Cell(value), None) for value in of] for _, of in drawn])
    half = len(places) // 2
    told = ", ".join(f"{column.label} {100 * share[half]:.0f} %" for column, share in drawn)
    yield make_picture(
        curves(
            [("", [panel])],
            [column.label for column, _ in drawn],
            x_title="Share of the classes, the worst first",
            alt=f"Lorenz curves. Accuracy in the worst {names[half]} of the classes: {told}.",
            even=places.tolist(),
            decisive=half,
        ),
        f"{stem}-lorenz",
        "How the accuracy is spread over the classes (Lorenz curves), before and after each correction. A model that "
        "is right as often in each class is on the dashed line; the Gini index is twice the area between. Chance alone "
        "sets classes with few items apart.",
    )


def _metric(cell: Cell, n_items: int | None) -> Metric | None:
    """Return a share as charts take it.

    Args:
        cell: The share.
        n_items: Number of items that it is of; None if it follows from other shares.
    """
    if cell.value is None:
        return None
    interval = None
    if n_items is not None and cell.low is not None and cell.high is not None:
        ends = {"low": cell.low, "high": cell.high}
        interval = Interval(**ends, level=LEVEL, method=WILSON, n_clusters=n_items, n_resamples=None)
    return Metric(
        name="share",
        version="1.0",
        value=cell.value,
        reason=None,
        interval=interval,
        interval_reason=None if interval is not None else "it follows from values that have intervals",
        n=n_items or 0,
        n_excluded=0,
        unit="items",
        ideal=None,
        minimum=0.0,
        maximum=1.0,
        group={},
    )


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


def _download(columns: Sequence[CorrectedClasses], lines: Sequence[ClassLine], stem: str, signature: str) -> Table:
    rows = [
        (line.name, "measure" if line.n_items is None else "class", column.label, line.n_items, *cell)
        for line in lines
        for column, cell in zip(columns, line.cells, strict=True)
    ]
    return Table(Files(f"files/{stem.rpartition('/')[2]}-classes"), _COLUMNS, rows, signature)
