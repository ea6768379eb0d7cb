"""The commands of ``python -m evaluators reweight`` (evaluate, fit and apply), with their options."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import replacing
from biasboard.ground.options import Only, with_options
from biasboard.ground.plain_text import printable, protected, visible
from biasboard.ground.progress import working
from evaluators.calibration.reweighting.accuracy_report import (
    TITLES,
    AccuracyReport,
    ReportedValue,
    accuracy_report,
    losses,
)
from evaluators.calibration.reweighting.command.inputs import (
    PREDICTED,
    PREFIX,
    InputChoice,
    LabelledRows,
    are_numbers,
    read_rows,
)
from evaluators.calibration.reweighting.fitting import PRESETS, document_of, fit_rules, preset_settings
from evaluators.calibration.reweighting.rules import prepared, read_rules, rules_of, write_rules

Input: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="CSV, Parquet or NPZ file of class probabilities, or the folder of a finished run."
    ),
]


@one_line_errors()
@with_options
def evaluate_command(
    path: Input,
    choice: InputChoice,
    rules: Annotated[
        Path | None,
        typer.Option(help="File of rules that 'fit' wrote: measure before and after. Classes are matched by name."),
    ] = None,
    measures: Annotated[
        Path | None,
        typer.Option(help="CSV file to write the accuracy of each class and all measures to, with intervals."),
    ] = None,
) -> None:
    """Print the accuracy of each class and how even they are, with intervals; with --rules also after a correction."""
    _check_out(measures, path, rules, flag="--measures", endings=(".csv",))
    if rules is not None and choice.classes is not None:
        raise ConfigError("--classes is of no use with --rules, which name the classes; leave it out")
    stored = None if rules is None else read_rules(rules)
    with working(f"reading {path}"):
        rows = read_rows(path, choice, None if stored is None else stored.classes)
        predictions = {"before": rows.probabilities.argmax(axis=1)}
        if stored is not None:
            predictions["after"] = rules_of(stored).predict(prepared(rows.probabilities, stored.map))
        reports = {name: accuracy_report(rows.targets, each, rows.classes) for name, each in predictions.items()}
    _print_notes(rows)
    title = Path(rows.source).name
    _print_reports(title, reports)
    if stored is not None:
        for line in losses(rows.targets, predictions["before"], predictions["after"], rows.classes):
            print(f"warning: {visible(line)}")
    if measures is not None:
        with replacing(measures) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["rows", "correction", *ReportedValue._fields])
            for correction, report in reports.items():
                for kind, name, *numbers in report:
                    writer.writerow([protected(title), correction, kind, protected(name), *numbers])
        print(f"measures {measures}")


@one_line_errors()
@with_options
def fit_command(
    path: Input,
    choice: InputChoice,
    out: Annotated[
        Path, typer.Option(help="File to write the rules to, as JSON; replaces an earlier file of rules only.")
    ],
    preset: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(PRESETS)}: weights for accuracies that are high and even, those of a class-balanced "
            "logistic model, or the paper's rules for the smallest Gini index, which can lower every accuracy."
        ),
    ] = next(iter(PRESETS)),
    seed: Annotated[int, typer.Option(help="Seed of the search of preset paper.", min=0)] = 0,
) -> None:
    """Fit a correction on rows with known classes, write its rules, and print what to doubt about them."""
    try:
        settings = preset_settings(preset, seed)
    except ValueError as error:
        raise ConfigError(f"--preset: {error}") from error
    _check_out(out, path)
    if out.exists():
        try:
            read_rules(out)
        except DataError as error:
            raise ConfigError(f"{out}: exists and holds no rules; choose another name for --out") from error
    with working(f"reading {path}"):
        rows = read_rows(path, choice)
    with working(f"fitting {len(rows.classes)} classes on {len(rows.labels):,} rows"):
        fit = fit_rules(rows.probabilities, rows.targets, settings, rows.classes)
        # Stored as numbers if all names are, so that they equal numeric labels in Python.
        names = [int(name) for name in rows.classes] if are_numbers(rows.classes) else rows.classes
    write_rules(out, document_of(fit, settings, names))
    _print_notes(rows)
    if fit.ranks[0] == min(fit.ranks):
        print("warning: nothing better than the uncorrected probabilities was found; these rules change nothing")
    for note in fit.report.notes:
        print(f"warning: {visible(note)}")
    print(f"rules {out}")
    print(f"measure them on rows that they were not fitted on: evaluate FILE --rules {out}")


@one_line_errors()
@with_options
def apply_command(
    path: Input,
    # The rules name the classes.
    choice: Annotated[InputChoice, Only({"label_column", "config", "splits"})],
    rules: Annotated[Path, typer.Option(help="File of rules that 'fit' wrote. Classes are matched by name.")],
    out: Annotated[Path, typer.Option(help="File to write: .csv or .parquet.")],
) -> None:
    """Apply rules to rows, with or without known classes, and write the predicted class and the corrected shares.

    Beside the columns of the input stand the predicted class (predicted) and the corrected share of each class
    (p_CLASS). Rows that were corrected before are refused.
    """
    _check_out(out, path, rules, flag="--out", endings=(".csv", ".parquet"))
    stored = read_rules(rules)
    fitted = rules_of(stored)
    # Imported only here, because it takes longer than the checks above.
    import pandas as pd

    with working(f"reading {path}"):
        rows = read_rows(path, choice, stored.classes, needs_labels=False)
    with working(f"writing {out}"):
        probabilities = prepared(rows.probabilities, stored.map)
        indices = fitted.predict(probabilities)
        added = {PREDICTED: [rows.classes[index] for index in indices.tolist()]}
        shares = fitted.shares(probabilities).T
        added |= {f"{PREFIX}{name}": of_class for name, of_class in zip(rows.classes, shares, strict=True)}
        frame = pd.concat([rows.columns, pd.DataFrame(added)], axis=1)
        with replacing(out) as temporary:
            if out.suffix == ".parquet":
                frame.to_parquet(temporary, index=False)
            else:
                frame.map(_cell).rename(columns=_cell).to_csv(temporary, index=False, lineterminator="\n")
    _print_notes(rows)
    n_changed = int((indices != rows.probabilities.argmax(axis=1)).sum())
    print(f"{n_changed:,} of {len(rows.labels):,} predictions changed")
    if fitted.has_functions:
        print("warning: the shares come from membership functions: they rank the classes of a row, no more")
    print(f"predictions {out}")


def _check_out(path: Path | None, *inputs: Path | None, flag: str = "", endings: tuple[str, ...] = ()) -> None:
    """Check that a file can be written without destroying an input; None is no file."""
    if path is None:
        return
    if endings and path.suffix not in endings:
        raise ConfigError(f"{flag} {path}: does not end with {' or '.join(endings)}; name the file so")
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a file")
    if any(other is not None and other.exists() and path.exists() and path.samefile(other) for other in inputs):
        raise ConfigError(f"{path}: is an input of this command; choose another name")


def _print_reports(title: str, reports: Mapping[str, AccuracyReport]) -> None:
    """Print the accuracy of each class and the measures."""
    table = Table(title=Text(visible(title)), title_justify="left")
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    for name in reports:
        table.add_column(name if len(reports) > 1 else "accuracy", justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for values in zip(*reports.values(), strict=True):
        one = values[0]
        if one.kind == "class":
            table.add_row(Text(printable(one.name, most=80)), f"{one.n_rows:,}", *_cells(values))
        else:
            table.add_row(TITLES[one.name], "", *_cells(values))
    console = Console()
    # In a file, lines may be longer than rich takes them to be.
    (console if console.is_terminal else Console(width=max(console.width, 120))).print(table)
    for one in [*reports.values()][-1]:
        if one.reason is not None and one.kind == "measure":
            print(f"without a value: {TITLES[one.name]} ({one.reason})")


def _cells(values: Sequence[ReportedValue]) -> Iterator[str]:
    """Yield each value and its interval."""
    for one in values:
        yield "none" if one.value is None else f"{one.value:.4f}"
        yield "" if one.low is None else f"{one.low:.4f} to {one.high:.4f}"


def _cell(value: object) -> object:
    """Return a value as a cell that is no formula; classes are often called -1 and 1, which are none."""
    return protected(value) if isinstance(value, str) and not re.fullmatch("-?[0-9]+", value) else value


def _print_notes(rows: LabelledRows) -> None:
    """Print the number of rows and classes of an input, and notes about rows that were left out."""
    print(f"{visible(rows.source)}: {len(rows.labels):,} rows, {len(rows.classes)} classes")
    for note in rows.notes:
        print(f"  {note}")
