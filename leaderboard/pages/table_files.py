"""Makes the tables for download: those of the benchmark pages, of single results, and the lists of the site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biasboard.ground import strict_json
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.exports import Columns, Kind, Line, Scalar, Table
from leaderboard.pages.model_views import Placement
from leaderboard.pages.tables import AnyView, Section, TableRow
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import AnyRow, entries_of
from leaderboard.verify.entries import Entry, LeftOut
from schemas.documents.dataset import Manifest
from schemas.documents.result import Metric, Signature

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
"""Endings of the columns of one metric; the first one holds its value."""
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
BENCHMARK_COLUMNS: Columns = {
    "benchmark": str,
    "dataset": str,
    "dataset_version": str,
    "config": str,
    "prompt": str,
    "n_items": int,
    "n_ranked": int,
    "n_baselines": int,
    "signature": str,
    "signature_sha256": str,
}
DATA_COLUMNS: Columns = {
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
Manifests = Mapping[tuple[str, str], Manifest]
"""Manifests of the datasets that were built here, by name and version."""


def view_tables(view: AnyView, manifests: Manifests) -> Iterator[Table]:
    """Yield the table of a view, and the comparisons behind its ranks if there are any."""
    signatures = " ".join(view.signatures)
    about = _about([entry.result.signature for entry in entries_of(view.table.rows[0])], manifests)
    examples = {column.key: column.example for column in view.all_columns if column.example is not None}
    yield Table(
        view.files,
        _columns(view),
        [_line(view, row) for row in view.rows],
        signatures,
        about | {"metric_versions": _versions(examples)},
        _of_metrics(examples),
    )
    if view.table.comparisons:
        compared: list[Line] = [
            {
                "first": comparison.first,
                "second": comparison.second,
                "difference": comparison.difference,
                "difference_low": comparison.low,
                "difference_high": comparison.high,
                "p_adjusted": comparison.p_adjusted,
                "separable": comparison.separable,
            }
            for comparison in view.table.comparisons
        ]
        yield Table(view.comparisons, COMPARISON_COLUMNS, compared, signatures, about)


def _columns(view: AnyView) -> Columns:
    columns: dict[str, Kind] = {**_MODEL, **_RANKED, _NO_BETTER: str, "ranked_by": str}
    for placing in view.rows[0].placings[1:]:
        columns |= {f"{name}_by_{placing.by}": kind for name, kind in _RANKED.items()}
    columns |= {"origin": str, "provenance": str}
    for column in view.all_columns:
        columns |= {f"{column.key}{ending}": kind for ending, kind in _METRIC.items()}
    for prefix in _prefixes(view.rows[0].entries):
        columns |= {f"{prefix}{name}": kind for name, kind in ({"place": str} | dict(_COUNTED)).items()}
    return columns


def _line(view: AnyView, row: TableRow) -> Line:
    model = row.model
    line: dict[str, Scalar] = {
        "model": model.id,
        "revision": model.revision,
        "precision": model.precision,
        "backend": model.backend,
        "endpoint": model.endpoint,
    }
    first, *others = row.placings
    line |= {**_ranked(first.row), _NO_BETTER: first.row.shut, "ranked_by": first.by}
    for other in others:
        line |= {f"{name}_by_{other.by}": value for name, value in _ranked(other.row).items()}
    line |= {
        "origin": " ".join(dict.fromkeys(entry.origin for entry in row.entries)),
        "provenance": " ".join(dict.fromkeys(entry.provenance for entry in row.entries)),
    }
    for column, cell in zip(view.all_columns, row.cells, strict=True):
        line |= metric_fields(cell.metric, prefix=column.key)
    for prefix, entry in zip(_prefixes(row.entries), row.entries, strict=True):
        line |= {f"{prefix}{name}": value for name, value in _counted(entry).items()}
    return line


def _prefixes(entries: Sequence[Entry]) -> list[str]:
    """Return the beginning of the columns about each result of a row: its config, with the prompt if several share it.

    The only result of a row needs none.
    """
    signatures = [entry.result.signature for entry in entries]
    configs = [signature.config for signature in signatures]
    if len(entries) == 1 and configs:
        return [""]
    return [f"{one.config}_" if configs.count(one.config) == 1 else f"{one.config}_{one.prompt}_" for one in signatures]


def _ranked(row: AnyRow) -> dict[str, Scalar]:
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


def _counted(entry: Entry) -> dict[str, Scalar]:
    result = entry.result
    counts = result.counts
    return {
        "place": entry.place,
        "n_items": counts.items,
        "n_scored": counts.scored,
        "n_refused": counts.refused,
        "n_unparsed": counts.unparsed,
        "n_failed": counts.failed,
        "n_truncated": counts.truncated,
        "n_metrics_recomputed": entry.n_recomputed,
        "command": entry.command,
        "signature": str(result.signature),
        "signature_sha256": result.signature_sha256,
        "identity_sha256": result.model.identity_sha256,
        "records_sha256": result.records.sha256,
    }


def metric_fields(metric: Metric | None, *, prefix: str) -> dict[str, Scalar]:
    """Return the fields of an export row that describe one metric.

    Args:
        metric: Metric to export; None if the task has no such metric.
        prefix: Name of the field with the value, and beginning of the names of the other fields.
    """
    interval = metric.interval if metric else None
    values: list[Scalar] = [None, None, None, None, None, None, "not a metric of this task"]
    if metric is not None:
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        values = [metric.value, low, high, metric.n, metric.n_excluded, metric.version, metric.reason]
    return {f"{prefix}{ending}": value for ending, value in zip(_METRIC, values, strict=True)}


def metrics_table(placement: Placement) -> Table:
    """Return the table of every metric and slice of one result."""
    return Table(placement.files, METRIC_COLUMNS, metric_lines(placement.row.entry), is_of_many=True)


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
        dict.fromkeys(AUDIT_COLUMNS)
        | {"place": result.place, "origin": result.origin, "state": "left out", "reason": result.reason}
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


def benchmark_line(section: Section) -> Line:
    """Return the export row of one table in the list of benchmarks."""
    signature = section.table.signature
    return {
        "benchmark": signature.benchmark,
        "dataset": signature.dataset,
        "dataset_version": signature.dataset_version,
        "config": signature.config,
        "prompt": signature.prompt,
        "n_items": signature.n_items,
        "n_ranked": len(section.table.ranked),
        "n_baselines": section.n_baselines,
        "signature": str(signature),
        "signature_sha256": section.table.signature_sha256,
    }


def data_lines(sections: Sequence[Section], manifests: Sequence[Manifest]) -> list[Line]:
    """Return one export row for each set of items that has results, with facts from the manifest if it is available."""
    built = {(manifest.name, manifest.version): manifest for manifest in manifests}
    of_items: dict[tuple[str, str, str, str, str], list[Section]] = {}
    for section in sections:
        one = section.table.signature
        key = (one.dataset, one.dataset_version, one.config, "+".join(one.splits), one.items_sha256)
        of_items.setdefault(key, []).append(section)
    lines: list[Line] = []
    for (dataset, version, config, splits, items_sha256), own in sorted(of_items.items(), key=lambda one: one[0]):
        manifest = built.get((dataset, version))
        lines.append(
            {
                "dataset": dataset,
                "version": version,
                "config": config,
                "splits": splits,
                "n_items": own[-1].table.signature.n_items,
                "items_sha256": items_sha256,
                "n_results": sum(len(section.table.rows) for section in own),
                "licence": manifest.licence if manifest else None,
                "human_validated": manifest.human_validated if manifest else None,
            }
        )
    return lines


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


def _versions(metrics: Mapping[str, Metric]) -> str:
    versions: dict[str, JsonValue] = {name: metric.version for name, metric in metrics.items()}
    return strict_json.canonical(versions).decode()


def _of_metrics(metrics: Mapping[str, Metric]) -> dict[str, dict[str, str]]:
    """Return the metadata of the columns of some metrics, by name of the column."""
    fields: dict[str, dict[str, str]] = {}
    for prefix, metric in metrics.items():
        about = {"metric": metric.name, "version": metric.version, "unit": metric.unit}
        if metric.group:
            about["slice"] = ", ".join(f"{key}={value}" for key, value in sorted(metric.group.items()))
        if metric.ideal is not None:
            about["ideal"] = f"{metric.ideal:g}"
        fields |= {f"{prefix}{ending}": about for ending in ("", "_low", "_high")}
    return fields
