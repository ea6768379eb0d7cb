"""Options that several commands of the board take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from leaderboard.verify.board_files import KEYS, RESULTS

BY_DEFAULT = "of the working folder if it has keys or results, or else those that biasboard brings."
RESULTS_HELP = (
    "a folder, or a dataset of the Hugging Face Hub as hf://datasets/ORG/NAME@REVISION. "
    f"Default: {RESULTS} {BY_DEFAULT}"
)
AcceptedResults: TypeAlias = Annotated[
    str | None, typer.Option("--results", help=f"Accepted results, whose register names owners: {RESULTS_HELP}")
]
Fresh: TypeAlias = Annotated[
    bool, typer.Option("--fresh", help="Recompute every result, even one that this machine has verified before.")
]
KeysFolder: TypeAlias = Annotated[
    Path | None, typer.Option("--keys", help=f"Folder of answer keys. Default: {KEYS} {BY_DEFAULT}")
]
ResultsFolder: TypeAlias = Annotated[
    Path | None, typer.Option("--results", help=f"Folder of accepted results. Default: {RESULTS} {BY_DEFAULT}")
]
DatasetsFolder: TypeAlias = Annotated[
    Path,
    typer.Option("--datasets", help="Folder of built datasets, for results on those without a key; may be absent."),
]
DATASETS = Path("out/datasets")
