"""The register of a board: which results were accepted, when, for whom, and what maintainers decided about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Final, Literal, TypeAlias

from annotated_types import Ge
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import NAME_PATTERN, Count, Day, Document, Positive, Sha256, repeated

SCHEMA_VERSION: Final = "1.0"

Decision: TypeAlias = Literal["accepted", "preferred", "withdrawn"]
"""``preferred`` settles a dispute in favour of a result; ``withdrawn`` keeps it visible without a rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun(Document):
    """A comparison of stored answers with those that a maintainer got from the model that a result names."""

    date: Day
    n_items: Positive
    """Number of items that were drawn at random and asked again."""
    n_agreeing: Count
    """Number of items whose answers agree within the tolerance."""
    tolerance: Annotated[float, Ge(0)]
    """Largest difference of a log-probability, in nats, that counts as agreement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance(Document):
    """A decision of a maintainer about one result."""

    place: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]*(/[A-Za-z0-9][A-Za-z0-9._@-]*)*$")]
    """Folder of the result, relative to the folder of all accepted results."""
    result_sha256: Sha256
    """SHA-256 of the bytes of ``result.json``; a result that was changed since then is not accepted."""
    accepted: Day
    """Date of the acceptance; of several results with the same answers, the one that was accepted first is ranked."""
    owner: Annotated[str, StringConstraints(max_length=100, pattern=NAME_PATTERN)]
    """Account at the code host that may submit results of this model."""
    decision: Decision
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None
    """Reason for the decision; None if the result is just accepted."""
    rerun: Rerun | None
    decided: Day | None = None
    """Date of a decision other than the acceptance itself; None if there is none, or in older registers."""
    texts_compared: Day | None = None
    """Date on which a maintainer made this result again from its texts, which are kept elsewhere; None if nobody has,
    or if the texts are in the records."""

    @override
    def problems(self) -> Iterator[str]:
        for day in (self.accepted, self.decided, self.texts_compared, None if self.rerun is None else self.rerun.date):
            if day is not None and not _is_day(day):
                yield f"'{day}' is no day of the calendar; write one such as 2026-01-31"
        if self.rerun is not None and self.rerun.n_agreeing > self.rerun.n_items:
            yield "more items agree than were asked again; correct it"
        if self.decision != "accepted" and self.reason is None:
            yield f"reason: null, and the result is {self.decision}; say why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(Document):
    """All decisions about accepted results."""

    schema_version: Literal["1.0"]
    results: tuple[Acceptance, ...]

    @override
    def problems(self) -> Iterator[str]:
        for place, n in repeated(entry.place for entry in self.results).items():
            yield f"results: {place} stands {n} times; keep one decision about it"
        for entry in self.results:
            yield from (f"results: {entry.place}: {problem}" for problem in entry.problems())


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        date.fromisoformat(text)
        return True
    return False
