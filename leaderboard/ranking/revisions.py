"""Says which row of a model counts: of its revisions only the newest has a place among the ranks of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leaderboard.ranking.duplicates import precedence
from leaderboard.ranking.unranked import is_settled
from leaderboard.verify.entries import Entry


class ModelRow(NamedTuple):
    """A row among the rows of one model."""

    model: str
    """Id that the rows of one model share."""
    is_counted: bool
    """True for the newest row, which alone counts among the ranks of other models."""


def model_rows(entries: Sequence[Entry]) -> Mapping[str, ModelRow]:
    """Return the model of each result, by the identity of its exact version.

    Five revisions, precisions or adapters of one id would otherwise push every model that they resemble from rank 2 to
    rank 7 at worst. The newest is the one that was accepted last; of results without a date, the first by folder.
    """
    rows: dict[str, ModelRow] = {}
    newest: dict[str, str] = {}
    ordered = sorted(entries, key=precedence)
    for entry in sorted(ordered, key=_accepted, reverse=True):
        model = entry.result.model
        newest.setdefault(model.id, model.identity_sha256)
        rows[model.identity_sha256] = ModelRow(model.id, newest[model.id] == model.identity_sha256)
    return rows


def _accepted(entry: Entry) -> str:
    """Return the date on which a result was accepted; empty without one, or if it was withdrawn."""
    return entry.acceptance.accepted or "" if entry.acceptance and is_settled(entry) else ""
