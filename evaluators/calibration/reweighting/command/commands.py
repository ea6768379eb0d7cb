"""The commands of ``python -m evaluators reweight`` (evaluate, fit and apply), with their options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import replacing
from biasboard.ground.options import Only, with_options
from biasboard.ground.progress import working
from evaluators.calibration.reweighting.command.class_charts import check_folder, draw_measured
from evaluators.calibration.reweighting.command.class_report import measured, print_measured, print_notes
from evaluators.calibration.reweighting.command.prediction_files import WRITERS
from evaluators.calibration.reweighting.command.readers import read_rows
from evaluators.calibration.reweighting.command.rows import InputChoice, are_numbers
from evaluators.calibration.reweighting.fitting import PRESETS, UNCORRECTED, fit_rules, preset_settings
from evaluators.calibration.reweighting.rules import prepared
from evaluators.calibration.reweighting.rules_file import StoredRules
from schemas.outputs.documents import FittedRules, MeasuredClasses, RulesCandidate
from schemas.printed import with_format

Input: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet or NPZ file of class probabilities, vectors of DCS, or the folder of a finished run.",
    ),
]
Plots: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Folder to draw charts into, as SVG: class accuracies with intervals (classes) and Lorenz curves (lorenz)."
    ),
]
Test: TypeAlias = Annotated[
    Path | None, typer.Option(help="Rows of the same classes that nothing is fitted on, to measure on.")
]
TestSplits: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Split of a run to measure on, of --test or of the same run. Repeatable."),
]


@one_line_errors()
@with_format(MeasuredClasses)
@with_options
def evaluate_command(
    path: Input,
    choice: InputChoice,
    rules: Annotated[
        Path | None,
        typer.Option(help="File of rules that 'fit' wrote: measure before and after. Classes are matched by name."),
    ] = None,
    plots: Plots = None,
) -> MeasuredClasses:
    """Print the accuracy of each class and how even they are, with intervals; with --rules also after a correction."""
    choice = replace(choice, path=path)
    stored = None if rules is None else _rules(rules)
    check_folder(plots)
    with working(f"reading {path}"):
        rows = read_rows(choice, None if stored is None else stored.document.classes, gets_rules=stored is not None)
        report = measured(rows.title, rows, stored)
    charts = [] if plots is None else draw_measured(plots, report)
    print_notes(rows)
    print_measured(report)
    for chart in charts:
        print(f"chart {chart}")
    return replace(report.document, plots=tuple(map(str, charts)))


@one_line_errors()
@with_format(FittedRules)
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
    test: Test = None,
    test_split: TestSplits = None,
    plots: Plots = None,
) -> FittedRules:
    """Fit a correction on rows with known classes, write its rules, and print what they give and what they take."""
    try:
        settings = preset_settings(preset, seed)
    except ValueError as error:
        raise ConfigError(f"--preset: {error}") from error
    choice = replace(choice, path=path)
    of_test = _test_choice(choice, test, tuple(test_split or ()))
    _check_out(out, path, None if of_test is None else of_test.path)
    if out.exists():
        try:
            StoredRules.read(out)
        except DataError as error:
            raise ConfigError(f"{out}: exists and holds no rules; choose another name for --out") from error
    check_folder(plots)
    with working(f"reading {path}"):
        rows = read_rows(choice)
        test_rows = None if of_test is None else read_rows(of_test, rows.classes)
    with working(f"fitting {len(rows.classes)} classes on {len(rows):,} rows"):
        fit = fit_rules(rows.probabilities, rows.targets, settings, rows.classes)
        # Stored as numbers if all names are, so that they equal numeric labels in Python.
        names = [int(name) for name in rows.classes] if are_numbers(rows.classes) else rows.classes
        stored = StoredRules.of(fit, settings, names)
        fitted = measured(f"fitted on {rows.title}", rows, stored)
        tested = None if test_rows is None else measured(f"measured on {test_rows.title}", test_rows, stored)
    stored.write(out)
    charts = [] if plots is None else draw_measured(plots, tested or fitted)
    print_notes(rows)
    if test_rows is not None:
        print_notes(test_rows)
    optimism = (
        "these rows were fitted on: the figures after the correction are too good, those of evenness most of all; "
        + ("give other rows with --test" if tested is None else "read those of the other rows below")
    )
    nothing = "nothing better than the uncorrected probabilities was found; these rules change nothing"
    print_measured(fitted, [*([nothing] if fit.chosen == UNCORRECTED else []), *fit.notes, optimism])
    if tested is not None:
        print_measured(tested)
    print(
        f"preset {preset}, {fit.n_evaluations:,} evaluations; of {len(fit.candidates)} candidates '{fit.chosen}' was "
        "taken"
    )
    for chart in charts:
        print(f"chart {chart}")
    print(f"rules {out}")
    return FittedRules(
        rules=str(out),
        notes=tuple(fit.notes),
        candidates=tuple(
            RulesCandidate(**candidate._asdict(), is_chosen=candidate.name == fit.chosen)
            for candidate in fit.candidates
        ),
        n_evaluations=fit.n_evaluations,
        fitted=fitted.document,
        test=None if tested is None else tested.document,
        plots=tuple(map(str, charts)),
    )


@one_line_errors()
@with_format()
@with_options
def apply_command(
    path: Input,
    # The rules name the classes.
    choice: Annotated[InputChoice, Only({"kind", "label_column", "prefix", "ignored", "config", "splits"})],
    rules: Annotated[Path, typer.Option(help="File of rules that 'fit' wrote. Classes are matched by name.")],
    out: Annotated[Path, typer.Option(help="File to write: .csv, .parquet or .npz.")],
) -> None:
    """Apply rules to rows, with or without known classes, and write the predicted class and the corrected shares.

    Beside the columns of the input stand the predicted class (predicted) and the corrected share of each class
    (p_CLASS). Rows that were corrected before are refused.
    """
    if out.suffix not in WRITERS:
        raise ConfigError(f"--out {out}: ends with none of {', '.join(WRITERS)}; name the file with one of them")
    _check_out(out, path, rules)
    stored = _rules(rules)
    choice = replace(choice, path=path)
    with working(f"reading {path}"):
        rows = read_rows(choice, stored.document.classes, needs_labels=False, gets_rules=True)
    with working(f"writing {out}"):
        probabilities = prepared(rows.probabilities, stored.document.map)
        indices = stored.rules.predict(probabilities)
        predicted = [rows.classes[index] for index in indices.tolist()]
        with replacing(out) as temporary:
            WRITERS[out.suffix](temporary, rows, predicted, stored.rules.shares(probabilities))
    print_notes(rows)
    n_changed = int((indices != rows.probabilities.argmax(axis=1)).sum())
    print(f"{n_changed:,} of {len(rows):,} predictions changed")
    if stored.rules.has_functions:
        print("warning: the shares come from membership functions: they rank the classes of a row, no more")
    print(f"predictions {out}")


def _test_choice(choice: InputChoice, test: Path | None, splits: tuple[str, ...]) -> InputChoice | None:
    """Return the input to measure on, which shares no rows with the fit; None if none is named."""
    if test is None and not splits:
        return None
    # Another file may be of another kind, which is recognised anew.
    of_test = replace(choice, splits=splits) if test is None else replace(choice, path=test, kind=None, splits=splits)
    if of_test.path.exists() and choice.path.exists() and of_test.path.samefile(choice.path):
        common = [name for name in splits if name in choice.splits]
        if common or not (splits and choice.splits):
            raise ConfigError(
                f"{of_test.path}: {common[0] if common else 'all rows'} would be fitted on and measured on; name other "
                "rows with --test, or splits of a run with --split and --test-split"
            )
    return of_test


def _rules(path: Path) -> StoredRules:
    if not path.is_file():
        raise DataError(f"--rules {path}: no such file; name a file that 'fit' wrote")
    try:
        return StoredRules.read(path)
    except DataError as error:
        raise DataError(f"--rules {error}; name a file that 'fit' wrote") from error


def _check_out(path: Path, *inputs: Path | None) -> None:
    """Check that a file can be written without destroying an input."""
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a file")
    if any(other is not None and other.exists() and path.exists() and path.samefile(other) for other in inputs):
        raise ConfigError(f"{path}: is an input of this command; choose another name for --out")
