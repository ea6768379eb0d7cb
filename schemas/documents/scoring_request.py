"""Requests to the maintainers of a board: please score this model (``leaderboard/queue``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from annotated_types import Gt
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Day, Document, Name

SCHEMA_VERSION: Final = "1.0"

RequestState: TypeAlias = Literal["open", "done", "declined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRequest(Document):
    """A request to score a model, in a file that bears its name."""

    schema_version: Literal["1.0"]
    model: Annotated[
        str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$")
    ]
    """Id of the model on the Hub, or its name at an endpoint."""
    revision: Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/+@-]*$")] | None
    """Commit, tag or version; None if the requester named none."""
    backend: Name
    memory_gb: Annotated[float, Gt(0)] | None
    """Memory of an accelerator that the model needs, in gigabytes; None if unknown."""
    train_data_disclosure: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None
    """Statement on whether the model was trained on items of the benchmarks; None if nothing is known."""
    requester: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Account or address of who asks."""
    requested: Day
    """Date of the request."""
    state: RequestState
    closed: Day | None
    """Date on which it was done or declined; None while it is open."""
    places: tuple[Annotated[str, StringConstraints(min_length=1, max_length=500)], ...]
    """Places of the results that came of it, below the folder of all accepted results."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None
    """Reason why it was declined; None otherwise."""

    @override
    def problems(self) -> Iterator[str]:
        if (self.state == "open") != (self.closed is None):
            yield f"closed: {self.closed or 'null'}, and the request is {self.state}; correct one"
        if (self.state == "open" and self.places) or (self.state == "done" and not self.places):
            yield f"places: names {len(self.places)} results, and the request is {self.state}; correct one"
        if (self.state == "declined") != (self.reason is not None):
            has = "null" if self.reason is None else "one is given"
            yield f"reason: {has}, and the request is {self.state}; correct one"
