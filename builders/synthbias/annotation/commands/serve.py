"""The command ``annotate serve``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from builders.synthbias.annotation.commands.options import (
    CountUntested,
    DatasetFolder,
    EntranceBy,
    EntrancePercent,
    StateFolder,
    Stop,
)
from builders.synthbias.annotation.deciding import Policy
from builders.synthbias.annotation.entrance import DEFAULT_PERCENT, EntranceUnit
from builders.synthbias.annotation.intake import EntranceRule, with_entrance
from builders.synthbias.annotation.sentences import read_annotated
from builders.synthbias.annotation.serving import open_server
from builders.synthbias.annotation.session import Session, check_annotator, sampled_pairs
from builders.synthbias.annotation.state import locked, read_state, write_state
from builders.synthbias.annotation.thresholds import StopRule


@one_line_errors("stopped; every vote is kept")
def serve(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Number of pairs to draw; one side of each is asked. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed that draws the pairs and orders the sentences.")] = 0,
    annotator: Annotated[str, typer.Option(help="Name under which the votes are kept.")] = "local",
    stop_rule: Stop = StopRule.PAPER,
    count_untested: CountUntested = False,
    entrance_percent: EntrancePercent = DEFAULT_PERCENT,
    entrance_unit: EntranceBy = EntranceUnit.ITEM,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 0,
) -> None:
    """Serve a page on this machine on which one annotator votes.

    The entrance test comes first. Each sentence is saved with its last answer, so that the page can be closed and the
    command stopped at any time: the same command goes on.
    """
    annotated = read_annotated(dataset)
    rule = EntranceRule(entrance_percent, entrance_unit)
    with locked(state_folder):
        state = read_state(state_folder)
        check_annotator(state, annotator)
        write_state(state_folder, state, with_entrance(state, rule))
    session = Session(
        annotated=annotated,
        folder=state_folder,
        annotator_id=annotator,
        pairs=sampled_pairs(annotated, sample, seed),
        seed=seed,
        policy=Policy(stop_rule=stop_rule, count_untested=count_untested),
        entrance=rule,
    )
    served = open_server(session, port)
    with served.server:
        typer.echo(served.address)
        print("Open the address in a browser on this machine. Stop with Ctrl-C.", file=sys.stderr)
        served.server.serve_forever()
