"""Ranks the rows of a table; of the revisions of one model only the newest counts among the ranks of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from evaluators.statistics.jackknife import Deviations
from leaderboard.ranking.bounds import Bounds
from leaderboard.ranking.duplicates import precedence
from leaderboard.ranking.rank_ranges import NO_RANKING, Candidate, Ranking, rank
from leaderboard.verify.entries import Entry


class Contender(NamedTuple):
    """A row of a table that can be ranked, and what ranks it."""

    entry: Entry
    """Its result; for an index, the first of its results."""
    value: float
    ideal: float
    bounds: Bounds | None
    """The values with missing answers at their worst and best; None if none are missing."""
    deviations: Deviations | None
    """Deviations of the value; None if there are too few clusters for an interval."""


class Rankings(NamedTuple):
    """The ranking of a table, in which missing answers widen ranks, and the one of the given answers alone."""

    ranking: Ranking
    of_answers: Ranking


def rankings(contenders: Iterable[Contender]) -> Rankings:
    """Rank the rows of a table by the identities of their models."""
    rows = list(contenders)
    if not rows:
        return Rankings(NO_RANKING, NO_RANKING)
    models = model_rows([row.entry for row in rows])
    answered = [
        Candidate(
            name=(identity := row.entry.result.model.identity_sha256),
            worst=row.value,
            best=row.value,
            deviations=row.deviations,
            model=models[identity].model,
            is_counted=models[identity].is_counted,
        )
        for row in rows
    ]
    bounded = [
        candidate if row.bounds is None else replace(candidate, worst=row.bounds.worst, best=row.bounds.best)
        for candidate, row in zip(answered, rows, strict=True)
    ]
    ranking = rank(bounded, ideal=rows[0].ideal)
    if all(row.bounds is None for row in rows):
        return Rankings(ranking, ranking)
    return Rankings(ranking, rank(answered, ideal=rows[0].ideal))


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

    Args:
        entries: Results that are ranked together, one for each identity.
    """
    rows: dict[str, ModelRow] = {}
    newest: dict[str, str] = {}
    ordered = sorted(entries, key=precedence)
    dated = sorted(ordered, key=lambda entry: entry.acceptance.accepted or "" if entry.acceptance else "", reverse=True)
    for entry in dated:
        model = entry.result.model
        newest.setdefault(model.id, model.identity_sha256)
        rows[model.identity_sha256] = ModelRow(model.id, newest[model.id] == model.identity_sha256)
    return rows
