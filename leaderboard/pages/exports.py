"""Writes every table that the site offers as CSV and Parquet, both from the same rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from biasboard.ground import strict_json
from biasboard.ground.plain_text import protected
from biasboard.ground.strict_json import JsonValue
from leaderboard.ranking.frames import Columns, Fields, Scalar, T, Values, columns_of, values_of
from schemas.files.arrow_files import SCALARS

if TYPE_CHECKING:
    import pandas as pd

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
