"""The values, comparisons and ranks of a board as three data frames, and how rows become files.

An index is a value like any other. Unknown numbers are missing, each with its reason.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from biasboard.ground import strict_json
from biasboard.ground.plain_text import protected
from biasboard.ground.strict_json import JsonValue
from evaluators.benchmark import load_benchmark
from leaderboard.ranking.boards import Board, index_bounds, missing_bounds
from leaderboard.ranking.rank_ranges import Bounds, Named, best_useless
from leaderboard.ranking.rows import Row, Table
from schemas.documents.result import Metric
from schemas.files.arrow_files import SCALARS

if TYPE_CHECKING:
    import pandas as pd


class Frames(NamedTuple):
    """What a board knows."""

    values: pd.DataFrame
    """A row for each value: table, model, result, metric, version, slice, value with interval, with missing answers at
    worst and at best, ideal, numbers of units, reason, and the best useless predictor on all items."""
    pairs: pd.DataFrame
    """A row for each pair of models of a table and each metric that compares them, with the one verdict on them."""
    ranks: pd.DataFrame
    """A row for each row of a table and each metric that ranks it: the ranges of ranks, or why there is none."""


def slice_of(metric: Metric) -> str:
    """Return the slice of a value as a word for files; that of all items is ``all``."""
    return ", ".join(f"{key}={value}" for key, value in sorted(metric.group.items())) or "all"


def table_name(table: Table) -> str:
    """Return the name of a table in the frames."""
    return table.sha256[:16]


_ABOUT: Fields[Table] = {
    "table": (str, table_name),
    "benchmark": (str, lambda table: table.signature.benchmark),
    "dataset": (str, lambda table: table.signature.dataset),
    "dataset_version": (str, lambda table: table.signature.dataset_version),
    "config": (str, lambda table: None if table.is_index else table.signature.config),
    "prompt": (str, lambda table: table.protocol if table.is_index else table.signature.prompt),
}


def attributes(path: str = "", /, **kinds: Kind) -> Fields[Any]:
    """Return columns that are attributes of the same names.

    Args:
        path: Attribute that has them, with a dot at the end; empty for the thing itself.
        kinds: Type of the values by name.
    """
    return {name: (kind, attrgetter(path + name)) for name, kind in kinds.items()}


def columns_of(fields: Fields[T]) -> dict[str, Kind]:
    """Return the columns of some fields."""
    return {name: kind for name, (kind, _) in fields.items()}


def values_of(fields: Fields[T], one: T) -> Values:
    """Return what some fields say of one thing."""
    return tuple([read(one) for _, read in fields.values()])


_MODEL: Fields[Row] = {
    "model": (str, lambda row: row.label),
    "identity_sha256": (str, lambda row: row.identity),
    "is_baseline": (bool, lambda row: row.is_baseline),
    "origin": (str, lambda row: row.entry.origin),
    "place": (str, lambda row: row.entry.place),
}
MEASURED: Fields[Metric] = {
    "metric": (str, lambda metric: metric.name),
    "slice": (str, slice_of),
    "value": (float, lambda metric: metric.value),
    "low": (float, lambda metric: metric.interval.low if metric.interval else None),
    "high": (float, lambda metric: metric.interval.high if metric.interval else None),
    "level": (float, lambda metric: metric.interval.level if metric.interval else None),
    "n_clusters": (int, lambda metric: metric.interval.n_clusters if metric.interval else None),
}
COUNTED: Fields[Metric] = attributes(
    n=int, n_excluded=int, unit=str, ideal=float, version=str, reason=str, interval_reason=str
)
"""What a file says of a value: first the value with its interval, and after what missing answers could make of it the
units that it counts, and why something is unknown."""
VALUE_COLUMNS: Columns = {
    **columns_of(MEASURED),
    "at_worst": float,
    "at_best": float,
    **columns_of(COUNTED),
    "useless_predictor": str,
    "useless_value": float,
}
PAIR_COLUMNS: Columns = {
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
"""Columns of the frames besides those that name the table, and the model of a value."""
RANKS: Fields[Row] = {
    "rank_best": (int, lambda row: row.rank.best if row.rank else None),
    "rank_worst": (int, lambda row: row.rank.worst if row.rank else None),
    "n_ranked": (int, lambda row: row.rank.n_ranked if row.rank else None),
    "rank_best_of_answers": (int, lambda row: row.rank_of_answers.best if row.rank_of_answers else None),
    "rank_worst_of_answers": (int, lambda row: row.rank_of_answers.worst if row.rank_of_answers else None),
}
REASONS: Fields[Row] = {
    "chance_of_first": (float, lambda row: row.chance),
    "unranked_reason": (str, lambda row: row.unranked),
}
"""What files say of a row: first its ranks, and after the bounds of its value how sure they are or why it has none."""
_ROW: Fields[Row] = {
    **RANKS,
    **REASONS,
    "below_the_line": (bool, lambda row: row.is_below),
    "no_better_than_baselines_reason": (str, lambda row: row.shut),
    "vouching": (str, lambda row: " ".join(row.provenances)),
}
_DTYPES = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}


def frames_of(board: Board) -> Frames:
    """Return the frames of a board."""
    tables = [*board.indices.tables, *board.tables]
    model = columns_of(_MODEL)
    return Frames(
        values=_frame(tables, _values, {**model, **VALUE_COLUMNS}),
        pairs=_frame(tables, _pairs, PAIR_COLUMNS),
        ranks=_frame(tables, _ranks, {**model, "ranked_by": str, "row": int, **columns_of(_ROW)}),
    )


def _frame(tables: Sequence[Table], rows_of: Callable[[Table], Iterator[Values]], columns: Columns) -> pd.DataFrame:
    """Return the rows of all tables, each with what names its table."""
    import pandas as pd

    types = {name: _DTYPES[kind] for name, kind in {**columns_of(_ABOUT), **columns}.items()}
    # Table by table, since the rows as objects take many times the memory of the columns.
    frames = []
    for table in tables:
        about = values_of(_ABOUT, table)
        rows = [(*about, *row) for row in rows_of(table)]
        if rows:
            frames.append(pd.DataFrame(rows, columns=list(types), dtype=object).astype(types))
    if not frames:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in types.items()})
    return pd.concat(frames, ignore_index=True)


def _values(table: Table) -> Iterator[Values]:
    useless = _useless(table)
    for row in table.rows:
        model = values_of(_MODEL, row)
        for metric, bounds in _measured(row):
            nearest = None if metric.group else useless.get((metric.name, metric.version))
            of_useless = (None, None) if nearest is None else (nearest.name, nearest.metric.value)
            measured = (*values_of(MEASURED, metric), *(bounds or (None, None)), *values_of(COUNTED, metric))
            yield (*model, *measured, *of_useless)


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


def bounds_of_row(row: Row, name: str) -> Bounds | None:
    """Return what missing answers could make of an index or a metric of a row; None if none could change it."""
    return next((bounds for metric, bounds in _measured(row) if metric.name == name and not metric.group), None)


def _measured(row: Row) -> Iterator[tuple[Metric, Bounds | None]]:
    """Yield each value of a row, with what missing answers could make of it."""
    if row.indices:
        yield from ((index.metric, index_bounds(index, row.entries)) for index in row.indices)
    else:
        yield from ((metric, missing_bounds(row.entry, metric)) for metric in row.entry.metrics.values())


def _pairs(table: Table) -> Iterator[Values]:
    labels = {row.identity: row.label for row in table.rows}
    for metric, pairs in table.pairs.items():
        for pair in pairs:
            names = (labels[pair.first], labels[pair.second], pair.first, pair.second)
            leads = (pair.lead, pair.low, pair.high, pair.lead_at_worst, pair.lead_at_best)
            yield metric, *names, *leads, pair.p_adjusted, pair.outcome, pair.is_ranked


def _ranks(table: Table) -> Iterator[Values]:
    for ranked in (table, *table.others):
        for number, row in enumerate(ranked.rows):
            yield (*values_of(_MODEL, row), ranked.primary, number, *values_of(_ROW, row))


T = TypeVar("T")
Scalar: TypeAlias = str | int | float | bool | None
Values: TypeAlias = tuple[Scalar, ...]
"""Values of a row in the order of its columns."""
Kind: TypeAlias = type[str] | type[int] | type[float] | type[bool]
Columns: TypeAlias = Mapping[str, Kind]
"""Type of the values of each column, which may all be None in one table."""
Fields: TypeAlias = Mapping[str, tuple[Kind, Callable[[T], Scalar]]]
"""Columns of rows about something: for each the type of its values, and the function that reads a value."""


Line: TypeAlias = Mapping[str, Scalar]
"""One row of an export, as values by column name."""

_MANY_ROWS = 1_000


def json_text(value: JsonValue) -> str:
    """Return the text of a file that pages or readers load."""
    return strict_json.canonical(value).decode()


def rows_by(frame: pd.DataFrame, keys: Sequence[str], names: Iterable[str]) -> dict[Values, list[Values]]:
    """Return some columns of the rows of a data frame by the values of others; missing values are None."""
    # All at once: pandas takes milliseconds for each of a thousand small frames.
    by_key: dict[Values, list[Values]] = {}
    values = (frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in names)
    for key, row in zip(zip(*(frame[name] for name in keys), strict=True), zip(*values, strict=True), strict=True):
        by_key.setdefault(key, []).append(row)
    return by_key


class Files(NamedTuple):
    """The paths of the exports of a table, relative to the root of the site."""

    stem: str
    """Path without an ending."""

    @property
    def csv(self) -> str:
        """The path of the rows as CSV."""
        return f"{self.stem}.csv"

    @property
    def parquet(self) -> str:
        """The path of the rows as Parquet."""
        return f"{self.stem}.parquet"

    @property
    def tex(self) -> str:
        """The path of the table for a paper, as LaTeX; only tables that compare models have one."""
        return f"{self.stem}.tex"

    @property
    def markdown(self) -> str:
        """The path of the same table as Markdown; the site generator would make a page of a file that ends in md."""
        return f"{self.stem}.md.txt"

    @property
    def bib(self) -> str:
        """The path of the entries to cite, as BibTeX; only tables that compare models have one."""
        return f"{self.stem}.bib"


class DownloadTable(NamedTuple):
    """A table for download."""

    files: Files
    columns: Columns
    rows: Sequence[Values]
    signature: str | None = None
    """Signatures of its results, separated by spaces; None if it is about no certain ones."""

    @staticmethod
    def of(files: Files, fields: Fields[T], things: Iterable[T]) -> DownloadTable:
        """Return a table with a row about each of some things."""
        return DownloadTable(files, columns_of(fields), [values_of(fields, one) for one in things])

    @property
    def lines(self) -> list[Line]:
        """The rows by the names of the columns.

        Raises:
            ValueError: a row has not as many values as there are columns.
        """
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    @property
    def csv(self) -> str:
        """The rows as CSV; empty without rows."""
        return to_csv(self.lines)

    @property
    def parquet(self) -> bytes:
        """The rows as Parquet; the same table always has the same bytes."""
        schema = pa.schema([(name, SCALARS[kind]) for name, kind in self.columns.items()])
        return _parquet(pa.Table.from_pylist(self.lines, schema=schema), self.signature)


def frame_parquet(frame: pd.DataFrame) -> bytes:
    """Return a data frame as Parquet; the same frame always has the same bytes."""
    return _parquet(pa.Table.from_pandas(frame, preserve_index=False))


def _parquet(table: pa.Table, signature: str | None = None) -> bytes:
    content = io.BytesIO()
    table = table.replace_schema_metadata(None)
    # Most tables have hundreds of columns and few rows, so that what a file says about each column is most of it:
    # dictionaries, statistics and a second schema in the manner of Arrow made a file of 2,178 columns 660 kB instead of
    # 370. Pandas adds a description of its own, which changes with its version.
    has_many_rows = table.num_rows > _MANY_ROWS
    with pq.ParquetWriter(
        content, table.schema, store_schema=False, use_dictionary=has_many_rows, write_statistics=False
    ) as writer:
        writer.write_table(table)
        # With a prefix, which tells the metadata from those of other writers.
        writer.add_key_value_metadata({} if signature is None else {"biasboard.signature": signature})
    return content.getvalue()


def to_csv(lines: Sequence[Line]) -> str:
    """Format rows of the same columns as CSV with a header.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.

    >>> to_csv([{"model": "=1+1", "gap": -0.5, "reason": None}]).splitlines()
    ['model,gap,reason', "'=1+1,-0.5,"]
    """
    if not lines:
        return ""
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(lines[0])
    writer.writerows(map(_cell, line.values()) for line in lines)
    return content.getvalue()


def _cell(value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return "true" if value else "false"
    return protected(value) if isinstance(value, str) else value
