"""The command ``python -m evaluators reweight fit``: fits a correction and writes its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, cast

import typer

from evaluators.commands.reweight.drawing import draw_measured, draw_trades
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
from evaluators.commands.reweight.rows import Rows, Wanted, are_numbers, check_place
from evaluators.reweighting.comparison import UNCORRECTED
from evaluators.reweighting.fitting import PAPER, Fit, Settings, fit_rules
from evaluators.reweighting.objectives import OBJECTIVES, ObjectiveName
from evaluators.reweighting.problem import solver_names
from evaluators.reweighting.rules import GRIDS, MAPS, Grid, MapKind
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
        Path, typer.Option(help="File to write the rules to, as JSON; an earlier file of rules is replaced.")
    ],
    objective: Annotated[
        str | None, typer.Option(help=f"Measure to improve: {', '.join(OBJECTIVES)}. Default: {Settings.objective}.")
    ] = None,
    min_mean: Annotated[
        str | None,
        typer.Option(
            help="Floor under the mean class accuracy on the fitted rows: baseline (that before the correction, the "
            "default), balanced (also 95 % of what balanced weights reach), none, or a number."
        ),
    ] = None,
    correction: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(MAPS)}: a weight per class (default), weights or membership functions, or these alone."
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(help=f"Weights that solver anneal searches: {', '.join(GRIDS)}. Default: {Settings.grid}."),
    ] = None,
    n_weights: Annotated[
        int | None,
        typer.Option(min=2, help="Number of these weights; by default 61 on the log and 30 on the linear grid."),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(solver_names())}; anneal alone has membership functions. Default: {Settings.solver}."
        ),
    ] = None,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Start from the choices of the paper: the Gini index alone, all rules, annealing, no floor."
        ),
    ] = False,
    validation_fraction: Annotated[
        float, typer.Option(help="Share of the rows of each class that choose among the solver's candidates.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the annealing and of the choice of these rows.")] = 0,
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
    given = {
        "objective": cast("ObjectiveName | None", objective),
        "correction": cast("MapKind | None", correction),
        "grid": cast("Grid | None", grid),
        "n_weights": n_weights,
        "solver": solver,
    }
    settings = settings_of(paper=paper, min_mean=min_mean, given=given)
    settings = checked(replace(settings, validation_fraction=validation_fraction, seed=seed))
    choice = choice_of(path, kind, label_column, prefix, classes, ignore, config, split)
    of_test = test_choice(choice, test, test_split)
    _check_out(out, path, test)
    with working(f"reading {path}"):
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
    done = _Done(found, settings, rows, test_rows, tables, out, drawn)
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


def settings_of(*, paper: bool, min_mean: str | None, given: Mapping[str, object]) -> Settings:
    """Return the choices of a fit: those that are given, and of the others those of the paper or the defaults.

    Raises:
        ConfigError: the floor is no number in [0, 1].
    """
    start = PAPER if paper else Settings()
    floor = start.min_mean if min_mean is None else _floor(min_mean)
    known = {name: value for name, value in given.items() if value is not None}
    return replace(start, min_mean=floor, **known)  # type: ignore[arg-type]


def checked(settings: Settings) -> Settings:
    """Return the choices of a fit, which exist and go together.

    Raises:
        ConfigError: they do not.
    """
    try:
        settings.check()
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return settings


def _floor(text: str) -> Literal["baseline", "balanced"] | float | None:
    if text == "none":
        return None
    if text in ("baseline", "balanced"):
        return cast('Literal["baseline", "balanced"]', text)
    try:
        floor = float(text)
    except ValueError:
        floor = -1.0
    if not 0 <= floor <= 1:
        raise ConfigError(f"--min-mean {text}: give baseline, balanced, none, or a number from 0 to 1")
    return floor


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
