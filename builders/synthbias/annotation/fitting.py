"""What commands read of a state before they judge its votes."""

from __future__ import annotations

from pathlib import Path

import typer

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation.deciding import Policy
from builders.synthbias.annotation.entrance import TEST_PAIRS
from builders.synthbias.annotation.sentences import Annotated
from builders.synthbias.annotation.state import State, read_state
from builders.synthbias.annotation.votes import Status


def fitting_state(annotated: Annotated, folder: Path, *, may_be_new: bool = False) -> State:
    """Read a state whose votes are on the sentences of a dataset, and say so if some are not.

    Args:
        annotated: The dataset.
        folder: Folder of the state.
        may_be_new: True to begin a state if there is none.

    Raises:
        ConfigError: there is no state.
        DataError: no vote is on a sentence of the dataset; votes of the entrance test belong to every one.
    """
    if not may_be_new and not folder.exists():
        raise ConfigError(
            f"--state {folder}: no such folder, so that there are no votes; give the one of annotate ingest or serve"
        )
    state = read_state(folder)
    voted = [vote.item_id for vote in state.standing_votes.values() if vote.item_id not in TEST_PAIRS]
    n_foreign = sum(item_id not in annotated.items for item_id in voted)
    if n_foreign:
        found = f"--state {folder}: {n_foreign} of {len(voted)} votes are on sentences that are not in "
        remedy = "give the dataset and the state that belong together"
        if n_foreign == len(voted):
            raise DataError(f"{found}{annotated.folder}; {remedy}")
        typer.echo(f"{found}{annotated.folder}; they count for nothing here: {remedy}", err=True)
    return state


def say_uncounted(state: State, policy: Policy) -> None:
    """Say whose votes do not count yet, if there is anybody."""
    n_untested = sum(one.status is Status.UNTESTED for one in state.annotators.values())
    if n_untested and not policy.count_untested:
        typer.echo(
            f"{n_untested} annotators have finished no entrance test, so that their votes do not count: have them take "
            "it (annotate export --entrance), or give --count-untested if they were tested elsewhere"
        )
