"""Reads a table of a user: CSV, JSON Lines or Parquet, which its content tells."""

from __future__ import annotations

import importlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import one_line
from biasboard.ground.strict_json import JsonValue, loads
from schemas.files.csv_records import CsvRecord, records_of, wrong_bytes_of

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
SAVE_AS = "save it as CSV UTF-8"
"""What to do with a file of a spreadsheet that cannot be read."""
_PARQUET = b"PAR1"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_QUOTED = re.compile(r'"[^"]*"')
_EXCEL_SEPARATOR = re.compile(r"\ufeff?\"?sep=([,;\t])\"?\r?\n")
"""First line by which a spreadsheet names the separator."""


class UserTable(NamedTuple):
    """The names of columns, and the rows; a row that cannot be read has its fault."""

    heads: list[str]
    records: Iterable[CsvRecord]
    form: str
    """How it is written, such as ``separated by commas``."""
    wrong_bytes: Mapping[int, str] = {}
    """First byte that is not UTF-8 in each line that has one, by line number."""


def user_table(path: Path, raw: bytes) -> UserTable:
    """Return the table in a file.

    Args:
        path: Path of the file, for error messages.
        raw: Its content.

    Raises:
        DataError: it is neither CSV in UTF-8 nor JSON Lines nor Parquet, or is too large.
    """
    if raw.startswith(_PARQUET):
        return UserTable(*_parquet_records(path, raw), "Parquet")
    # No CSV file begins with an object.
    if raw[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return UserTable(*_json_records(raw), "JSON Lines")
    if raw.startswith(_WIDE):
        raise DataError(f"--input {path}: is UTF-16; {SAVE_AS}")
    if raw.startswith(b"PK\x03\x04"):
        raise DataError(f"--input {path}: is a spreadsheet or an archive, no CSV file; {SAVE_AS}")
    text = raw.decode("utf-8", errors="replace")
    separator, has_line = _separator(text)
    records = records_of(text, separator)
    header = None
    for _ in range(1 + has_line):
        header = next(records, None)
    if header is None or header.fault or not any(field.strip() for field in header.fields):
        fault = f"its first line {header.fault}" if header and header.fault else "is empty"
        raise DataError(f"--input {path}: {fault}; give a CSV file whose first line names the columns")
    return UserTable(header.fields, records, f"separated by {SEPARATORS[separator]}s", wrong_bytes_of(raw))


def _separator(text: str) -> tuple[str, bool]:
    """Return the separator, and whether a first line names it: that one, or the one most frequent in the header.

    ``csv.Sniffer`` also looks at the values, in which a sentence has more commas than there are columns.
    """
    named = _EXCEL_SEPARATOR.match(text)
    if named is not None:
        return named[1], True
    header = _QUOTED.sub("", next((line for line in text.splitlines() if line.strip()), ""))
    return max(SEPARATORS, key=header.count), False


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


def _json_records(raw: bytes) -> tuple[list[str], list[CsvRecord]]:
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
    return heads, records


def _parquet_records(path: Path, raw: bytes) -> tuple[list[str], list[CsvRecord]]:
    """Return the rows of a Parquet file, counted from 1; columns of lists and structures are left out.

    Labels that the library datasets stores as numbers are given by the names in the metadata of the file.

    Raises:
        DataError: the file cannot be read, or is too large.
    """
    # Imported here because other files need no pyarrow.
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    from schemas.files.arrow_files import read_single_values

    try:
        table = read_single_values(path, parquet.ParquetFile(io.BytesIO(raw)))
        names = _label_names(table.schema.metadata)
        columns = [
            [_named(value, names.get(head, ())) for value in column.to_pylist()]
            for head, column in zip(table.column_names, table.columns, strict=True)
        ]
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"--input {path}: cannot be read as Parquet ({one_line(error)}); write it again") from error
    rows = zip(*columns, strict=True)
    return table.column_names, [CsvRecord(n, n, list(fields), None) for n, fields in enumerate(rows, start=1)]


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
