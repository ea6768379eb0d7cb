"""Finds what a profile says of a model: its values, the row with its rank, and the rank or why it has none."""

from __future__ import annotations

from evaluators.benchmark import load_benchmark
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import Profile
from leaderboard.ranking.rank_ranges import rank_words
from leaderboard.ranking.rows import Row


def identities_of(profile: Profile, model_id: str) -> list[str]:
    """Return the identities of a model id that a profile has values of, the best placed one first."""
    rows = {identity: row for column in profile.columns for identity, row in column.rows.items()}
    known = dict.fromkeys(identity for identity in [*profile.rows, *rows] if identity in rows)
    return [identity for identity in known if rows[identity].model.id == model_id]


def ranked_row(profile: Profile, identity: str, model_id: str) -> Row | None:
    """Return the row whose rank is the model's in a benchmark; None if it has none."""
    row = profile.rows.get(identity)
    if (row is not None and row.indices) or not load_benchmark(profile.benchmark).indices:
        return row
    rows = (row for table in profile.tables for row in table.rows)
    return next((each for each in rows if each.indices and each.model.id == model_id), row)


def placing(board: Board, profile: Profile, model_id: str, row: Row | None) -> str:
    """Return the rank of a model in words, or why it has none."""
    if row is not None:
        if row.rank is not None:
            return rank_words(row.rank)
        return f"no rank: {'; '.join(row.reasons) or 'the index ranks'}"
    # Not compared by protocol: that of an index also names prompts that differ from the protocol's own.
    scope = profile.scope[:3]
    left_out = [each for place, of_place in board.indices.incomplete.items() if place[:3] == scope for each in of_place]
    reasons = [each.reason for each in left_out if each.model_id == model_id]
    return f"no rank: {reasons[0] if reasons else 'it has no result in the table that ranks'}"
