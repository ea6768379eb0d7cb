"""The command ``annotate decide``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from builders.dataset.output import check_target, write_dataset
from builders.dataset.summary import closing_lines
from builders.description import DATASETS_FOLDER
from builders.synthbias.annotation.accepted import Release, accepted_draft, verdict_lines
from builders.synthbias.annotation.commands.options import (
    CountModels,
    CountUntested,
    DatasetFolder,
    Relabel,
    StateFolder,
    Stop,
    policy_of,
    uncounted_line,
)
from builders.synthbias.annotation.deciding import decide as decide_pairs
from builders.synthbias.annotation.fitting import check_exists, check_fits
from builders.synthbias.annotation.places import check_outside_datasets
from builders.synthbias.annotation.sentences import read_annotated
from builders.synthbias.annotation.state import read_state
from builders.synthbias.annotation.thresholds import StopRule
from builders.synthbias.annotation.votes import Status


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
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset if the folder already holds it.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the verdicts, and write nothing.")] = False,
) -> None:
    """Decide by the votes, and write a dataset of the accepted pairs.

    A pair is accepted if both sides are. What is not, undecided pairs among it, is in rejects.parquet with the rule and
    the votes. The votes are in the folder too, under pseudonyms.
    """
    annotated = read_annotated(dataset)
    release = Release(
        name=name or f"{annotated.manifest.name}-annotated", version=version or annotated.manifest.version
    )
    folder = out if out is not None else DATASETS_FOLDER / release.name
    if not dry_run:
        check_outside_datasets("--out", folder, is_dataset=True)
        check_target(folder, overwrite=overwrite)
    check_exists(state_folder)
    state = read_state(state_folder)
    check_fits(annotated, state, state_folder)
    policy = policy_of(stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    decisions = decide_pairs(annotated, state, policy)
    for line in verdict_lines(decisions):
        typer.echo(line)
    n_untested = sum(one.status is Status.UNTESTED for one in state.annotators.values())
    if n_untested and not count_untested:
        typer.echo(uncounted_line(n_untested))
    if dry_run:
        return
    draft = accepted_draft(annotated, state, policy, decisions, release=release, state_folder=state_folder)
    manifest = write_dataset(draft, folder, overwrite=overwrite)
    typer.echo(f"validated by people: {'yes' if manifest.human_validated else 'no'}")
    for line in closing_lines(manifest, folder, n_items=sum(len(split.items) for split in draft.splits)):
        typer.echo(line)
    typer.echo(
        f"next: biasboard run --dataset {shlex.quote(str(folder))} --backend baseline --model all --out out/runs"
    )
