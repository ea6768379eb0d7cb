"""The command ``python -m evaluators reweight fit``: fits a correction and writes its rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from evaluators.commands.reweight.choices import (
    Correction,
    Fraction,
    GridOption,
    MinMean,
    NWeights,
    ObjectiveOption,
    Paper,
    Seed,
    SolverOption,
    checked,
    settings_of,
)
from evaluators.commands.reweight.drawing import check_plots, draw_measured, draw_trades
from evaluators.commands.reweight.options import (
    AsJson,
    Classes,
    Config,
    Ignore,
    Input,
    Kind,
    LabelColumn,
    Plots,
    Prefix,
    Split,
    Test,
    TestSplit,
    choice_of,
    test_choice,
)
from evaluators.commands.reweight.printing import Measured, json_of, measured, print_measured, print_notes
from evaluators.commands.reweight.reading import read_rows
from evaluators.commands.reweight.rows import InputChoice, Rows, Wanted, are_numbers, check_place
from evaluators.reweighting.comparison import UNCORRECTED
from evaluators.reweighting.fitting import Fit, Settings, fit_rules
from evaluators.reweighting.stored import StoredRules
from schemas import strict_json
from schemas.command_line import one_line_errors
from schemas.errors import ConfigError, DataError
from schemas.progress import working
from schemas.strict_json import JsonValue


@one_line_errors()
def fit_command(
    path: Input,
    out: Annotated[
        Path, typer.Option(help="File to write the rules to, as JSON; replaces an earlier file of rules only.")
    ],
    objective: ObjectiveOption = None,
    min_mean: MinMean = None,
    correction: Correction = None,
    grid: GridOption = None,
    n_weights: NWeights = None,
    solver: SolverOption = None,
    paper: Paper = False,
    validation_fraction: Fraction = 0.0,
    seed: Seed = 0,
    test: Test = None,
    test_split: TestSplit = None,
    kind: Kind = None,
    label_column: LabelColumn = "label",
    prefix: Prefix = None,
    classes: Classes = None,
    ignore: Ignore = None,
    config: Config = None,
    split: Split = None,
    plots: Plots = None,
    as_json: AsJson = False,
) -> None:
    """Fit a correction on rows with known classes, write its rules, and print what they give and what they take."""
    given = {"objective": objective, "correction": correction, "grid": grid, "n_weights": n_weights, "solver": solver}
    settings = settings_of(paper=paper, min_mean=min_mean, given=given)
    settings = checked(replace(settings, validation_fraction=validation_fraction, seed=seed))
    choice = choice_of(path, kind, label_column, prefix, classes, ignore, config, split)
    done = _done(choice, test_choice(choice, test, test_split), settings, out, plots)
    if as_json:
        print(strict_json.dumps(_as_json(done)), end="")
    else:
        _print(done)


class _Done(NamedTuple):
    """A fit with everything that is told of it."""

    fit: Fit
    settings: Settings
    rows: Rows
    test_rows: Rows | None
    tables: list[Measured]
    out: Path
    drawn: list[Path]


def _done(choice: InputChoice, of_test: InputChoice | None, settings: Settings, out: Path, plots: Path | None) -> _Done:
    """Read the rows, fit the rules, write them, and draw the charts."""
    _check_out(out, choice.path, None if of_test is None else of_test.path)
    check_plots(plots)
    with working(f"reading {choice.path}"):
        rows = read_rows(choice, Wanted())
        targets = rows.targets()
        test_rows = None if of_test is None else read_rows(of_test, Wanted(rows.classes))
        test_targets = None if test_rows is None else test_rows.targets()
    with working(f"fitting {len(rows.classes)} classes on {len(rows):,} rows"):
        found = fit_rules(rows.probabilities, targets, settings, rows.classes)
        stored = StoredRules.of(found, settings, _named(rows.classes))
        tables = [measured(f"fitted on {rows.title}", rows, targets, stored)]
        if test_rows is not None and test_targets is not None:
            tables.append(measured(f"measured on {test_rows.title}", test_rows, test_targets, stored))
    stored.write(out)
    drawn = [] if plots is None else [*draw_measured(plots, tables[-1]), draw_trades(plots, found)]
    return _Done(found, settings, rows, test_rows, tables, out, drawn)


def _check_out(out: Path, *inputs: Path | None) -> None:
    """Check that the rules replace nothing but rules.

    Raises:
        ConfigError: another kind of file stands there.
    """
    check_place(out, *inputs)
    if not out.exists():
        return
    try:
        StoredRules.read(out)
    except DataError as error:
        raise ConfigError(f"{out}: exists and holds no rules; choose another name for --out") from error


def _named(classes: Sequence[str]) -> list[object]:
    """Return the names of the classes, as numbers if all are, so that Python compares them with such labels."""
    return [int(name) for name in classes] if are_numbers(classes) else list(classes)


def _print(done: _Done) -> None:
    print_notes(done.rows)
    if done.test_rows is not None:
        print_notes(done.test_rows)
    notes = [*done.fit.notes, _optimism(done)]
    if done.fit.chosen == UNCORRECTED:
        notes.insert(0, "nothing better than the uncorrected probabilities was found; these rules change nothing")
    print_measured(done.tables[0], notes)
    for table in done.tables[1:]:
        print_measured(table)
    settings = done.settings
    print(
        f"solver {settings.solver}, objective {settings.objective}, {done.fit.n_evaluations:,} evaluations; of "
        f"{len(done.fit.trades)} candidates '{done.fit.chosen}' was taken"
    )
    for one in done.drawn:
        print(f"chart {one}")
    print(f"rules {done.out}")


def _optimism(done: _Done) -> str:
    """Return a sentence that says why the figures on the fitted rows are too good."""
    share = done.settings.validation_fraction
    seen = (
        f"{share:.0%} of these rows chose among candidates, and the others were fitted on"
        if share
        else "these rows were fitted on"
    )
    remedy = "read those of the other rows below" if len(done.tables) > 1 else "give other rows with --test"
    return f"{seen}: the figures after the correction are too good, those of evenness most of all; {remedy}"


def _as_json(done: _Done) -> JsonValue:
    trades: list[JsonValue] = [
        {**trade._asdict(), "is_chosen": trade.name == done.fit.chosen} for trade in done.fit.trades
    ]
    return {
        "rules": str(done.out),
        "notes": list(done.fit.notes),
        "candidates": trades,
        "n_evaluations": done.fit.n_evaluations,
        "fitted": json_of(done.tables[0]),
        "test": json_of(done.tables[1]) if len(done.tables) > 1 else None,
        "plots": [str(one) for one in done.drawn],
    }
