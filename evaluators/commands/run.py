"""The command ``python -m evaluators run``: asks a model and writes results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import ANSWERS_KEPT, one_line_errors
from biasboard.ground.options import with_options
from evaluators.backend_options import COST_PANEL, BackendOptions
from evaluators.runs.ask.study import DATASET_HELP, ITEMS_PANEL, VERBOSE, RunChoice, Study
from schemas.outputs.documents import FinishedRuns, Printed, RunEstimates, with_format

_DRY_RUN = typer.Option(
    "--dry-run",
    help="Print numbers of requests and tokens and the price; ask and write nothing.",
    rich_help_panel=COST_PANEL,
)


@one_line_errors(ANSWERS_KEPT)
@with_format(FinishedRuns, RunEstimates)
@with_options
def run_command(
    dataset: Annotated[list[Path], typer.Option(help=f"{DATASET_HELP} Repeatable.", rich_help_panel=ITEMS_PANEL)],
    study: Study,
    choice: RunChoice,
    options: BackendOptions,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    verbose: Annotated[bool, VERBOSE] = False,
) -> Printed | RunEstimates:
    """Ask a model about each item, or continue where an earlier run stopped; write records and results."""
    # Imported here so that the help of this command stays fast.
    from evaluators.commands.runs_from_options import ask, estimated

    study = replace(study, datasets=tuple(dataset))
    if not dry_run:
        return ask(study, choice, options, verbose=verbose)
    from evaluators.runs.plan.estimate import estimates_document, print_estimates

    estimates = estimated(study, choice, options)
    print_estimates(estimates)
    return estimates_document(estimates)
