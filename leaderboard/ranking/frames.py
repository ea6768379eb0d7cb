"""The values, comparisons and ranks of a board as three data frames, which are its files and answer what pages ask.

An index is a value like any other. Unknown numbers are missing, each with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evaluators.benchmark import load_benchmark
from leaderboard.ranking.boards import Board, missing_bounds
from leaderboard.ranking.bounds import Bounds
from leaderboard.ranking.index_tables import index_bounds
from leaderboard.ranking.rows import Row, Table
from leaderboard.ranking.useless import Named, best_useless
from schemas.documents.result import Interval, Metric

if TYPE_CHECKING:
    import pandas as pd


Line: TypeAlias = tuple[str | int | float | bool | None, ...]
"""Values of a row in the order of its columns."""


class Frames(NamedTuple):
    """What a board knows."""

    values: pd.DataFrame
    """A row for each value: table, model, result, metric, version, slice, value with interval, with missing answers at
    worst and at best, ideal, numbers of units, reason, and the best useless predictor on all items."""
    pairs: pd.DataFrame
    """A row for each pair of models of a table and each metric that compares them, with the one verdict on them."""
    ranks: pd.DataFrame
    """A row for each row of a table and each metric that ranks it: the ranges of ranks, or why there is none."""


_ABOUT = {
    "table": str,
    "benchmark": str,
    "dataset": str,
    "dataset_version": str,
    "config": str,
    "prompt": str,
}
_MODEL = {"model": str, "identity_sha256": str, "is_baseline": bool, "origin": str, "place": str}
_VALUE = {
    "metric": str,
    "slice": str,
    "value": float,
    "low": float,
    "high": float,
    "level": float,
    "n_clusters": int,
    "at_worst": float,
    "at_best": float,
    "n": int,
    "n_excluded": int,
    "unit": str,
    "ideal": float,
    "version": str,
    "reason": str,
    "interval_reason": str,
    "useless_predictor": str,
    "useless_value": float,
}
_PAIR = {
    "metric": str,
    "first": str,
    "second": str,
    "first_identity_sha256": str,
    "second_identity_sha256": str,
    "lead": float,
    "lead_low": float,
    "lead_high": float,
    "lead_at_worst": float,
    "lead_at_best": float,
    "p_adjusted": float,
    "outcome": str,
    "both_ranked": bool,
}
_RANK = {
    "ranked_by": str,
    "row": int,
    "rank_best": int,
    "rank_worst": int,
    "n_ranked": int,
    "rank_best_of_answers": int,
    "rank_worst_of_answers": int,
    "chance_of_first": float,
    "unranked_reason": str,
    "below_the_line": bool,
    "no_better_than_baselines_reason": str,
    "vouching": str,
}
VALUE_COLUMNS, PAIR_COLUMNS = tuple(_VALUE), tuple(_PAIR)
"""Columns of the frames besides those that name the table, and the model of a value."""
_DTYPES = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}


def frames_of(board: Board) -> Frames:
    """Return the frames of a board."""
    tables = [*board.indices.tables, *board.tables]
    return Frames(
        values=_frame(tables, _values, {**_MODEL, **_VALUE}),
        pairs=_frame(tables, _pairs, _PAIR),
        ranks=_frame(tables, _ranks, {**_MODEL, **_RANK}),
    )


def _frame(
    tables: Sequence[Table], lines_of: Callable[[Table], Iterator[Line]], columns: Mapping[str, type]
) -> pd.DataFrame:
    """Return the rows of all tables, each with what names its table.

    Args:
        tables: All tables.
        lines_of: Function that yields the rows of a table, as values in the order of the columns.
        columns: Type of each column.
    """
    import pandas as pd

    types = {name: _DTYPES[kind] for name, kind in {**_ABOUT, **columns}.items()}
    # Table by table, since the rows as objects take many times the memory of the columns.
    frames = []
    for table in tables:
        about = _about(table)
        lines = [(*about, *line) for line in lines_of(table)]
        if lines:
            frames.append(pd.DataFrame(lines, columns=list(types), dtype=object).astype(types))
    if not frames:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in types.items()})
    return pd.concat(frames, ignore_index=True)


def _about(table: Table) -> Line:
    """Return what names a table in each of its rows."""
    signature = table.signature
    config, prompt = (None, table.protocol) if table.is_index else (signature.config, signature.prompt)
    return table_name(table), signature.benchmark, signature.dataset, signature.dataset_version, config, prompt


def table_name(table: Table) -> str:
    """Return the name of a table in the frames."""
    return table.sha256[:16]


def _model(row: Row) -> Line:
    return row.label, row.identity, row.is_baseline, row.entry.origin, row.entry.place


def _values(table: Table) -> Iterator[Line]:
    useless = _useless(table)
    for row in table.rows:
        for metric, bounds in _measured(row):
            nearest = None if metric.group else useless.get((metric.name, metric.version))
            yield (
                *_model(row),
                metric.name,
                slice_of(metric),
                metric.value,
                *_ends(metric.interval),
                *(bounds or (None, None)),
                metric.n,
                metric.n_excluded,
                metric.unit,
                metric.ideal,
                metric.version,
                metric.reason,
                metric.interval_reason,
                *((None, None) if nearest is None else (nearest.name, nearest.metric.value)),
            )


def _ends(interval: Interval | None) -> Line:
    return (None,) * 4 if interval is None else (interval.low, interval.high, interval.level, interval.n_clusters)


def _useless(table: Table) -> Mapping[tuple[str, str], Named]:
    """Return the best useless predictor of a table by the name and version of each metric on all items."""
    values: dict[tuple[str, str], list[Named]] = {}
    for row in (row for row in table.rows if row.is_baseline):
        for metric, _ in _measured(row):
            if not metric.group:
                values.setdefault((metric.name, metric.version), []).append(
                    Named(row.model.id.rpartition("/")[2], metric)
                )
    benchmark = load_benchmark(table.signature.benchmark)
    best = {name: best_useless(benchmark, of_metric) for name, of_metric in values.items()}
    return {name: one for name, one in best.items() if one is not None}


def _measured(row: Row) -> Iterator[tuple[Metric, Bounds | None]]:
    """Yield each value of a row, with what missing answers could make of it."""
    if row.indices:
        yield from ((index.metric, index_bounds(index, row.entries)) for index in row.indices)
    else:
        yield from ((metric, missing_bounds(row.entry, metric)) for metric in row.entry.metrics.values())


def slice_of(metric: Metric) -> str:
    """Return the slice of a value as a word for files; that of all items is ``all``."""
    return ", ".join(f"{key}={value}" for key, value in sorted(metric.group.items())) or "all"


def _pairs(table: Table) -> Iterator[Line]:
    labels = {row.identity: row.label for row in table.rows}
    for metric, pairs in table.pairs.items():
        for pair in pairs:
            names = (labels[pair.first], labels[pair.second], pair.first, pair.second)
            leads = (pair.lead, pair.low, pair.high, pair.lead_at_worst, pair.lead_at_best)
            yield metric, *names, *leads, pair.p_adjusted, pair.outcome, pair.is_ranked


def _ranks(table: Table) -> Iterator[Line]:
    for ranked in (table, *table.others):
        for number, row in enumerate(ranked.rows):
            yield (
                *_model(row),
                ranked.primary,
                number,
                *(row.rank or (None, None, None)),
                *(row.rank_of_answers or (None, None, None))[:2],
                row.chance,
                row.unranked,
                row.is_below,
                row.shut,
                " ".join(row.provenances),
            )
