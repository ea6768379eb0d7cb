"""Checks that a state belongs to a dataset."""

from __future__ import annotations

from pathlib import Path

import typer

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation.entrance import TEST_PAIRS
from builders.synthbias.annotation.sentences import Annotated
from builders.synthbias.annotation.state import State


def check_exists(state_folder: Path) -> None:
    """Check that there is a state to decide by or to report on.

    Raises:
        ConfigError: there is none.
    """
    if not state_folder.exists():
        raise ConfigError(
            f"--state {state_folder}: no such folder, so that there are no votes; give the one of annotate ingest or "
            "serve"
        )


def check_fits(annotated: Annotated, state: State, state_folder: Path) -> None:
    """Check that the votes of a state are on the sentences of a dataset, and say so if some are not.

    Raises:
        DataError: none is; votes of the entrance test belong to every dataset.
    """
    voted = [vote.item_id for vote in state.standing_votes.values() if vote.item_id not in TEST_PAIRS]
    n_foreign = sum(item_id not in annotated.items for item_id in voted)
    if not n_foreign:
        return
    found = f"--state {state_folder}: {n_foreign} of {len(voted)} votes are on sentences that are not in "
    remedy = "give the dataset and the state that belong together"
    if n_foreign == len(voted):
        raise DataError(f"{found}{annotated.folder}; {remedy}")
    typer.echo(f"{found}{annotated.folder}; they count for nothing here: {remedy}", err=True)
