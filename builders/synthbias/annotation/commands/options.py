"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from builders.synthbias.annotation.deciding import Policy
from builders.synthbias.annotation.entrance import EntranceUnit
from builders.synthbias.annotation.thresholds import StopRule

DatasetFolder: TypeAlias = Annotated[Path, typer.Argument(help="Folder of the dataset that is annotated.")]
StateFolder: TypeAlias = Annotated[
    Path, typer.Option("--state", help="Folder that keeps votes, annotators and batches.")
]
Stop: TypeAlias = Annotated[
    StopRule,
    typer.Option(
        help="Stop at a consensus of 75 percent on every question (paper), or only when no further votes, up to ten, "
        "could change whether the sentence is accepted (decisive)."
    ),
]
Relabel: TypeAlias = Annotated[
    bool, typer.Option("--relabel", help="Accept pairs of type 2 that the votes find open, as type 1.")
]
CountModels: TypeAlias = Annotated[
    bool, typer.Option("--count-models", help="Count the votes of models like those of people.")
]
CountUntested: TypeAlias = Annotated[
    bool,
    typer.Option("--count-untested", help="Count annotators without an entrance test, if they were tested elsewhere."),
]
EntrancePercent: TypeAlias = Annotated[
    int, typer.Option(min=0, max=100, help="Share of the entrance test that must be right, in percent.")
]
EntranceBy: TypeAlias = Annotated[
    EntranceUnit, typer.Option(help="Count right sentences of the entrance test (item), or single answers (answer).")
]


def policy_of(stop_rule: StopRule, *, relabel: bool, count_models: bool, count_untested: bool) -> Policy:
    """Return the policy that options ask for."""
    return Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)


def uncounted_line(n_untested: int) -> str:
    """Return the line that says whose votes do not count yet."""
    return (
        f"{n_untested} annotators have finished no entrance test, so that their votes do not count: have them take it "
        "(annotate export --entrance), or give --count-untested if they were tested elsewhere"
    )
