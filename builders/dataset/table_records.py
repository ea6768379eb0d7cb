"""Reads JSON Lines and Parquet files of a user's rows, into the records that a CSV file gives."""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import one_line
from biasboard.ground.strict_json import JsonValue, loads
from builders.dataset.csv_records import CsvRecord

PARQUET = b"PAR1"
"""First bytes of every Parquet file."""


class Records(NamedTuple):
    """The names of columns, and the rows; a row that cannot be read has its fault."""

    heads: list[str]
    records: list[CsvRecord]


def json_lines(raw: bytes) -> Iterator[tuple[int, JsonValue, str | None]]:
    """Yield number, value and fault of each line that is not empty; the fault is None where there is a value."""
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        where = f"line {number}"
        try:
            if line.strip():
                yield number, loads(line.decode("utf-8"), where=where, remedy="give the file as it was published"), None
        except UnicodeDecodeError as error:
            yield number, None, f"byte {line[error.start]:#04x} is not UTF-8"
        except DataError as error:
            yield number, None, str(error).removeprefix(f"{where}: ")


def are_json_lines(raw: bytes) -> bool:
    """Return True if a file begins with a JSON object, as no CSV file does."""
    return raw[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def json_records(raw: bytes) -> Records:
    """Return the objects on the lines of a file, with a column for each key; a missing value is empty.

    Keys whose values are lists or objects in some row are left out.
    """
    rows = list(json_lines(raw))
    objects = [value if isinstance(value, dict) else {} for _, value, _ in rows]
    nested = {key for entry in objects for key, value in entry.items() if isinstance(value, dict | list)}
    heads = list(dict.fromkeys(key for entry in objects for key in entry if key not in nested))
    records = []
    for (number, value, fault), entry in zip(rows, objects, strict=True):
        if fault is None and not isinstance(value, dict):
            fault = "is no JSON object"
        fields = [] if fault else [_text(entry.get(head)) for head in heads]
        records.append(CsvRecord(number, number, fields, fault))
    return Records(heads, records)


def parquet_records(raw: bytes) -> Records:
    """Return the rows of a Parquet file, counted from 1; columns of lists and structures are left out.

    Labels that the library datasets stores as numbers are given by the names in the metadata of the file.

    Raises:
        DataError: the file cannot be read.
    """
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(io.BytesIO(raw))
        schema = file.schema_arrow
        heads = [field.name for field in schema if not arrow.types.is_nested(field.type)]
        names = _label_names(schema.metadata)
        columns = [
            [_named(value, names.get(head, ())) for value in column.to_pylist()]
            for head, column in zip(heads, file.read(columns=heads).columns, strict=True)
        ]
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"cannot be read as Parquet ({one_line(error)}); write it again") from error
    rows = zip(*columns, strict=True)
    return Records(
        heads, [CsvRecord(number, number, list(fields), None) for number, fields in enumerate(rows, start=1)]
    )


def _label_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, Sequence[str]]:
    """Return the names of each column's labels, which the library datasets stores in a file's metadata."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {str(key): [*map(str, of["names"])] for key, of in features.items() if of.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def _named(value: object, names: Sequence[str]) -> str:
    if names and isinstance(value, int):
        # -1 stands for a label that is kept secret.
        return names[value] if 0 <= value < len(names) else "" if value == -1 else str(value)
    return _text(value)


def _text(value: object) -> str:
    if value is None or value != value:
        return ""
    # pandas makes floats of whole numbers in a column that lacks one.
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
