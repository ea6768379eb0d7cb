"""The command ``annotate plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from builders.synthbias.annotation.commands.options import (
    CountModels,
    CountUntested,
    DatasetFolder,
    Relabel,
    StateFolder,
    Stop,
)
from builders.synthbias.annotation.deciding import Policy, decide
from builders.synthbias.annotation.fitting import fitting_state, say_uncounted
from builders.synthbias.annotation.planning import batch_paths, n_outstanding, read_batch, write_batch
from builders.synthbias.annotation.planning import plan as plan_batch
from builders.synthbias.annotation.sentences import read_annotated
from builders.synthbias.annotation.state import State, locked
from builders.synthbias.annotation.thresholds import StopRule
from builders.synthbias.annotation.votes import Status


@one_line_errors()
def plan(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    annotator: Annotated[
        list[str] | None,
        typer.Option(help="Annotator to assign sentences to; repeatable. Default: leave open who votes."),
    ] = None,
    stop_rule: Stop = StopRule.PAPER,
    relabel: Relabel = False,
    count_models: CountModels = False,
    count_untested: CountUntested = False,
) -> None:
    """Plan the next batch: the sentences that need more votes.

    Sentences are in group A or B, the two sides of a pair in different ones: give each group to other people. A
    sentence whose other side is rejected is not asked again, because the pair is decided.
    """
    annotated = read_annotated(dataset)
    policy = Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    names = tuple(dict.fromkeys(annotator or ()))
    with locked(state_folder):
        state = fitting_state(annotated, state_folder, may_be_new=True)
        _check(state, names)
        decisions = decide(annotated, state, policy)
        sides = [side for pair in decisions for side in pair.sides]
        requests = plan_batch(decisions, annotated.groups, state, names)
        known = batch_paths(state_folder)
        n_now = {side.item.item_id: side.tally.coherent.n for side in sides}
        n_missing = n_outstanding(read_batch(known[-1]), n_now) if known else 0
        path = write_batch(state_folder, requests) if requests else None
    n_needed = sum(side.n_to_ask for pair in decisions if pair.verdict == "undecided" for side in pair.sides)
    n_planned = sum(request.n_votes for request in requests)
    typer.echo(f"{n_needed} more votes are needed at least, in {len(decisions)} pairs")
    if path is None:
        typer.echo("nothing to ask" + (": everybody named has seen a side of every open pair" if n_needed else ""))
    else:
        typer.echo(f"{path}: {len({request.item_id for request in requests})} sentences, {n_planned} votes")
        if n_planned < n_needed:
            typer.echo(f"{n_needed - n_planned} votes find nobody: name more annotators")
    if n_missing and path != (known[-1] if known else None):
        typer.echo(f"batch {known[-1].stem} still lacks {n_missing} votes; take them in first, or they are asked twice")
    say_uncounted(state, policy)


def _check(state: State, names: tuple[str, ...]) -> None:
    for name in names:
        known = state.annotators.get(name)
        if known is not None and known.status in (Status.EXCLUDED, Status.FAILED):
            raise ConfigError(f"--annotator {name}: is {known.status}, so that the votes would not count; name another")
