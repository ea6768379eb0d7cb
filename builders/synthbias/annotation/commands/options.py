"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

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
