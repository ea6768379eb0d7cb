"""Arranges the table of the front page: one row for each language model, one group of columns for each benchmark.

Tints say what the data separate, and nothing else: models that cannot be told apart have the same tint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from evaluators.benchmark import Benchmark, Gate, load_benchmark
from leaderboard.benchmark_pages import BenchmarkPages, load_pages, pages_of_benchmarks
from leaderboard.model_facts import display_name
from leaderboard.pages.addresses import anchor_of, model_page, permalink, result_page, row_anchor, table_page
from leaderboard.pages.choice_keys import answers_link
from leaderboard.pages.exports import Field, Fields, Files, of_part
from leaderboard.pages.exports import Table as Export
from leaderboard.pages.markup import slug
from leaderboard.ranking.boards import Board
from leaderboard.ranking.gates import best_baselines
from leaderboard.ranking.profiles import Profile, ProfileCell, ProfileColumn, profile_of, profiles_of, tables_of
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.ranking.revisions import model_rows
from leaderboard.ranking.rows import Row, Table
from leaderboard.ranking.useless import Named, baselines_of, best_useless
from leaderboard.verify.entries import Entry, Provenance
from schemas.documents.result import Metric

Tint: TypeAlias = Literal["best", "worse", "open", "useless"]
TINTS: dict[Tint, str] = {
    "best": "no other model is separably better",
    "worse": "another model is separably better",
    "open": "too uncertain to say",
    "useless": "not shown to beat a useless predictor",
}
"""What each tint says."""


class Cell(NamedTuple):
    """The value of a model in a column."""

    metric: Metric | None
    """None if the model has no result under the conditions of the column."""
    tint: Tint | None
    """None if nothing can be said, as of a single model."""
    page: str | None
    """Address of the result, relative to the root of the site; of the model if it was asked under other conditions."""


class Heading(NamedTuple):
    """The heading of a column."""

    name: str
    """Name of its metric."""
    label: str
    sentence: str
    unit: str
    direction: str
    """Words that say which values are good."""
    high_end: float
    """Upper end of the scale on which all values of the column are drawn."""
    anchor: str
    useless: Named | None
    """The useless predictor that comes nearest to the ideal; None if there is none."""


class GroupRank(NamedTuple):
    """The rank of a model in the default table of a benchmark."""

    rank: RankRange | None
    why: str
    """Why it has none, in few words; empty if these are not enough, or a tint says it."""
    reason: str
    """Why it has none; empty if it has one."""
    page: str | None
    """Page of the model if it was asked under other conditions only; None otherwise."""
    place: int = 0
    """Place of its row in the table; 0 if it has none."""


class Group(NamedTuple):
    """The columns of a benchmark."""

    pages: BenchmarkPages
    heading: str
    """Name of the benchmark; of own data theirs."""
    key: str
    """Name for scripts, which no other group has."""
    is_own: bool
    """True if only local runs are on its data."""
    page: str
    headings: tuple[Heading, ...]


class FrontRow(NamedTuple):
    """The row of a language model."""

    model_id: str
    page: str
    ranks: tuple[GroupRank, ...]
    """Rank in each group."""
    cells: tuple[tuple[Cell, ...], ...]
    """Cells of each group, in the order of its headings."""
    vouching: tuple[Provenance, ...]
    """How far its results in the table are vouched for."""
    is_local: bool
    """True if a result of it on the board is a local run."""

    @property
    def is_complete(self) -> bool:
        """True if the model has a value in every column."""
        return all(cell.metric is not None and cell.metric.value is not None for group in self.cells for cell in group)


class Missing(NamedTuple):
    """A benchmark without any language model."""

    pages: BenchmarkPages
    command: str
    """Command that scores a model on it."""


class Folded(NamedTuple):
    """Models that were asked in a way that few were, in place of a group of columns."""

    heading: str
    """Name of the benchmark."""
    note: str
    """Words on how they do."""
    models: tuple[tuple[str, str], ...]
    """Name and page of each model."""
    ways: tuple[tuple[str, str], ...]
    """Conditions under which all of them were asked, and the page of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontTable:
    """The table of the front page."""

    groups: tuple[Group, ...]
    rows: tuple[FrontRow, ...]
    folded: tuple[Folded, ...]
    missing: tuple[Missing, ...]

    @property
    def is_mixed(self) -> bool:
        """True if some models have local runs, and others none."""
        return len({row.is_local for row in self.rows}) > 1


def front_parts(board: Board) -> tuple[Part, ...]:
    """Return the benchmarks with a language model: those with local runs, and then those with most models first."""
    own = board.own_datasets
    profiles = [profile for name in board.benchmarks if (profile := profile_of(board, name)) is not None]
    parts = [Part(profile, is_own=profile.scope.data in own) for profile in profiles]
    return tuple(sorted(parts, key=lambda part: (not part.is_local, -len(part.models), part.heading)))


def all_parts(board: Board) -> tuple[Part, ...]:
    """Return each way in which a language model was asked: own data and local runs, and then most models first."""
    own = board.own_datasets
    parts = []
    for name in board.benchmarks:
        default = tables_of(board, name)[0]
        parts += [
            Part(profile, is_own=profile.scope.data in own, is_default=profile.table is default)
            for profile in profiles_of(board, name)
        ]
    return tuple(sorted(parts, key=lambda part: (not part.is_own, not part.is_local, -len(part.models), part.heading)))


def front_table(board: Board, parts: Sequence[Part], explored: frozenset[str] = frozenset()) -> FrontTable:
    """Return the table of the front page.

    Models with local runs come first, then those with a rank in most benchmarks, then by their rank in the first of
    these, in the second, and so on: values of different measures are never added.

    Args:
        board: All results.
        parts: All ways in which models were asked. Those with few of the models are told in a line.
        explored: Permanent links of the results whose answers the site shows; values of others lead to their model.
    """
    asked = {part.profile.benchmark for part in parts if not part.profile.scope.is_retired}
    names = {*board.benchmarks, *(pages.name for pages in pages_of_benchmarks() if not pages.is_of_own_data)}
    shown: list[Part] = []
    models: set[str] = set()
    for part in parts:
        # A column of which most cells are empty says less than a line.
        is_filled = 2 * len(part.models) >= len(models | part.models.keys())
        if not part.profile.scope.is_retired and (part.is_own or part.is_local or is_filled):
            shown.append(part)
            # Own data stand there for whoever has them, and say nothing of what others are asked.
            models |= set() if part.is_own else part.models.keys()
    return FrontTable(
        groups=tuple(part.group() for part in shown),
        rows=_rows(board, shown, explored),
        folded=_joined(part.folded() for part in parts if part not in shown),
        missing=tuple(_missing(name) for name in sorted(names - asked)),
    )


def _joined(lines: Iterable[Folded]) -> tuple[Folded, ...]:
    """Return the lines with one for all ways in which the same models were asked and do as well."""
    ways: dict[tuple[object, ...], list[Folded]] = {}
    for line in lines:
        ways.setdefault(line[:3], []).append(line)
    return tuple(same[0]._replace(ways=tuple(way for line in same for way in line.ways)) for same in ways.values())


def _missing(benchmark: str) -> Missing:
    pages = load_pages(benchmark)
    usual = f"biasboard run --dataset out/datasets/{benchmark} --backend transformers --model ORG/NAME"
    return Missing(pages, pages.command or usual)


def _rows(board: Board, parts: Sequence[Part], explored: frozenset[str]) -> tuple[FrontRow, ...]:
    asked: dict[str, set[str]] = {}
    local: set[str] = set()
    for table in board.tables:
        for row in table.rows:
            if not row.entry.is_baseline:
                asked.setdefault(row.entry.result.model.id, set()).add(table.signature.benchmark)
                if row.entry.origin == "local":
                    local.add(row.entry.result.model.id)
    rows = [
        FrontRow(
            model_id=model_id,
            page=model_page(model_id),
            ranks=tuple(part.rank(model_id, benchmarks) for part in parts),
            cells=tuple(part.cells(model_id, benchmarks, explored) for part in parts),
            vouching=tuple(dict.fromkeys(level for part in parts for level in part.vouching(model_id))),
            is_local=model_id in local,
        )
        for model_id, benchmarks in sorted(asked.items())
        if any(model_id in part.models for part in parts)
    ]
    return tuple(sorted(rows, key=_order))


def _order(row: FrontRow) -> tuple[object, ...]:
    ranks = [each.rank for each in row.ranks]
    n_values = sum(cell.metric is not None for group in row.cells for cell in group)
    places = tuple((each.rank is None, each.place) for each in row.ranks)
    return not row.is_local, -sum(rank is not None for rank in ranks), places, -n_values, row.model_id


class Part:
    """A benchmark on the front page and the rows of its models: of the versions of a model only the newest."""

    def __init__(self, profile: Profile, *, is_own: bool, is_default: bool = True) -> None:
        """Choose the rows of a profile.

        Args:
            profile: What the benchmark says about all its models.
            is_own: True if only local runs are on its data, whose name then stands for that of the benchmark.
            is_default: True if its table is the first of its benchmark; another one is told by its conditions.
        """
        self.profile, self.is_own = profile, is_own
        self.pages = load_pages(profile.benchmark)
        self.heading = " ".join(profile.scope.data) if is_own else self.pages.heading
        if not (is_own or is_default):
            self.heading += f" ({' '.join(profile.scope.data)}, {profile.scope.protocol})"
        # The page of a benchmark shows the tables of own data, too.
        anchor = f"#{anchor_of(profile.table)}" if is_own else ""
        self.page = f"{table_page(profile.table, is_default=is_own or is_default)}{anchor}"
        rows = [cell.row for column in profile.columns for cell in column.cells.values() if cell.row is not None]
        found = {id(entry): entry for row in (*profile.table.rows, *rows) for entry in row.entries}
        entries = [entry for entry in found.values() if not entry.is_baseline]
        self.models = {row.model: name for name, row in model_rows(entries).items() if row.is_counted}
        """Identity of the newest version of each model, by the model's id."""
        newest = frozenset(self.models.values())
        self.entries = tuple(entry for entry in entries if entry.result.model.identity_sha256 in newest)
        """Results of these versions."""
        self._places = {identity: (place, row) for place, (identity, row) in enumerate(profile.rows.items())}
        below = frozenset(identity for identity, row in profile.rows.items() if row.is_below)
        self._tints = [_tints(column, newest, below) for column in profile.columns]

    @property
    def is_local(self) -> bool:
        """True if one of these results is a local run."""
        return any(entry.origin == "local" for entry in self.entries)

    @property
    def able(self) -> tuple[Entry, ...]:
        """The results of those that are not below the line: what the others do says nothing of models that can read."""
        below = self.profile.below
        return tuple(entry for entry in self.entries if entry.result.model.identity_sha256 not in below)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of these versions in the default table."""
        newest = frozenset(self.models.values())
        return tuple(row for identity, row in self.profile.rows.items() if identity in newest)

    @property
    def best_by_skill(self) -> Mapping[str, frozenset[str]]:
        """The ids of the models that no other is separably better than, by the label of each column that shows skill.

        These are the columns of the metrics by which the benchmark's gates let models pass.
        """
        benchmark = load_benchmark(self.profile.benchmark)
        return {
            column.headline.label: frozenset(name for name, one in self.models.items() if tints.get(one) == "best")
            for column, tints in zip(self.profile.columns, self._tints, strict=True)
            if not column.ranks and _gate_of(column, benchmark) is not None
        }

    def group(self) -> Group:
        """Return the headings of the columns."""
        benchmark = load_benchmark(self.profile.benchmark)
        key = "-".join(
            [self.profile.benchmark, *(self.profile.scope[1:] if self.heading != self.pages.heading else ())]
        )
        headings = tuple(
            Heading(
                column.headline.name,
                column.headline.label,
                column.headline.sentence,
                column.headline.unit,
                _direction(column),
                max((metric.drawn_maximum for metric in _metrics(column)), default=1.0),
                f"about-{slug(key)}-{slug(column.headline.name)}",
                best_useless_of(column, benchmark),
            )
            for column in self.profile.columns
        )
        return Group(self.pages, self.heading, key, self.is_own, self.page, headings)

    def folded(self) -> Folded:
        """Return the line that names the models instead of columns."""
        models = tuple((display_name(model_id), model_page(model_id)) for model_id in sorted(self.models))
        n_below = sum(row.is_below for row in self.rows)
        n_ranked = sum(row.rank is not None for row in self.rows)
        if self.profile.scope.is_retired:
            note = "this version of the data is retired"
        elif n_below == len(models):
            note = "none is shown to beat a useless predictor"
        elif n_ranked == 1:
            note = "one can be ranked, with nobody to compare it with"
        else:
            note = f"{n_ranked or 'none'} can be ranked"
        way = f"{' '.join(self.profile.scope.data)}, {self.profile.scope.protocol}"
        return Folded(self.pages.heading, note, models, ((way, self.page),))

    def rank(self, model_id: str, asked: set[str]) -> GroupRank:
        """Return the rank of a model.

        Args:
            model_id: Id of the model.
            asked: Benchmarks on which it has a result under any conditions.
        """
        identity = self.models.get(model_id)
        if identity is None:
            return GroupRank(None, "", "", model_page(model_id) if self.profile.benchmark in asked else None)
        if identity not in self._places:
            return GroupRank(None, "lacks parts", "it lacks results that the ranking needs", None)
        place, row = self._places[identity]
        return GroupRank(row.rank, "", "" if row.rank else row.unranked or "", None, place)

    def cells(self, model_id: str, asked: set[str], explored: frozenset[str]) -> tuple[Cell, ...]:
        """Return the values of a model in the order of the columns.

        Args:
            model_id: Id of the model.
            asked: Benchmarks on which it has a result under any conditions.
            explored: Permanent links of the results whose answers the site shows.
        """
        identity = self.models.get(model_id)
        if identity is None:
            page = model_page(model_id) if self.profile.benchmark in asked else None
            return tuple(Cell(None, None, page) for _ in self.profile.columns)
        cells = []
        for column, tints in zip(self.profile.columns, self._tints, strict=True):
            metric, row = column.cells.get(identity, ProfileCell(None, None))
            page = None if row is None else _address(column.table, row, explored)
            cells.append(Cell(metric, tints.get(identity), page))
        return tuple(cells)

    def vouching(self, model_id: str) -> Iterator[Provenance]:
        """Yield how far each result of a model is vouched for."""
        return (entry.provenance for entry in self.entries if entry.result.model.id == model_id)


def _address(table: Table, row: Row, explored: frozenset[str]) -> str:
    """Return the address of an index, of the answers behind another value, or of its result if they are not shown."""
    if table.is_index:
        model = row.model
        return result_page(model.id, row_anchor(anchor_of(table), model))
    entry = row.entry
    link = permalink(entry.result)
    return answers_link(entry) if link in explored else link


def _metrics(column: ProfileColumn) -> Iterator[Metric]:
    return (cell.metric for cell in column.cells.values() if cell.metric is not None)


def _direction(column: ProfileColumn) -> str:
    metric = next(_metrics(column), None)
    if metric is None or metric.ideal is None:
        return ""
    if metric.ideal == metric.maximum:
        return "higher is better"
    return "lower is better" if metric.ideal == metric.minimum else f"ideal {metric.ideal:g}"


def best_useless_of(column: ProfileColumn, benchmark: Benchmark) -> Named | None:
    """Return the best baseline; without results of any, the gate's own value of them, if the column is its metric."""
    return best_useless(benchmark, list(baselines_of(column.cells.values())) or _leads(column, benchmark))


def _gate_of(column: ProfileColumn, benchmark: Benchmark) -> Gate | None:
    """Return the gate whose metric a column shows; None if it shows none."""
    gate = None if column.table.is_index else benchmark.gate(column.table.signature.task)
    return gate if gate is not None and gate.metric == column.headline.name else None


def _leads(column: ProfileColumn, benchmark: Benchmark) -> Iterator[Named]:
    metric = next(_metrics(column), None)
    if metric is None or _gate_of(column, benchmark) is None:
        return
    entries = (entry for row in column.table.rows for entry in row.entries)
    for lead in best_baselines(entries):
        yield Named(lead.baseline, replace(metric, value=lead.value, interval=None, interval_reason="not computed"))


def _tints(column: ProfileColumn, shown: frozenset[str], below: frozenset[str]) -> Mapping[str, Tint]:
    """Return the tints of the models of a column, by identity: what the comparisons of its table say.

    Args:
        column: Column to tint.
        shown: Identities of the models with a row.
        below: Identities of those that are below the line of the default table.
    """
    useless: dict[str, Tint] = {
        identity: "useless"
        for identity, (metric, row) in column.cells.items()
        if identity in shown and metric is not None and (identity in below or (row is not None and row.is_below))
    }
    pairs = [
        pair
        for pair in column.table.pairs.get(column.headline.name, ())
        if pair.is_ranked and {pair.first, pair.second} <= shown
    ]
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
    metrics = {identity: metric for identity in tints if (metric := column.cells[identity].metric) is not None}
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


def front_file(front: FrontTable) -> Export:
    """Return the table of the front page, with one row for each model."""
    rank: Fields[GroupRank] = {
        "rank_best": (int, lambda placed: None if placed.rank is None else placed.rank.best),
        "rank_worst": (int, lambda placed: None if placed.rank is None else placed.rank.worst),
        "n_ranked": (int, lambda placed: None if placed.rank is None else placed.rank.n_ranked),
        "no_rank_reason": (str, lambda placed: placed.reason or None),
    }
    value: Fields[Cell] = {
        "": (float, lambda cell: None if cell.metric is None else cell.metric.value),
        "_low": (float, lambda cell: cell.metric.interval.low if cell.metric and cell.metric.interval else None),
        "_high": (float, lambda cell: cell.metric.interval.high if cell.metric and cell.metric.interval else None),
        "_shown_as": (str, lambda cell: cell.tint and TINTS[cell.tint]),
    }
    fields: dict[str, Field[FrontRow]] = {"model": (str, lambda row: row.model_id)}
    for number, group in enumerate(front.groups):
        fields |= of_part(rank, partial(_rank_of, number), before=f"{group.key}_")
        for place, heading in enumerate(group.headings):
            fields |= of_part(value, partial(_cell_of, number, place), before=f"{group.key}_{heading.name}")
    return Export.of(Files("files/front"), fields, front.rows)


def _rank_of(number: int, row: FrontRow) -> GroupRank:
    return row.ranks[number]


def _cell_of(number: int, place: int, row: FrontRow) -> Cell:
    return row.cells[number][place]
