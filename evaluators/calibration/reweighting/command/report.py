"""Prints and describes measured predictions, before and after a correction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from biasboard.ground.columns import IntArray
from biasboard.ground.plain_text import visible
from biasboard.ground.strict_json import JsonValue
from evaluators.calibration.reweighting.command.inputs import Rows, listed
from evaluators.calibration.reweighting.rules import prepared
from evaluators.calibration.reweighting.stored import StoredRules
from evaluators.calibration.reweighting.summary import (
    TITLES,
    ClassRow,
    Range,
    Summary,
    changes,
    losses,
    shown,
    summarise,
)

_N_RESAMPLES = 1000
# Of more classes the table shows the least accurate ones and some of the most accurate.
_MOST_CLASSES, _N_LEAST, _N_MOST = 30, 15, 5
# Width of tables where standard output is no terminal, and that of a terminal below which tables have fewer columns.
_WIDTH, _LEAST_WIDTH = 160, 130


@dataclass(frozen=True)
class Measured:
    """The predictions on some rows, before and, if there are rules, after the correction."""

    title: str
    before: Summary
    after: Summary | None = None

    @property
    def states(self) -> dict[str, Summary]:
        """The summaries by their names."""
        return {"before": self.before} | ({} if self.after is None else {"after": self.after})

    @property
    def warnings(self) -> list[str]:
        """Sentences about what the correction costs; none without a correction."""
        return [] if self.after is None else list(losses(self.before, self.after))

    def as_json(self) -> dict[str, JsonValue]:
        """Return what is measured as JSON."""
        document: dict[str, JsonValue] = {"source": self.title, "n_rows": self.before.n_rows}
        document |= {name: _summary_as_json(summary) for name, summary in self.states.items()}
        return document if self.after is None else {**document, "warnings": [*self.warnings]}


def measured(title: str, rows: Rows, targets: IntArray, stored: StoredRules | None = None) -> Measured:
    """Measure the predictions on some rows.

    Args:
        title: Title of the rows.
        rows: The rows.
        targets: Index of the right class of each row, shape (n,).
        stored: Rules to apply; None for none.
    """
    labels = rows.classes
    before = summarise(targets, rows.probabilities.argmax(axis=1), labels, n_resamples=_N_RESAMPLES)
    if stored is None:
        return Measured(title, before)
    predicted = stored.rules.predict(prepared(rows.probabilities, stored.document.map))
    return Measured(title, before, summarise(targets, predicted, labels, n_resamples=_N_RESAMPLES))


def print_measured(report: Measured, warnings: Iterable[str] | None = None) -> None:
    """Print the table of classes, the table of measures, and what the correction gives and costs.

    Args:
        report: The measured predictions.
        warnings: Sentences to warn with; None for those that follow from the predictions.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, _WIDTH))
    console.print(_class_table(report, is_narrow=console.width < _LEAST_WIDTH))
    if len(report.before.classes) > _MOST_CLASSES:
        print(f"{len(report.before.classes)} classes; --json prints all of them")
    console.print(_measure_table(report))
    for measure in (report.after or report.before).measures:
        if measure.reason is not None:
            print(f"without a value: {TITLES[measure.name]} ({measure.reason})")
    if report.after is not None:
        print(f"traded: {changes(report.before, report.after)}")
    for line in report.warnings if warnings is None else warnings:
        print(f"warning: {visible(line)}")


def print_notes(rows: Rows) -> None:
    """Print the number of rows and classes of an input, and what was taken of it."""
    print(f"{visible(rows.source)}: {len(rows):,} rows, {len(rows.classes)} classes")
    for note in rows.notes:
        print(f"  {note}")
    if rows.without_rows:
        names = listed([visible(name) for name in rows.without_rows])
        print(
            f"  warning: no row is of {names}; if these columns are no classes, name those that are with --classes, or "
            "leave columns out with --ignore"
        )


def _class_table(report: Measured, *, is_narrow: bool) -> Table:
    """Return the table of classes; a narrow one does not say how often each is predicted."""
    table = Table(title=Text(visible(report.title)), title_justify="left")
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    names = [*report.states] if report.after is not None else [""]
    for name in () if is_narrow else names:
        table.add_column(f"predicted {name}".strip(), justify="right")
    for name in names:
        table.add_column(name if is_narrow and name else f"accuracy {name}".strip(), justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for rows in _some(list(zip(*(summary.classes for summary in report.states.values()), strict=True))):
        cells = [] if is_narrow else [f"{row.n_predicted:,}" for row in rows]
        cells += [cell for row in rows for cell in (shown(row.accuracy), _interval(row.interval))]
        table.add_row(Text(visible(rows[0].label)), f"{rows[0].n_rows:,}", *cells)
    return table


def _some(classes: Sequence[tuple[ClassRow, ...]]) -> Sequence[tuple[ClassRow, ...]]:
    """Return the rows of all classes, or of many those of the least and the most accurate ones."""
    if len(classes) <= _MOST_CLASSES:
        return classes
    known = [rows for rows in classes if rows[0].accuracy is not None]
    ranked = sorted(known, key=lambda rows: rows[0].accuracy or 0.0)
    return [*ranked[:_N_LEAST], *ranked[max(_N_LEAST, len(ranked) - _N_MOST) :]]


def _measure_table(report: Measured) -> Table:
    table = Table()
    table.add_column("measure")
    for name in report.states if report.after is not None else ("value",):
        table.add_column(name, justify="right")
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for measures in zip(*(summary.measures for summary in report.states.values()), strict=True):
        cells = [cell for measure in measures for cell in (shown(measure.value), _interval(measure.interval))]
        table.add_row(TITLES[measures[0].name], *cells)
    return table


def _interval(interval: Range | None) -> str:
    return "" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"


def _summary_as_json(summary: Summary) -> JsonValue:
    classes: list[JsonValue] = [
        {
            "label": row.label,
            "n_rows": row.n_rows,
            "n_predicted": row.n_predicted,
            "value": row.accuracy,
            **_ends(row.interval),
        }
        for row in summary.classes
    ]
    measures: list[JsonValue] = [
        {"name": measure.name, "value": measure.value, "reason": measure.reason, **_ends(measure.interval)}
        for measure in summary.measures
    ]
    return {"classes": classes, "measures": measures}


def _ends(interval: Range | None) -> dict[str, JsonValue]:
    return {"low": None, "high": None} if interval is None else {"low": interval.low, "high": interval.high}
