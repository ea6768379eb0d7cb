"""Prints reports on accuracies before and after a correction, as tables in a terminal, and what was gained and lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from biasboard.ground.plain_text import printable, visible
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
# Width of tables if standard output is not a terminal, and the terminal width below which tables have fewer columns.
_WIDTH, _LEAST_WIDTH = 160, 130


def print_reports(title: str, reports: Mapping[str, AccuracyReport], warnings: Sequence[str] | None = None) -> None:
    """Print the table of classes, the table of measures, and the gains and losses.

    Args:
        title: Title of the rows.
        reports: The report ``before``, and the one ``after`` if there is a correction.
        warnings: Warnings to print; None for the losses.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, _WIDTH))
    console.print(_class_table(title, reports, is_narrow=console.width < _LEAST_WIDTH))
    before, last = reports["before"], [*reports.values()][-1]
    if len(before.classes) > _MAX_CLASSES:
        print(f"{len(before.classes)} classes; --measures FILE.csv writes all of them")
    console.print(_measure_table(reports))
    for measure in last.measures:
        if measure.reason is not None:
            print(f"without a value: {TITLES[measure.name]} ({measure.reason})")
    if last is not before:
        print(f"traded: {changes(before, last)}")
        for line in losses(before, last) if warnings is None else warnings:
            print(f"warning: {visible(line)}")


def _class_table(title: str, reports: Mapping[str, AccuracyReport], *, is_narrow: bool) -> Table:
    """Return the table of classes; a narrow one omits how often each is predicted."""
    table = Table(title=Text(visible(title)), title_justify="left")
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    names = [*reports] if len(reports) > 1 else [""]
    for name in () if is_narrow else names:
        table.add_column(f"predicted {name}".strip(), justify="right")
    for name in names:
        table.add_column(name if is_narrow and name else f"accuracy {name}".strip(), justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    classes = [*zip(*(report.classes for report in reports.values()), strict=True)]
    if len(classes) > _MAX_CLASSES:
        ranked = sorted((each for each in classes if each[0].value is not None), key=lambda each: each[0].value or 0.0)
        classes = [*ranked[:_N_LEAST], *ranked[max(_N_LEAST, len(ranked) - _N_MOST) :]]
    for each in classes:
        cells = [] if is_narrow else [f"{of_class.n_predicted:,}" for of_class in each]
        cells += [cell for of_class in each for cell in _value_and_interval(of_class)]
        table.add_row(Text(printable(each[0].name, most=80)), f"{each[0].n_rows:,}", *cells)
    return table


def _measure_table(reports: Mapping[str, AccuracyReport]) -> Table:
    table = Table()
    table.add_column("measure")
    for name in reports if len(reports) > 1 else ("value",):
        table.add_column(name, justify="right")
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for measures in zip(*(report.measures for report in reports.values()), strict=True):
        table.add_row(
            TITLES[measures[0].name], *(cell for measure in measures for cell in _value_and_interval(measure))
        )
    return table


def _value_and_interval(row: ReportedValue) -> tuple[str, str]:
    return shown(row.value), "" if row.low is None else f"{row.low:.4f} to {row.high:.4f}"
