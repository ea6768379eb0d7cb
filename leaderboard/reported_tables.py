"""Finds tables of papers in ``reported/*.toml``, whose numbers the board quotes and never ranks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from biasboard.ground.errors import DataError
from evaluators.benchmark import benchmarks
from leaderboard.toml_documents import read_documents
from schemas.documents.reported_table import ReportedTable


def reported_tables(benchmark: str) -> tuple[ReportedTable, ...]:
    """Return the published tables about a benchmark, sorted by file name.

    Raises:
        DataError: a file is invalid, or names a benchmark that does not exist.
    """
    return tuple(table for table in _tables().values() if table.benchmark == benchmark)


def table_of_file(name: str) -> ReportedTable | None:
    """Return the published table in the file of a name, without ending; None if there is no such file."""
    return _tables().get(name)


@cache
def _tables() -> Mapping[str, ReportedTable]:
    names = sorted(known.name for known in benchmarks())
    tables: dict[str, ReportedTable] = {}
    for path, table in read_documents("reported", ReportedTable):
        if table.benchmark not in names:
            have = ", ".join(names)
            raise DataError(f"{path}: benchmark: '{table.benchmark}' does not exist; have: {have}")
        tables[path.stem] = table
    return tables
