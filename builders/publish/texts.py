"""Reads every text of the files of a dataset folder, so that those that must not be published are found."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

from biasboard.ground.errors import DataError
from builders.dataset.protected import sentence_in_parts

_MOST_ROWS = 1_000
"""Number of rows of a table that are read at once."""


def texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the content of every text of a file.

    Args:
        path: A parquet file, whose texts are those of all its rows, or a text file, whose lines are its texts, and the
            cells of CSV and the strings of JSON as well.

    Raises:
        DataError: it is no readable parquet file.
    """
    if path.suffix == ".parquet":
        yield from _texts_of_table(path)
        return
    content = path.read_bytes().decode("utf-8", "replace")
    for number, line in enumerate(content.splitlines(), start=1):
        yield f"{path}: line {number}", line
        yield from ((f"{path}: line {number}", text) for text in _strings(_json(line)))
    if path.suffix == ".json":
        yield from ((str(path), text) for text in _strings(_json(content)))
    elif path.suffix in (".csv", ".tsv"):
        yield from _cells(path, content)


def _texts_of_table(path: Path) -> Iterator[tuple[str, str]]:
    # Loading it takes long, and only publishing needs it here.
    parquet, arrow = importlib.import_module("pyarrow.parquet"), importlib.import_module("pyarrow")
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=_MOST_ROWS):
            for row in batch.to_pylist():
                number += 1
                yield from ((f"{path}: row {number}", text) for text in _strings(row))
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read as parquet ({error}); build the dataset again") from error


def _cells(path: Path, content: str) -> Iterator[tuple[str, str]]:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    rows = csv.reader(content.splitlines(keepends=True), delimiter=delimiter)
    try:
        for row in rows:
            yield from ((f"{path}: line {rows.line_num}", cell) for cell in row)
    except csv.Error as error:
        raise DataError(f"{path}: line {rows.line_num}: not CSV ({error}); build the dataset again") from error


def _json(text: str) -> object:
    """Return the value of a text that is JSON, and None for any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strings(value: object) -> Iterator[str]:
    """Yield the strings of a value, and the sentences that it keeps in parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        if (sentence := sentence_in_parts(value)) is not None:
            yield sentence
        for key, part in value.items():
            yield from _strings(key)
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
