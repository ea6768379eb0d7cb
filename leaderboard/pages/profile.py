"""The front page, with the table of all models and the findings, and the portrait of each model.

The table has one row for each language model and one group of columns for each benchmark. Tints say what the data
separate, and nothing else: models that cannot be told apart have the same tint.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal, NamedTuple, TypeAlias

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import LEAST_MODELS, BenchmarkPages, Finding, load_pages, pages_of_benchmarks
from leaderboard.model_facts import display_name, facts_of
from leaderboard.pages.compare import answers_link
from leaderboard.pages.markup import anchor_of, model_page, row_page, table_page
from leaderboard.pages.model_views import size_text
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import (
    Profile,
    ProfileColumn,
    identities_of,
    placing,
    profile_of,
    profiles_of,
    ranked_row,
    scope_of,
)
from leaderboard.ranking.rank_ranges import Named, top_note
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry, Provenance
from schemas.documents.result import Metric

Tint: TypeAlias = Literal["best", "worse", "open", "useless"]
TINTS: dict[Tint, str] = {
    "best": "not beaten: no other model is separably better",
    "worse": "beaten: another model is separably better",
    "open": "not beaten, but perhaps only since answers are missing or its interval is wide",
    "useless": "not shown to beat a useless predictor",
}
"""What each tint says."""
_MOST_FINDINGS = 4
"""Number of findings of benchmarks, beside that on models below the line."""


class Cell(NamedTuple):
    """The value of a model in a column."""

    metric: Metric | None
    """None if the model has no result under the conditions of the column."""
    tint: Tint | None
    """None if nothing can be said, as of a single model."""
    page: str | None
    """Address of the result, relative to the root of the site; of the model if it was asked under other conditions."""


class FrontRow(NamedTuple):
    """The row of a language model."""

    model_id: str
    page: str
    ranks: tuple[tuple[Row | None, str, str | None], ...]
    """Row in the table that ranks each group, why it has no rank, and the model's page if it was asked otherwise."""
    cells: tuple[tuple[Cell, ...], ...]
    """Cells of each group, in the order of its columns."""
    vouching: tuple[Provenance, ...]
    """How far its results in the table are vouched for."""
    is_local: bool
    """True if a result of it on the board is a local run."""

    @property
    def is_complete(self) -> bool:
        """True if the model has a value in every column."""
        return all(cell.metric is not None and cell.metric.value is not None for group in self.cells for cell in group)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontTable:
    """The table of the front page."""

    groups: tuple[Profile, ...]
    rows: tuple[FrontRow, ...]
    folded: Mapping[tuple[str, str, tuple[str, ...]], Sequence[tuple[str, str]]]
    """Ways in which few models were asked: conditions with the address of a table, one with ranks if there is any.

    They stand by the name of the benchmark, words on how the models do, and these models.
    """
    missing: tuple[BenchmarkPages, ...]
    """Benchmarks without any language model."""

    @property
    def has_other_texts(self) -> bool:
        """True if a model has results on a benchmark with other texts or prompts only."""
        return any(page is not None for row in self.rows for *_, page in row.ranks)

    @property
    def is_mixed(self) -> bool:
        """True if some models have local runs, and others none."""
        return len({row.is_local for row in self.rows}) > 1


def front_parts(board: Board) -> tuple[Profile, ...]:
    """Return the benchmarks with a language model: those with local runs, and then those with most models first."""
    profiles = [profile for name in board.benchmarks if (profile := profile_of(board, name)) is not None]
    return tuple(sorted(profiles, key=lambda profile: _by_models(profile, profile)))


def all_parts(board: Board) -> tuple[Profile, ...]:
    """Return each way in which a language model was asked: own data and local runs, and then most models first.

    The first way of a benchmark comes before its others, however many models these have.
    """
    of_benchmarks = [profiles_of(board, name) for name in board.benchmarks]
    profiles = [(profile, of_one[0]) for of_one in of_benchmarks for profile in of_one]
    return tuple(one for one, _ in sorted(profiles, key=lambda pair: (not pair[0].is_own, *_by_models(*pair))))


def _by_models(profile: Profile, first: Profile) -> tuple[bool, tuple[int, int, str, int], str]:
    return not profile.is_local, max(profile.weight.order, first.weight.order), profile.heading


def profile_page(profile: Profile) -> str:
    """Return the address of the first table of a profile; the page of a benchmark shows those of own data, too."""
    page = table_page(profile.table, is_default=profile.is_own or profile.is_default)
    return f"{page}#{anchor_of(profile.table)}" if profile.is_own else page


def front_table(board: Board, parts: Sequence[Profile], explored: frozenset[str] = frozenset()) -> FrontTable:
    """Return the table of the front page.

    Models with local runs come first, then those with a rank in most benchmarks, then by their rank in the first of
    these, in the second, and so on: values of different measures are never added.

    Args:
        board: All results.
        parts: All ways in which models were asked. Those with few of the models are told in a line.
        explored: Permanent links of the results whose answers the site shows; values of others lead to their model.
    """
    asked = {part.benchmark for part in parts if not part.scope.is_retired}
    names = {*board.benchmarks, *(pages.name for pages in pages_of_benchmarks() if not pages.is_of_own_data)}
    shown: list[Profile] = []
    folded: dict[tuple[str, str, tuple[str, ...]], list[tuple[str, str]]] = {}
    models: dict[str, str | None] = {}
    for part in parts:
        owners = models | {model: owner for model, owner in part.weight.models.items() if model in part.models}
        n_models = Counter(owners.values())
        n_here = Counter(owner for model, owner in owners.items() if model in part.models)
        # A column of which most cells are empty says less than a line; nor do one owner's many rows empty another's.
        is_filled = 2 * sum(n_here[owner] / n for owner, n in n_models.items()) >= len(n_models)
        if not part.scope.is_retired and (part.is_own or part.is_local or is_filled):
            shown.append(part)
            # Own data stand there for whoever has them, and say nothing of what others are asked.
            models |= {} if part.is_own else part.weight.models
        else:
            # One line for all ways in which the same models were asked and do as well.
            folded.setdefault(_folded(part), []).append((part.conditions, _ranked_page(part)))
    return FrontTable(
        groups=tuple(shown),
        rows=_rows(board, shown, explored),
        folded=folded,
        missing=tuple(load_pages(name) for name in sorted(names - asked)),
    )


def _ranked_page(part: Profile) -> str:
    """Return the address of the first table of a profile, or of another one if only that has ranks."""
    if part.table.ranked:
        return profile_page(part)
    others = (table for table in part.tables if scope_of(table) == part.scope and table.ranked)
    return next((table_page(table, is_default=False) for table in others), profile_page(part))


def _folded(part: Profile) -> tuple[str, str, tuple[str, ...]]:
    """Return the name of a benchmark, words on how the models of a way to ask do, and these models."""
    # A model may pass in one config of the data and not in another.
    newest = frozenset(part.models.values())
    tables = [table for table in part.tables if scope_of(table) == part.scope]
    n_ranked = len({row.identity for table in tables for row in table.ranked} & newest)
    if part.scope.is_retired:
        note = "this version of the data is retired"
    elif not n_ranked and newest <= part.below.keys():
        note = "none is shown to beat a useless predictor"
    elif n_ranked == 1:
        note = "one can be ranked, with nobody to compare it with"
    else:
        note = f"{n_ranked or 'none'} can be ranked"
    return part.title, note, tuple(sorted(part.models))


def _rows(board: Board, parts: Sequence[Profile], explored: frozenset[str]) -> tuple[FrontRow, ...]:
    asked: dict[str, set[str]] = {}
    local: set[str] = set()
    for table in board.tables:
        for row in table.rows:
            if not row.is_baseline:
                asked.setdefault(row.model.id, set()).add(table.signature.benchmark)
                if row.entry.origin == "local":
                    local.add(row.model.id)
    tints = [tints_of(part) for part in parts]
    places = [{identity: place for place, identity in enumerate(part.rows)} for part in parts]
    rows: list[tuple[tuple[object, ...], FrontRow]] = []
    for model_id, benchmarks in sorted(asked.items()):
        if not any(model_id in part.models for part in parts):
            continue
        page = model_page(model_id)
        elsewhere = [page if part.benchmark in benchmarks else None for part in parts]
        levels = (entry.provenance for part in parts for entry in part.entries if entry.result.model.id == model_id)
        identities = [part.models.get(model_id) for part in parts]
        shown = FrontRow(
            model_id=model_id,
            page=page,
            ranks=tuple(_ranked(*each) for each in zip(parts, identities, elsewhere, strict=True)),
            cells=tuple(
                tuple(
                    _cell(column, identity, of_column, other, explored)
                    for column, of_column in zip(part.columns, of_part, strict=True)
                )
                for part, identity, of_part, other in zip(parts, identities, tints, elsewhere, strict=True)
            ),
            vouching=tuple(dict.fromkeys(levels)),
            is_local=model_id in local,
        )
        placed = [
            (row is None or row.rank is None, of_part.get(str(identity), 0))
            for (row, *_), identity, of_part in zip(shown.ranks, identities, places, strict=True)
        ]
        n_ranked = sum(not is_unranked for is_unranked, _ in placed)
        n_values = sum(cell.metric is not None for group in shown.cells for cell in group)
        rows.append(((not shown.is_local, -n_ranked, placed, -n_values, model_id), shown))
    return tuple(row for _, row in sorted(rows, key=lambda one: one[0]))


def _ranked(part: Profile, identity: str | None, elsewhere: str | None) -> tuple[Row | None, str, str | None]:
    """Return the row of a model in the table that ranks, why it has no rank, and its page if it was asked otherwise."""
    if identity is None:
        return None, "", elsewhere
    row = part.rows.get(identity)
    if row is None:
        return None, "it lacks results that the ranking needs", None
    return row, "" if row.rank else row.unranked or "", None


def _cell(
    column: ProfileColumn,
    identity: str | None,
    tints: Mapping[str, Tint],
    elsewhere: str | None,
    explored: frozenset[str],
) -> Cell:
    """Return the value of a model, with the address of the answers behind it, or of its result if these are not shown.

    Without an identity, it was not asked under the conditions of the column, but perhaps under others.
    """
    if identity is None:
        return Cell(None, None, elsewhere)
    row = column.rows.get(identity)
    page = None if row is None else row_page(column.table, row)
    if row is not None and page in explored and not column.table.is_index:
        page = answers_link(row.entry)
    return Cell(column.metrics.get(identity), tints.get(identity), page)


def tints_of(part: Profile) -> list[Mapping[str, Tint]]:
    """Return the tints of the newest version of each model in each column, by the model's identity."""
    newest = frozenset(part.models.values())
    below = frozenset(row.identity for row in part.table.rows if row.is_below)
    return [_tints(column, newest, below) for column in part.columns]


def _tints(column: ProfileColumn, shown: frozenset[str], below: frozenset[str]) -> Mapping[str, Tint]:
    """Return the tints of the models of a column, by identity: what the comparisons of its table say."""
    useless: dict[str, Tint] = {
        identity: "useless"
        for identity in column.metrics
        if identity in shown and (identity in below or column.rows[identity].is_below)
    }
    pairs = [pair for pair in column.pairs if pair.is_ranked and {pair.first, pair.second} <= shown]
    tints: dict[str, Tint] = {name: "open" for pair in pairs for name in (pair.first, pair.second)}
    tints |= {name: "best" for pair in pairs if pair.outcome != "unknown" for name in (pair.first, pair.second)}
    for pair in pairs:
        # By the given answers alone one of the two is better, and the verdict waits for the missing ones.
        if pair.high is not None and pair.high < 0 <= pair.lead_at_best:
            tints[pair.first] = "open"
        if pair.low is not None and pair.low > 0 >= pair.lead_at_worst:
            tints[pair.second] = "open"
    tints |= {pair.second if pair.outcome == "first" else pair.first: "worse" for pair in pairs if pair.separable}
    # Nor is a model among the best that is farther from the ideal than one that is beaten, and only less certain.
    metrics = {identity: column.metrics[identity] for identity in tints if identity in column.metrics}
    far = {identity: abs((metric.value or 0.0) - (metric.ideal or 0.0)) for identity, metric in metrics.items()}
    beaten: dict[str, float] = {}
    for identity, metric in metrics.items():
        if tints[identity] == "worse":
            beaten[metric.version] = min(far[identity], beaten.get(metric.version, math.inf))
    tints |= {
        identity: "open"
        for identity, metric in metrics.items()
        if tints[identity] == "best" and far[identity] > beaten.get(metric.version, math.inf)
    }
    return useless | tints


def shown_findings(parts: Sequence[Profile]) -> tuple[tuple[Finding, Sequence[Profile]], ...]:
    """Return the findings that the front page shows, each with the benchmarks that it is about.

    They are the first of each benchmark, then the second of each, and so on, and who is below the line.

    Args:
        parts: The benchmarks on the front page.
    """
    each = [list(_findings(part)) for part in parts]
    in_turn = [shown for turn in zip_longest(*each) for shown in turn if shown is not None]
    return (*in_turn[:_MOST_FINDINGS], *_useless(parts))


def _findings(part: Profile) -> Iterator[tuple[Finding, Sequence[Profile]]]:
    results: dict[str, list[Entry]] = {}
    # What models below the line do says nothing of those that can read.
    able = (entry for entry in part.entries if entry.result.model.identity_sha256 not in part.below)
    for entry in able:
        results.setdefault(entry.result.signature.config, []).append(entry)
    for compute in part.pages.findings:
        if (finding := compute(results)) is not None:
            yield finding, [part]


def _useless(parts: Sequence[Profile]) -> Iterator[tuple[Finding, Sequence[Profile]]]:
    """Yield how many models do no better than a useless predictor, if any does not."""
    # Where nothing says what a model must beat, none is below it.
    gated = [part for part in parts if load_benchmark(part.benchmark).gates]
    # A second result of a model, under another name, is no second model.
    alike = {part: [row for row in part.newest if not row.entry.is_second] for part in gated}
    asked = {part: rows for part, rows in alike.items() if len(rows) >= LEAST_MODELS}
    below = {part: [row for row in rows if row.is_below] for part, rows in asked.items()}
    if any(below.values()):
        counts = [
            f"{len(rows)} of {len(asked[part])} models asked alike on “{part.heading}”" for part, rows in below.items()
        ]
        # A model that is below the line on several benchmarks is named once.
        first: dict[str, Entry] = {}
        for row in chain.from_iterable(below.values()):
            first.setdefault(row.model.id, row.entry)
        text = f"Not shown to know more than a useless predictor: {', '.join(counts)}."
        yield Finding(text, tuple(first.values())), list(below)


def leaders(parts: Sequence[Profile]) -> tuple[tuple[str, Profile], ...]:
    """Return in words who leads on each benchmark on which any two models can be told apart."""
    told = []
    for part in parts:
        pairs = part.table.comparisons
        if n_apart := sum(pair.separable for pair in pairs):
            top = top_note([*map(display_name, part.table.tied_for_first)])
            leading = f"On “{part.heading}”, {top} (no other ranked model is separably better)."
            told.append((f"{leading} {n_apart} of {len(pairs)} pairs can be told apart.", part))
    return tuple(told)


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
