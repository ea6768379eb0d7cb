"""Exports the numbers of every table: its rows, the type of each column, and the texts as JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from biasboard.ground import strict_json
from biasboard.ground.strict_json import JsonValue
from leaderboard.ranking.boards import Board, ResultTable, Row
from leaderboard.ranking.index_tables import IndexRow
from leaderboard.ranking.rank_ranges import Comparison
from leaderboard.verify.entries import Entry, LeftOut
from schemas.documents.result import Metric, Model

Scalar: TypeAlias = str | int | float | bool | None
Line: TypeAlias = Mapping[str, Scalar]
"""One row of an export, as values by column name; all rows of an export have the same columns."""
Kind: TypeAlias = type[str] | type[int] | type[float] | type[bool]
Columns: TypeAlias = Mapping[str, Kind]
"""Type of the values of each column, which may all be None in one table."""

_MODEL: Columns = {"model": str, "revision": str, "precision": str, "backend": str, "endpoint": str}
_RANKED: Columns = {
    "rank_best": int,
    "rank_worst": int,
    "n_ranked": int,
    "rank_best_of_answers": int,
    "rank_worst_of_answers": int,
    "ranked_by_worst": float,
    "best_with_missing": float,
    "chance_of_first": float,
    "unranked_reason": str,
}
_NO_BETTER = "no_better_than_baselines_reason"
_COUNTED: Columns = {
    "n_items": int,
    "n_scored": int,
    "n_refused": int,
    "n_unparsed": int,
    "n_failed": int,
    "n_truncated": int,
    "n_metrics_recomputed": int,
    "command": str,
    "signature": str,
    "signature_sha256": str,
    "identity_sha256": str,
    "records_sha256": str,
}
COMPARISON_COLUMNS: Columns = {
    "first": str,
    "second": str,
    "difference": float,
    "difference_low": float,
    "difference_high": float,
    "p_adjusted": float,
    "separable": bool,
}
METRIC_COLUMNS: Columns = {
    "metric": str,
    "slice": str,
    "value": float,
    "low": float,
    "high": float,
    "level": float,
    "n_clusters": int,
    "n": int,
    "n_excluded": int,
    "unit": str,
    "ideal": float,
    "version": str,
    "reason": str,
    "interval_reason": str,
}
AUDIT_COLUMNS: Columns = {
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

# A cell that begins with one of these is a formula to a spreadsheet; the last four are the wide forms of the signs.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def to_csv(lines: Sequence[Line]) -> str:
    """Format rows as CSV with a header.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.

    >>> to_csv([{"model": "=1+1", "gap": -0.5, "reason": None}]).splitlines()
    ['model,gap,reason', "'=1+1,-0.5,"]
    """
    if not lines:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(lines[0])
    writer.writerows([_cell(value) for value in line.values()] for line in lines)
    return text.getvalue()


def _cell(value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def to_json(lines: Sequence[Line], **about: JsonValue) -> str:
    """Format rows as a JSON object.

    Args:
        lines: Rows, which become the value of the key ``rows``.
        about: Other keys of the object, which describe the table.
    """
    rows: list[JsonValue] = [dict(line) for line in lines]
    return strict_json.dumps({**about, "rows": rows})


def table_columns(table: ResultTable) -> Columns:
    """Return the columns of the export of a table of results."""
    columns = placed_columns() | {"ranked_by": str}
    for other in table.others:
        columns |= {f"{name}_by_{other.primary}": kind for name, kind in _RANKED.items()}
    columns |= {"origin": str, "provenance": str}
    for column in table.columns:
        columns |= metric_columns(column.key)
    return {**columns, **_COUNTED}


def table_lines(table: ResultTable) -> list[Line]:
    """Return the export rows of a table of results."""
    others = [(other.primary, {id(row.entry): row for row in other.rows}) for other in table.others]
    return [
        _row_line(table, row, {str(name): by_entry[id(row.entry)] for name, by_entry in others}) for row in table.rows
    ]


def placed(model: Model, row: Row | IndexRow) -> dict[str, Scalar]:
    """Return the fields of an export row that describe the model and its rank."""
    told: dict[str, Scalar] = {
        "model": model.id,
        "revision": model.revision,
        "precision": model.precision,
        "backend": model.backend,
        "endpoint": model.endpoint,
    }
    return told | _ranked(row) | {_NO_BETTER: row.shut}


def placed_columns() -> dict[str, Kind]:
    """Return the columns that :func:`placed` fills."""
    return {**_MODEL, **_RANKED, _NO_BETTER: str}


def _ranked(row: Row | IndexRow) -> dict[str, Scalar]:
    rank, of_answers, bounds = row.rank, row.rank_of_answers, row.bounds
    return {
        "rank_best": None if rank is None else rank.best,
        "rank_worst": None if rank is None else rank.worst,
        "n_ranked": None if rank is None else rank.n_ranked,
        "rank_best_of_answers": None if of_answers is None else of_answers.best,
        "rank_worst_of_answers": None if of_answers is None else of_answers.worst,
        "ranked_by_worst": None if bounds is None else bounds.worst,
        "best_with_missing": None if bounds is None else bounds.best,
        "chance_of_first": row.chance,
        "unranked_reason": row.unranked,
    }


def _row_line(table: ResultTable, row: Row, others: Mapping[str, Row]) -> Line:
    result = row.entry.result
    line = placed(result.model, row) | {"ranked_by": table.primary}
    for metric, other in others.items():
        line |= {f"{name}_by_{metric}": value for name, value in _ranked(other).items()}
    line |= {"origin": row.entry.origin, "provenance": row.entry.provenance}
    for column in table.columns:
        line |= metric_fields(column.of(row.entry), prefix=column.key)
    counts = result.counts
    line |= {
        "n_items": counts.items,
        "n_scored": counts.scored,
        "n_refused": counts.refused,
        "n_unparsed": counts.unparsed,
        "n_failed": counts.failed,
        "n_truncated": counts.truncated,
        "n_metrics_recomputed": row.entry.n_recomputed,
        "command": row.entry.command,
        "signature": str(result.signature),
        "signature_sha256": result.signature_sha256,
        "identity_sha256": result.model.identity_sha256,
        "records_sha256": result.records.sha256,
    }
    return line


def metric_fields(metric: Metric | None, *, prefix: str) -> dict[str, Scalar]:
    """Return the fields of an export row that describe one metric.

    Args:
        metric: Metric to export; None if the task has no such metric.
        prefix: Name of the field with the value, and beginning of the names of the other fields.
    """
    interval = metric.interval if metric else None
    return {
        prefix: metric.value if metric else None,
        f"{prefix}_low": interval.low if interval else None,
        f"{prefix}_high": interval.high if interval else None,
        f"{prefix}_n": metric.n if metric else None,
        f"{prefix}_n_excluded": metric.n_excluded if metric else None,
        f"{prefix}_version": metric.version if metric else None,
        f"{prefix}_reason": metric.reason if metric else "not a metric of this task",
    }


def metric_columns(prefix: str) -> dict[str, Kind]:
    """Return the columns that :func:`metric_fields` fills for a prefix."""
    return {
        prefix: float,
        f"{prefix}_low": float,
        f"{prefix}_high": float,
        f"{prefix}_n": int,
        f"{prefix}_n_excluded": int,
        f"{prefix}_version": str,
        f"{prefix}_reason": str,
    }


def comparison_lines(comparisons: Sequence[Comparison]) -> list[Line]:
    """Return the export rows of the pairwise comparisons behind the rank ranges of a table."""
    return [
        {
            "first": comparison.first,
            "second": comparison.second,
            "difference": comparison.difference,
            "difference_low": comparison.low,
            "difference_high": comparison.high,
            "p_adjusted": comparison.p_adjusted,
            "separable": comparison.separable,
        }
        for comparison in comparisons
    ]


def metric_lines(entry: Entry) -> list[Line]:
    """Return the export rows of all metrics of one result, one row for each metric and slice."""
    return [
        {
            "metric": metric.name,
            "slice": ", ".join(f"{key}={value}" for key, value in sorted(metric.group.items())) or "all",
            "value": metric.value,
            "low": metric.interval.low if metric.interval else None,
            "high": metric.interval.high if metric.interval else None,
            "level": metric.interval.level if metric.interval else None,
            "n_clusters": metric.interval.n_clusters if metric.interval else None,
            "n": metric.n,
            "n_excluded": metric.n_excluded,
            "unit": metric.unit,
            "ideal": metric.ideal,
            "version": metric.version,
            "reason": metric.reason,
            "interval_reason": metric.interval_reason,
        }
        for metric in entry.metrics.values()
    ]


def audit_lines(board: Board, left_out: Sequence[LeftOut]) -> list[Line]:
    """Return one export row for each result that was found, shown or not, with the reason if it is not shown."""
    lines = [_audit_line(row.entry, "shown", None) for table in board.tables for row in table.rows]
    lines += [
        _audit_line(
            duplicate.entry,
            "duplicate",
            f"{duplicate.shown.origin} result {duplicate.shown.place} of the same model and signature is shown instead"
            + ("" if duplicate.agrees else ", whose answers differ"),
        )
        for duplicate in board.duplicates
    ]
    lines += [_audit_line(entry, "apart", entry.match.reason) for entry in board.apart]
    lines += [
        {
            "place": result.place,
            "origin": result.origin,
            "state": "left out",
            "reason": result.reason,
            "model": None,
            "signature": None,
            "n_metrics_recomputed": None,
            "n_records": None,
            "records_sha256": None,
            "biasboard": None,
        }
        for result in left_out
    ]
    return sorted(lines, key=lambda line: (str(line["origin"]), str(line["place"])))


def _audit_line(entry: Entry, state: str, reason: str | None) -> Line:
    result = entry.result
    return {
        "place": entry.place,
        "origin": entry.origin,
        "state": state,
        "reason": reason,
        "model": result.model.id,
        "signature": str(result.signature),
        "n_metrics_recomputed": entry.n_recomputed,
        "n_records": result.records.n_rows,
        "records_sha256": result.records.sha256,
        "biasboard": result.environment.biasboard,
    }
