"""The command ``python -m evaluators reweight compare``: compares solvers and objectives on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from evaluators.commands.reweight.choices import MinMean, checked, settings_of
from evaluators.commands.reweight.drawing import check_plots, draw_comparison
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
    names_in,
    test_choice,
)
from evaluators.commands.reweight.printing import is_narrow, print_notes, wide_console
from evaluators.commands.reweight.reading import read_rows
from evaluators.commands.reweight.rows import InputChoice, Rows, Wanted
from evaluators.reweighting import comparison
from evaluators.reweighting.comparison import COMPARED, UNCORRECTED, Compared, Difference, compared, differences
from evaluators.reweighting.fitting import PAPER, Settings
from evaluators.reweighting.objectives import OBJECTIVES
from evaluators.reweighting.problem import solver_names
from evaluators.reweighting.summary import TITLES
from schemas import strict_json
from schemas.command_line import one_line_errors
from schemas.errors import ConfigError
from schemas.progress import progress, working
from schemas.strict_json import JsonValue

_FRACTION = 0.3
_SEEDS = "0,1,2"
_MOST_PAIRS = 6
_FEW_SPLITS = 5
_PAPER = "paper"


@one_line_errors()
def compare_command(
    path: Input,
    solvers: Annotated[
        str | None, typer.Option(help=f"Solvers separated by commas; by default all: {','.join(solver_names())}.")
    ] = None,
    objectives: Annotated[
        str, typer.Option(help=f"Objectives separated by commas, of {', '.join(OBJECTIVES)}.")
    ] = Settings.objective,
    paper: Annotated[
        bool, typer.Option("--paper", help="Also fit with all choices of the paper, membership functions among them.")
    ] = False,
    min_mean: MinMean = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(
            help=f"Share of the rows of each class to hold out, at random for each seed. Default: {_FRACTION}."
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help=f"Seeds separated by commas: a split and a fit for each. Default: {_SEEDS}; with --test: 0."),
    ] = None,
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
    """Compare solvers and objectives in one table, on the rows that they were fitted on and on held-out ones.

    Every solver is fitted for every objective on random splits, or on FILE with --test. The table names no winner, but
    what differs beyond two standard errors.
    """
    choice = choice_of(path, kind, label_column, prefix, classes, ignore, config, split)
    of_test = test_choice(choice, test, test_split)
    if of_test is not None and (validation_fraction is not None or seeds is not None):
        option = "--seeds" if validation_fraction is None else "--validation-fraction"
        raise ConfigError(
            f"{option} makes random splits, and --test or --test-split names the rows to measure on; leave one out"
        )
    numbers = [0] if of_test is not None else _numbers(_SEEDS if seeds is None else seeds)
    methods = _methods(solvers, objectives, min_mean, paper=paper)
    check_plots(plots)
    with working(f"reading {path}"):
        inputs, splits = _splits(choice, of_test, _fraction(validation_fraction), numbers)
    with progress("fitting", len(methods) * len(splits)) as advance:
        found = compared(splits, methods, lambda: advance(1))
    drawn = [] if plots is None else [draw_comparison(plots, found)]
    if as_json:
        print(strict_json.dumps(_as_json(found, drawn)), end="")
        return
    for rows in inputs:
        print_notes(rows)
    _print(found, splits, drawn)


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(one) for one in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or len({*numbers}) < len(numbers) or min(numbers) < 0:
        raise ConfigError(f"--seeds {text}: give whole numbers separated by commas, each once, such as 0,1,2")
    return numbers


def _fraction(given: float | None) -> float:
    fraction = _FRACTION if given is None else given
    if not 0 < fraction < 1:
        raise ConfigError(f"--validation-fraction {fraction}: give a share between 0 and 1")
    return fraction


def _methods(solvers: str | None, objectives: str, min_mean: str | None, *, paper: bool) -> dict[str, Settings]:
    """Return the choices of each fit by the name of the method."""
    names = solver_names() if solvers is None else names_in(solvers)
    found = {}
    for solver in names:
        for objective in names_in(objectives):
            given = {"solver": solver, "objective": objective}
            found[f"{solver} {objective}"] = checked(settings_of(paper=False, min_mean=min_mean, given=given))
    if paper:
        found[_PAPER] = PAPER
    if not found:
        raise ConfigError("no solver or no objective is named; leave --solvers and --objectives out, or name some")
    return found


def _splits(
    choice: InputChoice, of_test: InputChoice | None, fraction: float, seeds: Sequence[int]
) -> tuple[list[Rows], list[comparison.Split]]:
    """Return the inputs, and what is fitted on and measured on: the given rows, or random shares of one input."""
    rows = read_rows(choice, Wanted())
    targets = rows.targets()
    if of_test is None:
        splits = [comparison.random_split(rows.probabilities, targets, fraction, seed) for seed in seeds]
        if not len(splits[0].held_out_targets):
            raise ConfigError(
                f"--validation-fraction {fraction}: holds out no row, as all classes are small; give a larger share"
            )
        return [rows], splits
    test_rows = read_rows(of_test, Wanted(rows.classes))
    one = comparison.Split(rows.probabilities, targets, test_rows.probabilities, test_rows.targets())
    return [rows, test_rows], [one]


def _print(found: Sequence[Compared], splits: Sequence[comparison.Split], drawn: Sequence[Path]) -> None:
    print(
        f"{len(splits)} {'split' if len(splits) == 1 else 'splits'}: fitted on {len(splits[0].targets):,} rows, "
        "measured on "
        f"{len(splits[0].held_out_targets):,} held-out ones"
    )
    lost = {*splits[0].targets.tolist()} - {*splits[0].held_out_targets.tolist()}
    if lost:
        print(f"warning: {len(lost)} classes have no held-out row, and count nowhere; hold out more")
    console = wide_console()
    console.print(_table(found, is_narrow=is_narrow(console)))
    for line in _statements(found, len(splits)):
        print(line)
    for one in drawn:
        print(f"chart {one}")


def _table(found: Sequence[Compared], *, is_narrow: bool) -> Table:
    """Return the table of all methods; in a narrow one errors stand below the means."""
    title = "Means over the splits, ± standard error"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD if is_narrow else box.HEAVY_HEAD)
    table.padding = (0, 0, 0, 1) if is_narrow else (0, 1)
    table.add_column("method", no_wrap=is_narrow)
    if not is_narrow:
        table.add_column("rows")
    for name in (*COMPARED, "seconds"):
        table.add_column(TITLES.get(name, name), justify="right")
    for method in found:
        for held_out in (False, True):
            rows = "held out" if held_out else "fitted"
            name = "" if held_out else method.name
            first = [f"{name or f'  {rows}'}"] if is_narrow else [name, rows]
            cells = [_cell(method, one, held_out=held_out, between="\n" if is_narrow else " ") for one in COMPARED]
            seconds = f"{method.seconds:.2f}" if held_out and method.name != UNCORRECTED else ""
            table.add_row(*first, *cells, seconds)
        table.add_section()
    return table


def _cell(method: Compared, measure: str, *, held_out: bool, between: str) -> str:
    mean, error = method.mean(measure, held_out=held_out), method.error(measure, held_out=held_out)
    if mean is None:
        return "none"
    return f"{mean:.4f}" if error is None else f"{mean:.4f}{between}±{error:.4f}"


def _statements(found: Sequence[Compared], n_splits: int) -> Iterator[str]:
    """Yield a sentence about each measure: the differences on held-out rows beyond two standard errors."""
    if n_splits < 2:
        yield "one split tells nothing about chance; give several --seeds, without --test"
        return
    n_pairs = n_clear = 0
    for measure in COMPARED:
        pairs = differences(found, measure)
        clear = [pair for pair in pairs if pair.is_clear]
        n_pairs, n_clear = n_pairs + len(pairs), n_clear + len(clear)
        first = [pair for pair in clear if pair.one == UNCORRECTED]
        told = "; ".join(map(_told, [pair for pair in clear if pair.one != UNCORRECTED][:_MOST_PAIRS])) or "nothing"
        n_more = len(clear) - len(first) - _MOST_PAIRS
        yield (
            f"{TITLES[measure]}, held out: {_of_uncorrected(first)}; among corrections {told}"
            f"{f'; and {n_more} more pairs' if n_more > 0 else ''}"
        )
    few = "above all of so few splits, " if n_splits < _FEW_SPLITS else ""
    yield (
        f"{n_clear} of {n_pairs} differences, told above, are beyond two standard errors. Random splits share rows, so "
        f"that the errors are too small, {few}and of many pairs some differ by chance."
    )


def _of_uncorrected(pairs: Sequence[Difference]) -> str:
    """Return how many corrections differ from the uncorrected probabilities, and by how much."""
    if not pairs:
        return "no correction differs from uncorrected"
    if len(pairs) <= _MOST_PAIRS:
        return "from uncorrected differ " + "; ".join(
            f"{pair.other} {-pair.mean:+.4f} ±{pair.error:.4f}" for pair in pairs
        )
    changes = sorted(-pair.mean for pair in pairs)
    return f"from uncorrected differ {len(pairs)} corrections, by {changes[0]:+.4f} to {changes[-1]:+.4f}"


def _told(pair: Difference) -> str:
    return f"{pair.one} minus {pair.other} {pair.mean:+.4f} ±{pair.error:.4f}"


def _as_json(found: Sequence[Compared], drawn: Sequence[Path]) -> JsonValue:
    return {
        "methods": [_method(one) for one in found],
        "differences": {measure: [_difference(one) for one in differences(found, measure)] for measure in COMPARED},
        "plots": [str(one) for one in drawn],
    }


def _method(one: Compared) -> JsonValue:
    return {
        "name": one.name,
        "seconds": one.seconds,
        "splits": [
            {"fitted": _values(figures.fitted), "held_out": _values(figures.held_out)} for figures in one.figures
        ],
        "mean": {measure: one.mean(measure) for measure in COMPARED},
        "standard_error": {measure: one.error(measure) for measure in COMPARED},
    }


def _values(figures: Mapping[str, float | None]) -> JsonValue:
    return dict(figures)


def _difference(one: Difference) -> JsonValue:
    return {**one._asdict(), "is_beyond_two_standard_errors": one.is_clear}
