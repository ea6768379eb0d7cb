"""Describes a model for its page: who made it, its headline measures between others, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leaderboard.benchmark_pages import BenchmarkPages
from leaderboard.model_facts import display_name, facts_of
from leaderboard.pages.addresses import row_page
from leaderboard.pages.model_list import size_text
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.gates import Named
from leaderboard.ranking.profiles import (
    Profile,
    ProfileColumn,
    identities_of,
    placing,
    profiles_of,
    ranked_row,
    scope_of,
)
from leaderboard.ranking.rows import Row
from schemas.documents.result import Metric


class HeadlineStanding(NamedTuple):
    """A headline measure of a model, between the best value and that of a predictor without skill."""

    column: ProfileColumn
    metric: Metric
    page: str
    """Page of the result behind the value."""
    best: Named | None
    """The language model nearest to the ideal; None if the measure has none."""
    useless: Named | None
    """The useless predictor nearest to the ideal; None if there is none."""
    crowd: tuple[Metric, ...]
    """The values of all other models that were asked the same."""


class Portrait(NamedTuple):
    """What a benchmark says of a model."""

    pages: BenchmarkPages
    page: str
    placing: str
    """Its rank, or why it has none."""
    measures: tuple[HeadlineStanding, ...]
    results: tuple[tuple[TableView, Row], ...]
    """Results under the conditions of the measures, the one that ranks first, each with its table."""
    others: tuple[tuple[TableView, Row], ...]
    """Results under other conditions."""


def facts_sentence(model_id: str) -> str:
    """Return who made a model, how large it is, and whether its weights are open; empty if nobody has noted it."""
    facts = facts_of(model_id)
    if facts is None:
        return ""
    kind = "" if facts.kind is None else "base " if facts.kind == "base" else "tuned "
    maker = f" by {facts.maker}" if facts.maker else ""
    size = f" with {size_text(facts.parameters)} parameters" if facts.parameters else " of undisclosed size"
    weights = {True: ", open weights", False: ", closed weights", None: ""}[facts.open_weights]
    licence = f", licence {facts.licence}" if facts.licence else ""
    released = f", released {facts.released}" if facts.released else ""
    released = f", released by {facts.released_by}" if facts.released_by else released
    return f"{display_name(model_id)} is a {kind}model{maker}{size}{weights}{licence}{released}."


def portraits(board: Board, views: Sequence[TableView]) -> dict[str, tuple[Portrait, ...]]:
    """Return what each benchmark says of each language model, by its id.

    Of several conditions, those count that the benchmark shows first among those under which the model was asked.

    Args:
        board: All tables.
        views: All tables, also of indices, with their addresses.
    """
    found: dict[str, list[Portrait]] = {}
    for benchmark in board.benchmarks:
        profiles = profiles_of(board, benchmark)
        own = [view for view in views if view.benchmark == benchmark]
        page = next(view.page for view in own if view.is_default)
        placed: dict[str, list[tuple[TableView, Row]]] = {}
        for view in own:
            for row in view.table.rows:
                if not row.is_baseline:
                    placed.setdefault(row.model.id, []).append((view, row))
        for model_id, results in placed.items():
            found.setdefault(model_id, []).append(_portrait(board, profiles, page, model_id, results))
    return {model_id: tuple(of_model) for model_id, of_model in found.items()}


def _portrait(
    board: Board, profiles: Sequence[Profile], page: str, model_id: str, placed: Sequence[tuple[TableView, Row]]
) -> Portrait:
    pages = placed[0][0].pages
    known = ((profile, identities[0]) for profile in profiles if (identities := identities_of(profile, model_id)))
    profile, identity = next(known, (None, ""))
    if profile is None:
        reason = "no rank: it has no headline measure"
        return Portrait(pages, page, reason, (), (), tuple(placed))
    main = [(view, row) for view, row in placed if scope_of(view.table) == profile.scope]
    ranked = ranked_row(profile, identity, model_id)
    measured = [
        column
        for column in profile.columns
        if identity in column.metrics and column.metrics[identity].value is not None
    ]
    return Portrait(
        pages=pages,
        page=page,
        placing=placing(board, profile, model_id, ranked),
        measures=tuple(_standing(column, identity) for column in measured),
        results=tuple(sorted(main, key=lambda one: one[0].table is not profile.table)),
        others=tuple((view, row) for view, row in placed if scope_of(view.table) != profile.scope),
    )


def _standing(column: ProfileColumn, identity: str) -> HeadlineStanding:
    own = column.metrics[identity]
    crowd = {
        one: metric
        for one, metric in column.metrics.items()
        if one != identity
        and not column.rows[one].is_baseline
        and metric.value is not None
        and metric.version == own.version
    }
    # Without an ideal, no value is nearer to it.
    distances = [
        (abs(metric.value - metric.ideal), column.rows[one].model.id, one)
        for one, metric in crowd.items()
        if metric.value is not None and metric.ideal is not None
    ]
    _, model_id, nearest = min(distances, default=(0.0, "", ""))
    return HeadlineStanding(
        column=column,
        metric=own,
        page=row_page(column.table, column.rows[identity]),
        best=Named(display_name(model_id), crowd[nearest]) if nearest else None,
        useless=column.useless,
        crowd=tuple(crowd.values()),
    )
