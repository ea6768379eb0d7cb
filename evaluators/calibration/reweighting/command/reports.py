"""Prints reports on accuracies before and after a correction as a table, and writes them as CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from biasboard.ground.files import replacing
from biasboard.ground.plain_text import printable, protected, visible
from evaluators.calibration.reweighting.accuracy_report import (
    TITLES,
    AccuracyReport,
    ReportedValue,
    changes,
    losses,
    shown,
)

# With more classes, the table shows the least accurate and some of the most accurate ones.
_MAX_CLASSES, _N_LEAST, _N_MOST = 30, 15, 5
_WIDTH = 120
"""Width of the table if standard output is no terminal."""


def print_reports(title: str, reports: Mapping[str, AccuracyReport], warnings: Sequence[str] | None = None) -> None:
    """Print the accuracy of each class, the measures, and the gains and losses.

    Args:
        title: Title of the rows.
        reports: The report ``before``, and the one ``after`` if there is a correction.
        warnings: Warnings to print; None for the losses.
    """
    before, last = reports["before"], [*reports.values()][-1]
    table = Table(title=Text(visible(title)), title_justify="left")
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    for name in reports:
        table.add_column(name if len(reports) > 1 else "accuracy", justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    classes = [*zip(*(report.classes for report in reports.values()), strict=True)]
    if len(classes) > _MAX_CLASSES:
        ranked = sorted((each for each in classes if each[0].value is not None), key=lambda each: each[0].value or 0.0)
        classes = [*ranked[:_N_LEAST], *ranked[max(_N_LEAST, len(ranked) - _N_MOST) :]]
    for of_class in classes:
        table.add_row(Text(printable(of_class[0].name, most=80)), f"{of_class[0].n_rows:,}", *_cells(of_class))
    table.add_section()
    for of_measure in zip(*(report.measures for report in reports.values()), strict=True):
        table.add_row(TITLES[of_measure[0].name], "", *_cells(of_measure))
    console = Console()
    # In a file, lines may be longer than rich takes them to be.
    (console if console.is_terminal else Console(width=max(console.width, _WIDTH))).print(table)
    if len(before.classes) > _MAX_CLASSES:
        print(f"{len(before.classes)} classes; --measures FILE.csv writes all of them")
    for measure in last.measures:
        if measure.reason is not None:
            print(f"without a value: {TITLES[measure.name]} ({measure.reason})")
    if last is not before:
        print(f"traded: {changes(before, last)}")
        for line in losses(before, last) if warnings is None else warnings:
            print(f"warning: {visible(line)}")


def _cells(values: Sequence[ReportedValue]) -> list[str]:
    """Return each value and its interval."""
    return [
        cell
        for one in values
        for cell in (shown(one.value), "" if one.low is None else f"{one.low:.4f} to {one.high:.4f}")
    ]


def write_reports(path: Path, reports: Mapping[str, Mapping[str, AccuracyReport]]) -> None:
    """Write reports as CSV, with a row for each class and each measure."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["rows", "correction", "kind", *ReportedValue._fields])
        for title, of_rows in reports.items():
            for correction, report in of_rows.items():
                for kind, values in (("class", report.classes), ("measure", report.measures)):
                    for name, *numbers in values:
                        writer.writerow([protected(title), correction, kind, protected(name), *numbers])
