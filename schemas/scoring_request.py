"""Requests to the maintainers of a board: please score this model (``leaderboard/queue``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

SCHEMA_VERSION = "1.0"

RequestState: TypeAlias = Literal["open", "done", "declined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRequest:
    """A request to score a model, in a file that bears its name."""

    schema_version: str
    model: str
    """Id of the model on the Hub, or its name at an endpoint."""
    revision: str | None
    """Commit, tag or version; None if the requester named none."""
    backend: str
    memory_gb: float | None
    """Memory of an accelerator that the model needs, in gigabytes; None if unknown."""
    train_data_disclosure: str | None
    """Statement on whether the model was trained on items of the benchmarks; None if nothing is known."""
    requester: str
    """Account or address of who asks."""
    requested: str
    """Date of the request."""
    state: RequestState
    closed: str | None
    """Date on which it was done or declined; None while it is open."""
    places: tuple[str, ...]
    """Places of the results that came of it, below the folder of all accepted results."""
    reason: str | None
    """Reason why it was declined; None otherwise."""
