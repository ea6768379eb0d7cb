"""Puts results that may be compared into one table, ranks them, and says which are not shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark import Column
from leaderboard.checking.entries import MIN_COVERAGE, Entry, model_label, why_unranked
from leaderboard.ranking.columns import Undefined, choose, undefined
from leaderboard.ranking.indices import Indices, index_tables
from leaderboard.ranking.rank_ranges import Candidate, Comparison, Ranking, RankRange, rank
from schemas.result import Metric, Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A result in its table."""

    entry: Entry
    rank: RankRange | None
    unranked: str | None
    """Why the row has no rank; null if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """Every result of one signature, nearest to the ideal first, unknown values last."""

    signature: Signature
    signature_sha256: str
    columns: tuple[Column, ...]
    undefined: tuple[Undefined, ...]
    primary: str | None
    """The metric that the rows are ranked by; null where none is agreed on."""
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    """Of the ranked models with each other, by ``model_label``."""

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)


class Duplicate(NamedTuple):
    """A sound result that is not shown, because another one of the same model and signature is."""

    entry: Entry
    shown: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All tables, by benchmark, dataset and configuration."""

    tables: tuple[ResultTable, ...]
    duplicates: tuple[Duplicate, ...]
    indices: Indices
    """Of benchmarks that have an index over their configs."""

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks, sorted."""
        return tuple(sorted({table.signature.benchmark for table in self.tables}))


def table_title(table: ResultTable, tables: Sequence[ResultTable]) -> str:
    """Dataset, config and prompt; what else differs only where another table would have the same title."""
    signature = table.signature
    title = _short_title(signature)
    same = [other.signature for other in tables if _short_title(other.signature) == title]
    if len({other.n_items for other in same}) > 1:
        title += f", {signature.n_items:,} items"
    if len({other.normalisation for other in same}) > 1:
        title += f", {signature.normalisation}"
    if len({other.splits for other in same}) > 1:
        title += f", {'+'.join(signature.splits)}"
    return title


def _short_title(signature: Signature) -> str:
    return f"{signature.dataset} {signature.dataset_version}, {signature.config}, {signature.prompt}"


def assemble(entries: Sequence[Entry]) -> Board:
    """Group results by signature, one row per model identity.

    Where several results are of one model and one signature, an accepted one is shown rather than a local one, then
    the first by place; the others are listed as duplicates. Another revision, precision or backend is another model.
    """
    by_signature: dict[str, dict[str, Entry]] = {}
    duplicates = []
    for entry in sorted(entries, key=lambda entry: (entry.origin != "accepted", entry.place)):
        rows = by_signature.setdefault(entry.result.signature_sha256, {})
        shown = rows.setdefault(entry.result.model.identity_sha256, entry)
        if shown is not entry:
            duplicates.append(Duplicate(entry=entry, shown=shown))
    tables = [_table(list(rows.values())) for rows in by_signature.values()]
    every_row = [entry for rows in by_signature.values() for entry in rows.values()]
    return Board(
        tables=tuple(sorted(tables, key=_table_order)), duplicates=tuple(duplicates), indices=index_tables(every_row)
    )


def _table_order(table: ResultTable) -> tuple[str, str, tuple[int, ...], str, str, int, str]:
    signature = table.signature
    # The newest version and the whole dataset first.
    version = tuple(-int(part) for part in signature.dataset_version.split("."))
    return (
        signature.benchmark,
        signature.dataset,
        version,
        signature.config,
        signature.prompt,
        -signature.n_items,
        table.signature_sha256,
    )


def _table(entries: Sequence[Entry]) -> ResultTable:
    signature = entries[0].result.signature
    reasons = {_identity(entry): _why_unranked(entry) for entry in entries}
    ranking = _rank([entry for entry in entries if reasons[_identity(entry)] is None])
    rows = [
        Row(entry=entry, rank=ranking.ranges.get(_identity(entry)), unranked=reasons[_identity(entry)])
        for entry in sorted(entries, key=_row_order)
    ]
    labels = {_identity(entry): model_label(entry) for entry in entries}
    return ResultTable(
        signature=signature,
        signature_sha256=entries[0].result.signature_sha256,
        columns=choose(signature.benchmark, entries),
        undefined=undefined(entries),
        primary=load_benchmark(signature.benchmark).primary_metric,
        rows=tuple(rows),
        comparisons=tuple(comparison.named(labels) for comparison in ranking.comparisons),
    )


def _identity(entry: Entry) -> str:
    return entry.result.model.identity_sha256


def _why_unranked(entry: Entry) -> str | None:
    if (reason := why_unranked(entry)) is not None:
        return reason
    primary = entry.primary
    if primary is None:
        benchmark = entry.result.signature.benchmark
        if load_benchmark(benchmark).indices:
            return "no config by itself ranks models, the index of all configs does"
        return f"no metric ranks the models of benchmark {benchmark}"
    if primary.value is None:
        return primary.reason
    # An item without an answer takes its whole pair along: few missing items can hide many pairs.
    total = primary.n + primary.n_excluded
    if primary.n < MIN_COVERAGE * total:
        return f"{primary.n} of {total} {primary.unit} could be scored, a rank needs {MIN_COVERAGE:.0%}"
    return None


def _rank(entries: Sequence[Entry]) -> Ranking:
    candidates = []
    ideal = None
    for entry in entries:
        primary = entry.primary
        if primary is None or primary.value is None or entry.primary_resamples is None:
            continue
        ideal = primary.ideal
        candidates.append(
            Candidate(
                name=_identity(entry),
                value=primary.value,
                resamples=entry.primary_resamples,
                n_clusters=None if primary.interval is None else primary.interval.n_clusters,
            )
        )
    if ideal is None:
        return Ranking(ranges={}, comparisons=())
    return rank(candidates, ideal=ideal)


def _row_order(entry: Entry) -> tuple[bool, float, str, str]:
    return (*distance_to_ideal(entry.primary), model_label(entry), _identity(entry))


def distance_to_ideal(metric: Metric | None) -> tuple[bool, float]:
    """Sort key: whether the distance is unknown, and the distance."""
    if metric is None or metric.value is None or metric.ideal is None:
        return True, 0.0
    return False, abs(metric.value - metric.ideal)
