"""Makes the files of one table for download: its rows as JSON, CSV and Parquet, each with what they are about."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from biasboard.ground import strict_json
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages import table_rows
from leaderboard.pages.index_views import IndexView, index_columns, index_lines
from leaderboard.pages.model_views import Placement
from leaderboard.pages.sections import Files, Section
from leaderboard.pages.table_rows import Columns, Line
from leaderboard.ranking.rank_ranges import Comparison
from schemas.documents.dataset import Manifest
from schemas.documents.result import Metric, Signature
from schemas.files.arrow_files import SCALARS, table_bytes

_PREFIX = "biasboard."
"""Beginning of the names of metadata, which distinguishes them from those of other writers."""
_PARQUET = "parquet table"
_FIELDS = ("", "_low", "_high")

Manifests = Mapping[tuple[str, str], Manifest]
"""Manifests of the datasets that were built here, by name and version."""


class Table(NamedTuple):
    """A table for download."""

    files: Files
    columns: Columns
    lines: Sequence[Line]
    signature: str | None = None
    """Signatures of its results, separated by spaces; None if it is about no certain ones."""
    about: Mapping[str, str] = {}
    """Further metadata of the Parquet file besides the signature, by name."""
    of_columns: Mapping[str, Mapping[str, str]] = {}
    """Metadata of some columns, by name of the column."""

    @property
    def texts(self) -> dict[str, str]:
        """The rows as JSON and CSV, by path."""
        return {
            self.files.json: table_rows.to_json(self.lines, signature=self.signature),
            self.files.csv: table_rows.to_csv(self.lines),
        }

    @property
    def parquet(self) -> bytes:
        """The rows as Parquet; the same table always has the same bytes.

        Raises:
            ValueError: the columns of a row are not those of the table.
        """
        names = list(self.columns)
        for line in self.lines:
            if list(line) != names:
                raise ValueError(
                    f"{self.files.parquet}: columns {sorted(set(line) ^ set(names))} stand in some rows only"
                )
        fields = [
            pa.field(name, SCALARS[kind], metadata=_metadata(self.of_columns.get(name, {})) or None)
            for name, kind in self.columns.items()
        ]
        told = {} if self.signature is None else {"signature": self.signature}
        schema = pa.schema(fields, metadata=_metadata(told | dict(self.about)) or None)
        arrays = [pa.array([line[name] for line in self.lines], type=schema.field(name).type) for name in names]
        return table_bytes(pa.Table.from_arrays(arrays, schema=schema))


def remembered_parquet(table: Table, rows: str, memory: Memory) -> bytes:
    """Return the rows of a table as Parquet, from memory if the same table was written before.

    Args:
        table: Table to write.
        rows: Its text as JSON, which holds all its values.
        memory: The memory of this machine.
    """
    parts: dict[str, JsonValue] = {
        "rows": hashlib.sha256(rows.encode()).hexdigest(),
        "columns": {name: kind.__name__ for name, kind in table.columns.items()},
        "about": dict(table.about),
        "of_columns": {name: dict(metadata) for name, metadata in table.of_columns.items()},
    }
    stored = memory.get(_PARQUET, parts)
    if isinstance(stored, str):
        return base64.b64decode(stored)
    made = table.parquet
    memory.put(_PARQUET, parts, base64.b64encode(made).decode())
    return made


def _metadata(values: Mapping[str, str]) -> dict[str, str]:
    return {f"{_PREFIX}{name}": value for name, value in sorted(values.items())}


def section_tables(section: Section, manifests: Manifests) -> Iterator[Table]:
    """Yield the table of a section, and the comparisons behind its ranks if there are any."""
    table = section.table
    about = _about([table.signature], manifests)
    examples = {column.key: metric for column in table.columns if (metric := section.example(column)) is not None}
    yield Table(
        section.files,
        table_rows.table_columns(table),
        table_rows.table_lines(table),
        str(table.signature),
        about | {"metric_versions": _versions(examples)},
        _of_metrics(examples),
    )
    yield from _comparisons(section.comparisons, table.comparisons, str(table.signature), about)


def index_tables(view: IndexView, manifests: Manifests) -> Iterator[Table]:
    """Yield the table of an index, and the comparisons behind its ranks if there are any."""
    first = view.table.rows[0]
    signatures = " ".join(view.table.signatures)
    about = _about([entry.result.signature for entry in first.entries], manifests)
    examples = {index.metric.name: index.metric for index in first.indices}
    for index in first.indices:
        keys = (part.key for part in index.definition.parts)
        examples |= dict(zip(keys, index.parts, strict=True))
    yield Table(
        view.files,
        index_columns(view.table),
        index_lines(view.table),
        signatures,
        about | {"metric_versions": _versions(examples)},
        _of_metrics(examples),
    )
    yield from _comparisons(view.comparisons, view.table.comparisons, signatures, about)


def metrics_table(placement: Placement, manifests: Manifests) -> Table:
    """Return the table of every metric and slice of one result."""
    signature, entry = placement.section.table.signature, placement.row.entry
    overall = {metric.name: metric for metric in entry.metrics.values()}
    return Table(
        placement.files,
        table_rows.METRIC_COLUMNS,
        table_rows.metric_lines(entry),
        str(signature),
        _about([signature], manifests) | {"metric_versions": _versions(overall), "model": entry.result.model.id},
    )


def _comparisons(
    files: Files, comparisons: Sequence[Comparison], signature: str, about: Mapping[str, str]
) -> Iterator[Table]:
    if comparisons:
        lines = table_rows.comparison_lines(comparisons)
        yield Table(files, table_rows.COMPARISON_COLUMNS, lines, signature, about)


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
        fields |= {f"{prefix}{ending}": about for ending in _FIELDS}
    return fields
