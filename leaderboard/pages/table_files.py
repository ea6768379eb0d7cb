"""Makes the tables for download: those of the benchmark pages, of single results, and the lists of the site.

Pairs, and the values of a result, are rows of the frames of the board.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.exports import (
    Columns,
    Fields,
    Files,
    Scalar,
    Table,
    json_text,
    kinds_of_frame,
    lines_by,
)
from leaderboard.pages.tables import TableView, result_files
from leaderboard.ranking.boards import Board
from leaderboard.ranking.frames import PAIR_COLUMNS, VALUE_COLUMNS, slice_of, table_name
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry, LeftOut
from schemas.documents.dataset import Manifest
from schemas.documents.result import Metric, Signature

if TYPE_CHECKING:
    import pandas as pd

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
_METRIC: Columns = {
    "": float,
    "_low": float,
    "_high": float,
    "_n": int,
    "_n_excluded": int,
    "_version": str,
    "_reason": str,
}
"""Columns of one metric, which follow the key of its column on the page; the first one holds its value."""
_COUNTED: Columns = {
    "place": str,
    "n_items": int,
    "n_scored": int,
    "n_refused": int,
    "n_unparsed": int,
    "n_failed": int,
    "n_truncated": int,
    "first_token_share": float,
    "n_metrics_recomputed": int,
    "command": str,
    "signature": str,
    "signature_sha256": str,
    "identity_sha256": str,
    "records_sha256": str,
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
_ASKED: Columns = {
    "dataset": str,
    "version": str,
    "config": str,
    "splits": str,
    "n_items": int,
    "items_sha256": str,
    "n_results": int,
    "licence": str,
    "human_validated": bool,
}
_TABLED: Fields[TableView] = {
    "benchmark": (str, lambda section: section.benchmark),
    "dataset": (str, lambda section: section.table.signature.dataset),
    "dataset_version": (str, lambda section: section.table.signature.dataset_version),
    "config": (str, lambda section: section.table.signature.config),
    "prompt": (str, lambda section: section.table.signature.prompt),
    "n_items": (int, lambda section: section.table.signature.n_items),
    "n_ranked": (int, lambda section: len(section.table.ranked)),
    "n_baselines": (int, lambda section: section.n_baselines),
    "signature": (str, lambda section: str(section.table.signature)),
    "signature_sha256": (str, lambda section: section.table.signature_sha256),
}
Manifests = Mapping[tuple[str, str], Manifest]
"""Manifests of the datasets that were built here, by name and version."""


def view_table(view: TableView, manifests: Manifests) -> Table:
    """Return the table of a view: of each row the model, its ranks, its values and the results behind them."""
    entries = view.table.rows[0].entries
    columns = {
        **_MODEL,
        **_RANKED,
        "no_better_than_baselines_reason": str,
        "ranked_by": str,
        **{f"{name}_by_{other.primary}": kind for other in view.table.others for name, kind in _RANKED.items()},
        "origin": str,
        "provenance": str,
        **{f"{column.key}{name}": kind for column in view.all_columns for name, kind in _METRIC.items()},
        **{f"{prefix}{name}": kind for prefix in _prefixes(entries) for name, kind in _COUNTED.items()},
    }
    lines = [dict(zip(columns, _values(view, row), strict=True)) for row in view.table.rows]
    signatures = " ".join(map(str, view.table.signatures))
    metrics: dict[str, JsonValue] = {
        column.key: _about_metric(column.example) for column in view.all_columns if column.example is not None
    }
    about = _about([entry.result.signature for entry in entries], manifests) | {"metrics": json_text(metrics)}
    return Table(view.files, columns, lines, signatures, about)


def _values(view: TableView, row: Row) -> Iterator[Scalar]:
    """Yield the values of a row in the order of the columns of :func:`view_table`."""
    model = row.model
    yield from (model.id, model.revision, model.precision, model.backend, model.endpoint)
    ranked, *others = (placed for *_, placed in view.placings[row.entry.origin, row.entry.place])
    yield from (*_ranks(ranked), row.shut, view.table.primary)
    for other in others:
        yield from _ranks(other)
    yield " ".join(dict.fromkeys(entry.origin for entry in row.entries))
    yield " ".join(row.provenances)
    cells = view.cells(row)
    for column in view.all_columns:
        metric, *_ = cells[column.key]
        if metric is None:
            yield from (*[None] * 6, "not a metric of this task")
            continue
        interval = metric.interval
        yield from (metric.value, *((None, None) if interval is None else (interval.low, interval.high)))
        yield from (metric.n, metric.n_excluded, metric.version, metric.reason)
    for entry in row.entries:
        result, counts = entry.result, entry.result.counts
        yield entry.place
        yield from (counts.items, counts.scored, counts.refused, counts.unparsed, counts.failed, counts.truncated)
        yield from (entry.first_token_share, entry.n_recomputed, entry.command)
        yield from (str(result.signature), result.signature_sha256, result.model.identity_sha256)
        yield None if entry.is_computed else result.records.sha256


def _ranks(row: Row) -> Iterator[Scalar]:
    yield from row.rank or (None, None, None)
    yield from (row.rank_of_answers or (None, None, None))[:2]
    yield from row.bounds or (None, None)
    yield from (row.chance, row.unranked)


def _prefixes(entries: Sequence[Entry]) -> list[str]:
    """Return the beginning of the columns about each result of a row: its config, with the prompt if several share it.

    The only result of a row needs none.
    """
    signatures = [entry.result.signature for entry in entries]
    configs = [signature.config for signature in signatures]
    if len(entries) == 1 and configs:
        return [""]
    return [f"{one.config}_" if configs.count(one.config) == 1 else f"{one.config}_{one.prompt}_" for one in signatures]


def pair_tables(view_of: Sequence[TableView], pairs: pd.DataFrame) -> Iterator[Table]:
    """Yield the pairs of each table."""
    columns = kinds_of_frame(pairs[list(PAIR_COLUMNS)])
    lines = lines_by(pairs, ["table"], PAIR_COLUMNS)
    for view in view_of:
        if (of_table := lines.get((table_name(view.table),))) is not None:
            yield Table(view.comparisons, columns, of_table, " ".join(map(str, view.table.signatures)))


def result_tables(view_of: Sequence[TableView], values: pd.DataFrame) -> Iterator[Table]:
    """Yield the values of each result of a language model."""
    columns = kinds_of_frame(values[list(VALUE_COLUMNS)])
    lines = lines_by(values, ["table", "origin", "place"], VALUE_COLUMNS)
    for table in (view.table for view in view_of if not view.table.is_index):
        for entry in (row.entry for row in table.rows if not row.is_baseline):
            of_result = lines[table_name(table), entry.origin, entry.place]
            yield Table(result_files(entry.result), columns, of_result)


def audit_table(board: Board, left_out: Sequence[LeftOut]) -> Table:
    """Return one row for each result that was found, shown or not, with the reason if it is not shown."""
    found: list[tuple[str, str | None, Entry]] = [
        ("shown", None, row.entry) for table in board.tables for row in table.rows if not row.entry.is_computed
    ]
    found += [("duplicate", one.reason, one.entry) for one in board.duplicates]
    found += [("apart", entry.match.reason, entry) for entry in board.apart]
    rows: list[Sequence[Scalar]] = []
    for state, reason, entry in found:
        result, records = entry.result, entry.result.records
        about = (result.model.id, str(result.signature), entry.n_recomputed, records.n_rows, records.sha256)
        rows.append((entry.place, entry.origin, state, reason, *about, result.environment.biasboard))
    rows += [(one.place, one.origin, "left out", one.reason, *[None] * 6) for one in left_out]
    rows.sort(key=lambda row: (str(row[1]), str(row[0])))
    return Table(Files("files/audit"), _AUDITED, [dict(zip(_AUDITED, row, strict=True)) for row in rows])


def benchmarks_table(sections: Sequence[TableView]) -> Table:
    """Return one row for each table of results."""
    return Table.of(Files("files/benchmarks"), _TABLED, sections)


def data_table(sections: Sequence[TableView], manifests: Sequence[Manifest]) -> Table:
    """Return one row for each set of items that has results, with facts from the manifest if it is available."""
    built = {(manifest.name, manifest.version): manifest for manifest in manifests}
    n_results: Counter[tuple[str, ...]] = Counter()
    n_items: dict[tuple[str, ...], int] = {}
    key: tuple[str, ...]
    for section in sections:
        asked = section.table.signature
        key = (asked.dataset, asked.dataset_version, asked.config, "+".join(asked.splits), asked.items_sha256)
        n_results[key] += len(section.table.rows)
        n_items[key] = asked.n_items
    lines = []
    for key in sorted(n_results):
        *names, items_sha256 = key
        manifest = built.get((key[0], key[1]))
        known = (None, None) if manifest is None else (manifest.licence, manifest.human_validated)
        row = (*names, n_items[key], items_sha256, n_results[key], *known)
        lines.append(dict(zip(_ASKED, row, strict=True)))
    return Table(Files("files/data"), _ASKED, lines)


def _about(signatures: Sequence[Signature], manifests: Manifests) -> dict[str, str]:
    """Return the licences and sources of the datasets of some results, as far as they were built here."""
    names = dict.fromkeys((signature.dataset, signature.dataset_version) for signature in signatures)
    used = [manifest for name in names if (manifest := manifests.get(name)) is not None]
    about = {"datasets": " ".join(f"{name}@{version}" for name, version in names)}
    if used:
        about["licence"] = "; ".join(dict.fromkeys(manifest.licence for manifest in used))
        sources = [f"{source.address} ({source.licence})" for manifest in used for source in manifest.sources]
        about["sources"] = "; ".join(dict.fromkeys(sources))
    return about


def _about_metric(metric: Metric) -> JsonValue:
    """Return what is the same for all values of a metric; its version stands beside each."""
    about: dict[str, JsonValue] = {"metric": metric.name, "unit": metric.unit, "ideal": metric.ideal}
    return about | {"slice": slice_of(metric)} if metric.group else about
