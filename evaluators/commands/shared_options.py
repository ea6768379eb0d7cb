"""The options that several commands share, and those of the command ``run`` besides its study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from biasboard.ground.options import option
from evaluators.backend_options import MODEL_PANEL
from evaluators.runs.ask.study import ASKING_PANEL
from evaluators.runs.plan.plan import MAX_FAILURE_RATE
from evaluators.scorer import SCORER_HELP

DATASET_HELP = "Folder of a built dataset, or one of the Hub: ORG/NAME or ORG/NAME@REVISION."
CACHE_VARIABLE = "BIASBOARD_CACHE"
FILES_PANEL = "Files"
VERBOSE = typer.Option(
    "--verbose",
    help="Print a table of all measures instead of the headline measures.",
    rich_help_panel=FILES_PANEL,
)
MAX_FAILURES_HELP = "Share of requests that may fail; with more, the run ends without a result."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """The model that is asked, where its runs go, and who scores its texts."""

    backend: str = option("Backend that calls the model; see 'list'.", panel=MODEL_PANEL, default=...)
    model: str = option(
        "Model: a Hub id, a folder, a file of stored answers, or a baseline (or 'all' baselines).",
        panel=MODEL_PANEL,
        default=...,
    )
    out: Path = option("Folder of all runs.", panel=FILES_PANEL, default=Path("out/runs"))
    max_failure_rate: float = option(MAX_FAILURES_HELP, panel=ASKING_PANEL, default=MAX_FAILURE_RATE, min=0, max=1)
    cache: Path | None = option(
        "File of the cache that runs share: answers in it are reused.", panel=FILES_PANEL, envvar=CACHE_VARIABLE
    )
    scorers: tuple[str, ...] | None = option(SCORER_HELP, flag="--scorer", panel="Generated texts")
