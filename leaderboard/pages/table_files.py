"""Makes the tables for download: those of the benchmark pages, of single results, and the lists of the site.

Pairs, and the values of a result, are rows of the frames of the board.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from leaderboard.pages.exports import DownloadTable, Files, rows_by
from leaderboard.pages.tables import TableView, result_files
from leaderboard.ranking.boards import Board
from leaderboard.ranking.fields import Columns, Fields, Scalar, Values, attributes, columns_of, values_of
from leaderboard.ranking.frames import COUNTED, MEASURED, PAIR_COLUMNS, RANKS, REASONS, VALUE_COLUMNS, table_name
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry, LeftOut
from schemas.documents.result import Metric, Model

if TYPE_CHECKING:
    import pandas as pd

_MODEL: Fields[Model] = {
    "model": (str, lambda model: model.id),
    **attributes(revision=str, precision=str, backend=str, endpoint=str),
}
_RANKED: Fields[Row] = {
    **RANKS,
    "ranked_by_worst": (float, lambda row: row.bounds.worst if row.bounds else None),
    "best_with_missing": (float, lambda row: row.bounds.best if row.bounds else None),
    **REASONS,
}
_METRIC: Fields[Metric] = {
    "" if name == "value" else f"_{name}": {**MEASURED, **COUNTED}[name]
    for name in ("value", "low", "high", "n", "n_excluded", "version", "reason")
}
"""Fields of one metric, which follow the key of its column on the page; the first one holds its value."""
_NO_METRIC: Values = (*[None] * (len(_METRIC) - 1), "not a metric of this task")
_RESULT: Fields[Entry] = {
    "place": (str, lambda entry: entry.place),
    "n_items": (int, lambda entry: entry.result.counts.items),
    "n_scored": (int, lambda entry: entry.result.counts.scored),
    "n_refused": (int, lambda entry: entry.result.counts.refused),
    "n_unparsed": (int, lambda entry: entry.result.counts.unparsed),
    "n_failed": (int, lambda entry: entry.result.counts.failed),
    "n_truncated": (int, lambda entry: entry.result.counts.truncated),
    "first_token_share": (float, lambda entry: entry.first_token_share),
    "n_metrics_recomputed": (int, lambda entry: entry.n_recomputed),
    "command": (str, lambda entry: entry.command),
    "signature": (str, lambda entry: str(entry.result.signature)),
    "signature_sha256": (str, lambda entry: entry.result.signature_sha256),
    "identity_sha256": (str, lambda entry: entry.result.model.identity_sha256),
    "records_sha256": (str, lambda entry: None if entry.is_computed else entry.result.records.sha256),
}
_AUDITED: Columns = {
    "place": str,
    "origin": str,
    "state": str,
    "reason": str,
    "model": str,
    "signature": str,
    "n_metrics_recomputed": int,
    "n_records": int,
    "records_sha256": str,
    "biasboard": str,
}


def view_table(view: TableView) -> DownloadTable:
    """Return the table of a view: of each row the model, its ranks, its values and the results behind them."""
    entries = view.table.rows[0].entries
    of_rank, of_metric, of_result = columns_of(_RANKED), columns_of(_METRIC), columns_of(_RESULT)
    columns = {
        **columns_of(_MODEL),
        **of_rank,
        "no_better_than_baselines_reason": str,
        "ranked_by": str,
        **{f"{name}_by_{other.primary}": kind for other in view.table.others for name, kind in of_rank.items()},
        "origin": str,
        "provenance": str,
        **{f"{column.key}{name}": kind for column in view.all_columns for name, kind in of_metric.items()},
        **{f"{prefix}{name}": kind for prefix in _prefixes(entries) for name, kind in of_result.items()},
    }
    rows = [tuple(_values(view, row)) for row in view.table.rows]
    return DownloadTable(view.files, columns, rows, " ".join(map(str, view.table.signatures)))


def _values(view: TableView, row: Row) -> Iterator[Scalar]:
    """Yield the values of a row in the order of the columns of :func:`view_table`."""
    ranked, *others = (values_of(_RANKED, placed) for *_, placed in view.placings[row.entry.origin, row.entry.place])
    yield from (*values_of(_MODEL, row.model), *ranked, row.shut, view.table.primary, *chain(*others))
    yield " ".join(dict.fromkeys(entry.origin for entry in row.entries))
    yield " ".join(row.provenances)
    cells = view.cells(row)
    for column in view.all_columns:
        metric, *_ = cells[column.key]
        yield from _NO_METRIC if metric is None else values_of(_METRIC, metric)
    for entry in row.entries:
        yield from values_of(_RESULT, entry)


def _prefixes(entries: Sequence[Entry]) -> list[str]:
    """Return the beginning of the columns about each result of a row: its config, with the prompt if several share it.

    The only result of a row needs none.
    """
    signatures = [entry.result.signature for entry in entries]
    configs = [signature.config for signature in signatures]
    if len(entries) == 1 and configs:
        return [""]
    return [f"{one.config}_" if configs.count(one.config) == 1 else f"{one.config}_{one.prompt}_" for one in signatures]


def pair_tables(view_of: Sequence[TableView], pairs: pd.DataFrame) -> Iterator[DownloadTable]:
    """Yield the pairs of each table."""
    rows = rows_by(pairs, ["table"], PAIR_COLUMNS)
    for view in view_of:
        if (of_table := rows.get((table_name(view.table),))) is not None:
            yield DownloadTable(view.comparisons, PAIR_COLUMNS, of_table, " ".join(map(str, view.table.signatures)))


def result_tables(view_of: Sequence[TableView], values: pd.DataFrame) -> Iterator[DownloadTable]:
    """Yield the values of each result of a language model."""
    rows = rows_by(values, ["table", "origin", "place"], VALUE_COLUMNS)
    for table in (view.table for view in view_of if not view.table.is_index):
        for entry in (row.entry for row in table.rows if not row.is_baseline):
            of_result = rows[table_name(table), entry.origin, entry.place]
            yield DownloadTable(result_files(entry.result), VALUE_COLUMNS, of_result)


_UNDECIDED = "the register has no decision on these files: they are new, or were changed since they were accepted"


def audit_table(board: Board, left_out: Sequence[LeftOut]) -> DownloadTable:
    """Return one row for each result that was found, with the reason if it is not shown or has no rank."""
    found: list[tuple[str, str | None, Entry]] = [
        ("shown", "; ".join(row.reasons) or None, row.entry)
        for table in board.tables
        for row in table.rows
        if not row.entry.is_computed
    ]
    found += [("duplicate", one.reason, one.entry) for one in board.duplicates]
    found += [("apart", entry.match.reason, entry) for entry in board.apart]
    rows: list[Values] = []
    for state, reason, entry in found:
        if entry.origin == "accepted" and entry.acceptance is None:
            reason = "; ".join(filter(None, (_UNDECIDED, reason)))
        result, records = entry.result, entry.result.records
        about = (result.model.id, str(result.signature), entry.n_recomputed, records.n_rows, records.sha256)
        rows.append((entry.place, entry.origin, state, reason, *about, result.environment.biasboard))
    rows += [(one.place, one.origin, "left out", one.reason, *[None] * 6) for one in left_out]
    rows.sort(key=lambda row: (str(row[1]), str(row[0])))
    return DownloadTable(Files("files/audit"), _AUDITED, rows)
