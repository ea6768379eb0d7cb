"""The register of a board: which results were accepted, when, for whom, and what maintainers decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

SCHEMA_VERSION = "1.0"

Decision: TypeAlias = Literal["accepted", "preferred", "withdrawn"]
"""``preferred`` settles a dispute in favour of a result; ``withdrawn`` keeps it visible without a rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """A comparison of stored answers with those that a maintainer got from the model that a result names."""

    date: str
    n_items: int
    """Number of items that were drawn at random and asked again."""
    n_agreeing: int
    """Number of items whose answers agree within the tolerance."""
    tolerance: float
    """Largest difference of a log-probability, in nats, that counts as agreement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A decision of a maintainer about one result."""

    place: str
    """Folder of the result, relative to the folder of all accepted results."""
    result_sha256: str
    """SHA-256 of the bytes of ``result.json``; a result that was changed since then is not accepted."""
    accepted: str
    """Date of the acceptance; of several results with the same answers, the one that was accepted first is ranked."""
    owner: str
    """Account at the code host that may submit results of this model."""
    decision: Decision
    reason: str | None
    """Reason for the decision; None if the result is just accepted."""
    rerun: Rerun | None
    decided: str | None = None
    """Date of a decision other than the acceptance itself; None if there is none, or in older registers."""
    texts_compared: str | None = None
    """Date on which a maintainer made this result again from its texts, which are kept elsewhere; None if nobody has,
    or if the texts are in the records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """All decisions about accepted results."""

    schema_version: str
    results: tuple[Acceptance, ...]
