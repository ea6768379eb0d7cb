"""Options of a fit, and the choices that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias, cast

import typer

from evaluators.reweighting.fitting import PAPER, Settings
from evaluators.reweighting.objectives import OBJECTIVES
from evaluators.reweighting.problem import solver_names
from evaluators.reweighting.rules import GRIDS, MAPS
from schemas.errors import ConfigError

ObjectiveOption: TypeAlias = Annotated[
    str | None, typer.Option(help=f"Measure to improve: {', '.join(OBJECTIVES)}. Default: {Settings.objective}.")
]
MinMean: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Floor under the mean class accuracy on the fitted rows: baseline (that before the correction, the "
        "default), balanced (also 95 % of what balanced weights reach), none, or a number."
    ),
]
Correction: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(MAPS)}: a weight per class (default), weights or membership functions, or these alone."
    ),
]
GridOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help=f"Weights that solver anneal searches: {', '.join(GRIDS)}. Default: {Settings.grid}."),
]
NWeights: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Number of these weights; by default 61 from 0.001 to 1 on the log, and 30 (k/30) on the linear grid.",
    ),
]
SolverOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(solver_names())}; anneal alone has membership functions. Default: {Settings.solver}."
    ),
]
Paper: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--paper", help="Start from the choices of the paper: the Gini index alone, all rules, annealing, no floor."
    ),
]
Fraction: TypeAlias = Annotated[
    float, typer.Option(help="Share of the rows of each class that choose among the solver's candidates.")
]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Seed of the annealing and of the choice of these rows.")]


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
