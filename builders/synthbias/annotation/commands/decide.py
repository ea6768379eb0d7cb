"""The command ``annotate decide``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from builders.dataset.output import check_target, write_dataset
from builders.dataset.summary import closing_lines, run_line
from builders.description import DATASETS_FOLDER
from builders.options import Overwrite
from builders.synthbias.annotation.accepted import accepted_draft, verdict_lines
from builders.synthbias.annotation.commands.options import (
    CountModels,
    CountUntested,
    DatasetFolder,
    Relabel,
    StateFolder,
    Stop,
)
from builders.synthbias.annotation.deciding import Policy
from builders.synthbias.annotation.deciding import decide as decide_pairs
from builders.synthbias.annotation.fitting import fitting_state, say_uncounted
from builders.synthbias.annotation.sentences import read_annotated
from builders.synthbias.annotation.state import check_outside_datasets
from builders.synthbias.annotation.thresholds import StopRule


@one_line_errors()
def decide(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    out: Annotated[Path | None, typer.Option(help="Dataset folder. Default: out/datasets/NAME.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the written dataset. Default: that of the dataset with -annotated.")
    ] = None,
    version: Annotated[
        str | None, typer.Option(help="Version of the written dataset. Default: that of the dataset.")
    ] = None,
    stop_rule: Stop = StopRule.PAPER,
    relabel: Relabel = False,
    count_models: CountModels = False,
    count_untested: CountUntested = False,
    overwrite: Overwrite = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the verdicts, and write nothing.")] = False,
) -> None:
    """Decide by the votes, and write a dataset of the accepted pairs.

    A pair is accepted if both sides are. What is not, undecided pairs among it, is in rejects.parquet with the rule and
    the votes. The votes are in the folder too, under pseudonyms.
    """
    annotated = read_annotated(dataset)
    name = name or f"{annotated.manifest.name}-annotated"
    folder = out if out is not None else DATASETS_FOLDER / name
    if not dry_run:
        check_outside_datasets("--out", folder, is_dataset=True)
        check_target(folder, overwrite=overwrite)
    state = fitting_state(annotated, state_folder)
    policy = Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    decisions = decide_pairs(annotated, state, policy)
    for line in verdict_lines(decisions):
        typer.echo(line)
    say_uncounted(state, policy)
    if dry_run:
        return
    draft = accepted_draft(
        annotated,
        state,
        policy,
        decisions,
        name=name,
        version=version or annotated.manifest.version,
        state_folder=state_folder,
    )
    manifest = write_dataset(draft, folder, overwrite=overwrite)
    typer.echo(f"validated by people: {'yes' if manifest.human_validated else 'no'}")
    for line in closing_lines(manifest, folder, n_items=sum(len(split.items) for split in draft.splits)):
        typer.echo(line)
    typer.echo(run_line(folder))
