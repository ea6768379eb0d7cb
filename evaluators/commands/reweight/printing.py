"""Prints and describes measured predictions, before and after a correction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluators.commands.reweight.rows import Rows, shortened
from evaluators.reweighting.fitting import prepared
from evaluators.reweighting.stored import StoredRules
from evaluators.reweighting.summary import TITLES, ClassRow, Measure, Range, Summary, summarise
from evaluators.reweighting.traded import changes, losses
from schemas.columns import IntArray
from schemas.plain_text import visible
from schemas.strict_json import JsonValue

_N_RESAMPLES = 1000
_MOST_CLASSES = 30
_N_LEAST, _N_MOST = 15, 5
_WIDTH = 160
"""Width of tables where standard output is no terminal."""
_LEAST_WIDTH = 130
"""Width of a terminal below which tables have fewer columns."""


@dataclass(frozen=True)
class Measured:
    """The predictions on some rows, before and, if there are rules, after the correction."""

    title: str
    before: Summary
    after: Summary | None = None


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


def print_measured(found: Measured, warnings: Iterable[str] | None = None) -> None:
    """Print the table of classes, the table of measures, and what was traded.

    Args:
        found: The measured predictions.
        warnings: Sentences about what was traded; None for those that follow from the predictions.
    """
    console = wide_console()
    console.print(_class_table(found, is_narrow=is_narrow(console)))
    if len(found.before.classes) > _MOST_CLASSES:
        print(f"{len(found.before.classes)} classes; --json prints all of them")
    console.print(_measure_table(found))
    for measure in (found.after or found.before).measures:
        if measure.reason is not None:
            print(f"without a value: {TITLES[measure.name]} ({measure.reason})")
    if found.after is not None:
        print(f"traded: {changes(found.before, found.after)}")
    for line in losses(found.before, found.after) if warnings is None and found.after else warnings or ():
        print(f"warning: {visible(line)}")


def wide_console() -> Console:
    """Return a console that is as wide as the terminal, or wide enough for any table where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, _WIDTH))


def is_narrow(console: Console) -> bool:
    """Return True if a table of all columns does not fit, so that some have to go."""
    return console.width < _LEAST_WIDTH


def print_notes(rows: Rows) -> None:
    """Print the number of rows and classes of an input, and what was taken of it."""
    print(f"{visible(rows.source)}: {len(rows):,} rows, {len(rows.classes)} classes")
    for note in rows.notes:
        print(f"  {note}")
    if rows.without_rows:
        names = shortened([visible(name) for name in rows.without_rows])
        print(
            f"  warning: no row is of {names}; if these columns are no classes, name those that are with --classes, or "
            "leave columns out with --ignore"
        )


def _class_table(found: Measured, *, is_narrow: bool) -> Table:
    """Return the table of classes; a narrow one does not tell how often each is predicted."""
    table = Table(title=Text(visible(found.title)), title_justify="left")
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    names = ("before", "after") if found.after is not None else ("",)
    for one in () if is_narrow else names:
        table.add_column(f"predicted {one}".strip(), justify="right")
    for one in names:
        heading = one if is_narrow and one else f"accuracy {one}".strip()
        table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    pairs = list(zip(found.before.classes, (found.after or found.before).classes, strict=True))
    for old, new in _shown(pairs):
        states = (old, new) if found.after is not None else (old,)
        cells = [f"{old.n_rows:,}", *(() if is_narrow else (f"{state.n_predicted:,}" for state in states))]
        for state in states:
            cells += [_number(state.accuracy), _interval(state.interval)]
        table.add_row(Text(visible(old.label)), *cells)
    return table


def _shown(pairs: Sequence[tuple[ClassRow, ClassRow]]) -> Iterable[tuple[ClassRow, ClassRow]]:
    """Return all classes, or of many the least and the most accurate ones."""
    if len(pairs) <= _MOST_CLASSES:
        return pairs
    known = [pair for pair in pairs if pair[0].accuracy is not None]
    ranked = sorted(known, key=lambda pair: pair[0].accuracy or 0.0)
    return [*ranked[:_N_LEAST], *ranked[max(_N_LEAST, len(ranked) - _N_MOST) :]]


def _measure_table(found: Measured) -> Table:
    table = Table()
    table.add_column("measure")
    names = ("before", "after") if found.after is not None else ("value",)
    for one in names:
        table.add_column(one, justify="right")
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for old, new in zip(found.before.measures, (found.after or found.before).measures, strict=True):
        states = (old, new) if found.after is not None else (old,)
        cells = [cell for state in states for cell in (_number(state.value), _interval(state.interval))]
        table.add_row(TITLES[old.name], *cells)
    return table


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def _interval(interval: Range | None) -> str:
    return "" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"


def json_of(found: Measured) -> dict[str, JsonValue]:
    """Return measured predictions as JSON."""
    told: dict[str, JsonValue] = {"source": found.title, "n_rows": found.before.n_rows}
    told["before"] = _summary(found.before)
    if found.after is not None:
        told["after"] = _summary(found.after)
        told["warnings"] = list(losses(found.before, found.after))
    return told


def _summary(summary: Summary) -> JsonValue:
    return {
        "classes": [_class(one) for one in summary.classes],
        "measures": [_measure(one) for one in summary.measures],
    }


def _class(one: ClassRow) -> JsonValue:
    return {
        "label": one.label,
        "n_rows": one.n_rows,
        "n_predicted": one.n_predicted,
        "value": one.accuracy,
        **_ends(one.interval),
    }


def _measure(one: Measure) -> JsonValue:
    return {"name": one.name, "value": one.value, "reason": one.reason, **_ends(one.interval)}


def _ends(interval: Range | None) -> dict[str, JsonValue]:
    return {"low": None if interval is None else interval.low, "high": None if interval is None else interval.high}
