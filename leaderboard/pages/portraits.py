"""Describes a model for its page: in sentences that can be quoted, and by its headline measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from biasboard.ground.plain_text import listed, printed
from leaderboard.benchmark_pages import BenchmarkPages, load_pages
from leaderboard.model_facts import display_name, facts_of
from leaderboard.pages.addresses import row_anchor
from leaderboard.pages.markup import metric_number
from leaderboard.pages.model_list import size_text
from leaderboard.pages.profile import row_page
from leaderboard.pages.summaries import extremes, slices_by_group
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
from leaderboard.ranking.rows import Row, Table
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric

_SHARE = "share of "


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


class ResultLink(NamedTuple):
    """A result of a model, with the address of its page."""

    title: str
    conditions: str
    page: str
    anchor: str


class Portrait(NamedTuple):
    """What a benchmark says of a model."""

    pages: BenchmarkPages
    page: str
    placing: str
    """Its rank, or why it has none."""
    sentences: tuple[str, ...]
    measures: tuple[HeadlineStanding, ...]
    results: tuple[ResultLink, ...]
    """Results under the conditions of the measures, the one that ranks first."""
    others: tuple[ResultLink, ...]
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
        placed: dict[str, list[tuple[Table, ResultLink]]] = {}
        for view in own:
            for row in view.table.rows:
                if not row.is_baseline:
                    placed.setdefault(row.model.id, []).append((view.table, _link(view, row)))
        for model_id, links in placed.items():
            found.setdefault(model_id, []).append(_portrait(board, profiles, page, model_id, links))
    return {model_id: tuple(of_model) for model_id, of_model in found.items()}


def _link(view: TableView, row: Row) -> ResultLink:
    title = view.words[:1].upper() + view.words[1:]
    return ResultLink(title, view.conditions, row_page(view.table, row), row_anchor(view.anchor, row.model))


def _portrait(
    board: Board, profiles: Sequence[Profile], page: str, model_id: str, placed: Sequence[tuple[Table, ResultLink]]
) -> Portrait:
    pages = load_pages(placed[0][0].signature.benchmark)
    known = ((profile, identities[0]) for profile in profiles if (identities := identities_of(profile, model_id)))
    profile, identity = next(known, (None, ""))
    if profile is None:
        reason = "no rank: it has no headline measure"
        return Portrait(pages, page, reason, (), (), (), tuple(link for _, link in placed))
    ranking = [link for table, link in placed if table is profile.table]
    main = [link for table, link in placed if scope_of(table) == profile.scope]
    ranked = ranked_row(profile, identity, model_id)
    measures = tuple(_standing(column, identity) for column in profile.columns if _has_value(column, identity))
    return Portrait(
        pages=pages,
        page=page,
        placing=placing(board, profile, model_id, ranked),
        sentences=(*_rank_sentences(pages, model_id, ranked), *_share_sentences(pages, identity, measures)),
        measures=measures,
        results=tuple(dict.fromkeys([*ranking, *main])),
        others=tuple(link for _, link in placed if link not in main),
    )


def _rank_sentences(pages: BenchmarkPages, model_id: str, row: Row | None) -> Iterator[str]:
    """Yield where a model stands; numbers that explain a missing rank belong to the table, not to a quotation."""
    subject = f"On {pages.heading[:1].lower()}{pages.heading[1:]}, {display_name(model_id)}"
    if row is None:
        yield f"{subject} has no rank: it lacks results that the ranking needs."
        return
    if row.rank is None:
        if row.warnings:
            yield f"{subject} has no rank: its answers look changed, so they may not be what the model does."
            return
        if not row.is_below:
            yield f"{subject} has no rank: see the table."
            return
        parts = row.indices[0].definition.parts if row.indices else ()
        # What is asked, since a gate may read another metric of the answers than the index does.
        tasks = {part.task for part in parts if part.key in row.shut_parts}
        configs = [entry.result.signature.config for entry in row.entries if entry.result.signature.task in tasks]
        shut = dict.fromkeys(words for config in configs if (words := pages.config_names.get(config)))
        where = f" at {listed([*shut], most=3)}" if shut else ""
        yield f"{subject} has no rank: it is not shown to do better than a useless predictor{where}."
        return
    rank = row.rank
    if rank.n_ranked == 1:
        yield f"{subject} is the only model that can be ranked."
        return
    where = ordinal(rank.best) if rank.best == rank.worst else f"between {ordinal(rank.best)} and {ordinal(rank.worst)}"
    yield f"{subject} is {where} of the {rank.n_ranked} models that can be ranked."
    if row.rank_of_answers not in (None, rank) and row.bounds is not None:
        ends = f"from {row.bounds.worst:.3f} to {row.bounds.best:.3f}"
        given = f"by the given ones it has rank {row.rank_of_answers}"
        yield f"That counts its missing answers at their worst and best, {ends}; {given}."
    ahead, behind = rank.n_ranked - rank.worst, rank.best - 1
    if ahead or behind:
        yield f"It is separably better than {ahead or 'none'} of them and separably worse than {behind or 'none'}."
    else:
        yield "It cannot be told apart from any of them."


def _share_sentences(pages: BenchmarkPages, identity: str, measures: Sequence[HeadlineStanding]) -> Iterator[str]:
    for standing in measures:
        headline, metric = standing.column.headline, standing.metric
        if not headline.unit.startswith(_SHARE):
            continue
        notes = [f"even is {_share(metric.ideal)}"] if metric.ideal is not None and 0 < metric.ideal < 1 else []
        if standing.best:
            which = "best" if len(standing.crowd) > 1 else "only"
            others = f"the {which} other model asked the same, {standing.best.name}"
            notes.append(f"{others}, {_percent(standing.best.metric)}")
        notes += [f"a useless predictor {_percent(standing.useless.metric)}"] if standing.useless else []
        in_brackets = f" ({', '.join(notes)})" if notes else ""
        yield f"{headline.label}: {_percent(metric)} of {headline.unit.removeprefix(_SHARE)}{in_brackets}."
        row = standing.column.rows[identity]
        if not row.indices:
            yield from _group_sentences(pages, row.entry, metric)


def _group_sentences(pages: BenchmarkPages, entry: Entry, metric: Metric) -> Iterator[str]:
    """Yield on which group a share is best and worst, for the group in which these lie farthest apart."""
    slices = slices_by_group(entry, metric.name)
    ends = {key: both for key, of_key in slices.items() if (both := extremes(of_key)) is not None}
    if ends:
        key = max(ends, key=lambda one: abs((ends[one][0][1].value or 0.0) - (ends[one][1][1].value or 0.0)))
        (best, best_value), (worst, worst_value), note = ends[key]
        group = pages.group_names.get(key, key.replace("_", " "))
        ends_of = f"from {_percent(best_value)} for {best} to {_percent(worst_value)} for {worst}"
        yield f"By {group}, it goes {ends_of}{note}."


def _has_value(column: ProfileColumn, identity: str) -> bool:
    return identity in column.metrics and column.metrics[identity].value is not None


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


def _percent(metric: Metric) -> str:
    return metric_number(metric) if metric.value is None else _share(metric.value)


def _share(value: float) -> str:
    return f"{printed(100 * value, 0)}\N{NO-BREAK SPACE}%"


def ordinal(number: int) -> str:
    """Return a place in words.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '112th']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}th" if number % 100 in (11, 12, 13) else f"{number}{ending}"
