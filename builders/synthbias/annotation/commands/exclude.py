"""The command ``annotate exclude``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from builders.synthbias.annotation.commands.options import EntrancePercent, StateFolder
from builders.synthbias.annotation.entrance import DEFAULT_PERCENT, Score
from builders.synthbias.annotation.intake import EntranceRule
from builders.synthbias.annotation.state import State, locked, read_state, write_state
from builders.synthbias.annotation.votes import Status


@one_line_errors()
def exclude(
    annotator: Annotated[str, typer.Argument(help="Id of the annotator, as in annotators.csv.")],
    state_folder: StateFolder,
    reason: Annotated[str, typer.Option(help="Reason, which stays in the state.")] = "",
    back: Annotated[bool, typer.Option("--back", help="Take the exclusion back.")] = False,
    entrance_percent: EntrancePercent = DEFAULT_PERCENT,
) -> None:
    """Stop counting the votes of an annotator; the votes are kept.

    The next plan, decision and report are computed without them.
    """
    if not back and not reason.strip():
        raise ConfigError("--reason: is missing; say why the votes do not count")
    with locked(state_folder):
        state = read_state(state_folder)
        if annotator not in state.annotators:
            raise ConfigError(f"annotator '{annotator}' is not in {state_folder}; look into annotators.csv")
        known = state.annotators[annotator]
        if back:
            status = EntranceRule(entrance_percent).status(Score.parse(known.entrance))
            changed = replace(known, status=status, reason="")
        else:
            changed = replace(known, status=Status.EXCLUDED, reason=reason)
        write_state(state_folder, state, State(state.rows, {**state.annotators, annotator: changed}))
    typer.echo(f"{annotator}: {changed.status}")
