"""Exports the lists of the site: its tables, and the data that they were asked about."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.pages.sections import Section
from leaderboard.pages.table_rows import Columns, Line
from schemas.documents.dataset import Manifest

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
    n_results: dict[tuple[str, str, str, str, str], int] = {}
    items: dict[tuple[str, str, str, str, str], int] = {}
    for section in sections:
        signature = section.table.signature
        splits = "+".join(signature.splits)
        key = (signature.dataset, signature.dataset_version, signature.config, splits, signature.items_sha256)
        n_results[key] = n_results.get(key, 0) + len(section.table.rows)
        items[key] = signature.n_items
    lines: list[Line] = []
    for key in sorted(n_results):
        dataset, version, config, splits, items_sha256 = key
        manifest = built.get((dataset, version))
        lines.append(
            {
                "dataset": dataset,
                "version": version,
                "config": config,
                "splits": splits,
                "n_items": items[key],
                "items_sha256": items_sha256,
                "n_results": n_results[key],
                "licence": manifest.licence if manifest else None,
                "human_validated": manifest.human_validated if manifest else None,
            }
        )
    return lines
