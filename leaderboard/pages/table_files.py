"""Makes the tables for download: those of the benchmark pages, of single results, and the lists of the site.

Pairs, and the values of a result, are rows of the frames of the board.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.exports import Fields, Files, Table, json_text, kinds, kinds_of_frame, line, lines_by, of_part
from leaderboard.pages.tables import TableRow, TableView, result_files
from leaderboard.ranking.boards import Board
from leaderboard.ranking.frames import PAIR_COLUMNS, VALUE_COLUMNS, slice_of, table_name
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry, LeftOut
from schemas.documents.dataset import Manifest
from schemas.documents.result import Metric, Model, Signature

if TYPE_CHECKING:
    import pandas as pd

_MODEL: Fields[Model] = {
    "model": (str, lambda model: model.id),
    "revision": (str, lambda model: model.revision),
    "precision": (str, lambda model: model.precision),
    "backend": (str, lambda model: model.backend),
    "endpoint": (str, lambda model: model.endpoint),
}
_RANKED: Fields[Row] = {
    "rank_best": (int, lambda row: None if row.rank is None else row.rank.best),
    "rank_worst": (int, lambda row: None if row.rank is None else row.rank.worst),
    "n_ranked": (int, lambda row: None if row.rank is None else row.rank.n_ranked),
    "rank_best_of_answers": (int, lambda row: None if row.rank_of_answers is None else row.rank_of_answers.best),
    "rank_worst_of_answers": (int, lambda row: None if row.rank_of_answers is None else row.rank_of_answers.worst),
    "ranked_by_worst": (float, lambda row: None if row.bounds is None else row.bounds.worst),
    "best_with_missing": (float, lambda row: None if row.bounds is None else row.bounds.best),
    "chance_of_first": (float, lambda row: row.chance),
    "unranked_reason": (str, lambda row: row.unranked),
}
_METRIC: Fields[Metric | None] = {
    "": (float, lambda metric: None if metric is None else metric.value),
    "_low": (float, lambda metric: metric.interval.low if metric and metric.interval else None),
    "_high": (float, lambda metric: metric.interval.high if metric and metric.interval else None),
    "_n": (int, lambda metric: None if metric is None else metric.n),
    "_n_excluded": (int, lambda metric: None if metric is None else metric.n_excluded),
    "_version": (str, lambda metric: None if metric is None else metric.version),
    "_reason": (str, lambda metric: "not a metric of this task" if metric is None else metric.reason),
}
"""Columns of one metric, which follow the key of its column on the page; the first one holds its value."""
_COUNTED: Fields[Entry] = {
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
_AUDITED: Fields[Entry] = {
    "place": (str, lambda entry: entry.place),
    "origin": (str, lambda entry: entry.origin),
    "state": (str, lambda entry: "shown"),
    "reason": (str, lambda entry: None),
    "model": (str, lambda entry: entry.result.model.id),
    "signature": (str, lambda entry: str(entry.result.signature)),
    "n_metrics_recomputed": (int, lambda entry: entry.n_recomputed),
    "n_records": (int, lambda entry: entry.result.records.n_rows),
    "records_sha256": (str, lambda entry: entry.result.records.sha256),
    "biasboard": (str, lambda entry: entry.result.environment.biasboard),
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
    """Return the table of a view."""
    signatures = " ".join(view.signatures)
    about = _about([entry.result.signature for entry in view.table.rows[0].entries], manifests)
    metrics: dict[str, JsonValue] = {
        column.key: _about_metric(column.example) for column in view.all_columns if column.example is not None
    }
    described = about | {"metrics": json_text(metrics)}
    return Table.of(view.files, _fields(view), view.rows, signature=signatures, about=described)


def _fields(view: TableView) -> Fields[TableRow]:
    """Return the columns of a table: the model, its ranks, its values and the results behind them."""
    fields = of_part(_MODEL, attrgetter("model"))
    fields |= of_part(_RANKED, partial(_placed, 0))
    fields |= {
        "no_better_than_baselines_reason": (str, lambda row: row.placings[0].row.shut),
        "ranked_by": (str, lambda row: row.placings[0].by),
    }
    for number, placing in enumerate(view.rows[0].placings[1:], 1):
        fields |= of_part(_RANKED, partial(_placed, number), after=f"_by_{placing.by}")
    fields |= {
        "origin": (str, lambda row: " ".join(dict.fromkeys(entry.origin for entry in row.entries))),
        "provenance": (str, lambda row: " ".join(dict.fromkeys(entry.provenance for entry in row.entries))),
    }
    for number, column in enumerate(view.all_columns):
        fields |= of_part(_METRIC, partial(_metric, number), before=column.key)
    for number, prefix in enumerate(_prefixes(view.rows[0].entries)):
        fields |= of_part(_COUNTED, partial(_entry, number), before=prefix)
    return fields


def _placed(number: int, row: TableRow) -> Row:
    return row.placings[number].row


def _metric(number: int, row: TableRow) -> Metric | None:
    return row.cells[number].metric


def _entry(number: int, row: TableRow) -> Entry:
    return row.entries[number]


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
            yield Table(view.comparisons, columns, of_table, " ".join(view.signatures))


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
    lines = [line(_AUDITED, row.entry) for table in board.tables for row in table.rows if not row.entry.is_computed]
    lines += [line(_AUDITED, one.entry) | {"state": "duplicate", "reason": one.reason} for one in board.duplicates]
    lines += [line(_AUDITED, entry) | {"state": "apart", "reason": entry.match.reason} for entry in board.apart]
    lines += [
        dict.fromkeys(_AUDITED)
        | {"place": result.place, "origin": result.origin, "state": "left out", "reason": result.reason}
        for result in left_out
    ]
    lines.sort(key=lambda found: (str(found["origin"]), str(found["place"])))
    return Table(Files("files/audit"), kinds(_AUDITED), lines)


def benchmarks_table(sections: Sequence[TableView]) -> Table:
    """Return one row for each table of results."""
    return Table.of(Files("files/benchmarks"), _TABLED, sections)


def data_table(sections: Sequence[TableView], manifests: Sequence[Manifest]) -> Table:
    """Return one row for each set of items that has results, with facts from the manifest if it is available."""
    built = {(manifest.name, manifest.version): manifest for manifest in manifests}
    of_items: dict[tuple[str, str, str, str, str], list[TableView]] = {}
    for section in sections:
        asked = section.table.signature
        key = (asked.dataset, asked.dataset_version, asked.config, "+".join(asked.splits), asked.items_sha256)
        of_items.setdefault(key, []).append(section)

    def manifest(own: Sequence[TableView]) -> Manifest | None:
        return built.get((signature(own).dataset, signature(own).dataset_version))

    def signature(own: Sequence[TableView]) -> Signature:
        return own[-1].table.signature

    fields: Fields[Sequence[TableView]] = {
        "dataset": (str, lambda own: signature(own).dataset),
        "version": (str, lambda own: signature(own).dataset_version),
        "config": (str, lambda own: signature(own).config),
        "splits": (str, lambda own: "+".join(signature(own).splits)),
        "n_items": (int, lambda own: signature(own).n_items),
        "items_sha256": (str, lambda own: signature(own).items_sha256),
        "n_results": (int, lambda own: sum(len(section.table.rows) for section in own)),
        "licence": (str, lambda own: built_of.licence if (built_of := manifest(own)) else None),
        "human_validated": (bool, lambda own: built_of.human_validated if (built_of := manifest(own)) else None),
    }
    return Table.of(Files("files/data"), fields, [of_items[key] for key in sorted(of_items)])


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
