"""Reads a table of a user: CSV, JSON Lines, a JSON array of objects or Parquet, which its content tells.

A line that is not CSV is a record with its fault, and does not stop reading.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import one_line
from biasboard.ground.strict_json import JsonValue, loads

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
SAVE_AS = "save it as CSV UTF-8"
"""What to do with a file of a spreadsheet that cannot be read."""
MOST_COLUMNS = 1_000
MOST_VALUES = 20_000_000
"""Maximum number of values of JSON Lines, of which each row may name columns that no other has."""
_MOST_OF_LINE = 16 << 20
"""Maximum size of a line of JSON, whose values take twenty times as much memory."""
_BYTE_ORDER_MARK = "\ufeff"
_PARQUET = b"PAR1"
_ARRAY = re.compile(rb"\[\s*\{")
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_QUOTED = re.compile(r'"[^"]*"')
_EXCEL_SEPARATOR = re.compile(r"\ufeff?\"?sep=([,;\t])\"?\r?\n")
"""First line by which a spreadsheet names the separator."""


class CsvRecord(NamedTuple):
    """A record of a CSV text, or a line that is not CSV."""

    line: int
    end: int
    """Last line of the record."""
    fields: list[str]
    fault: str | None


def records_of(text: str, delimiter: str = ",") -> Iterator[CsvRecord]:
    """Yield the records of a CSV text, continuing after lines that are not CSV."""
    lines = list(io.StringIO(text.removeprefix(_BYTE_ORDER_MARK), newline=""))
    start = 0
    while start < len(lines):
        reader = csv.reader(islice(lines, start, None), delimiter=delimiter, strict=True)
        first = start
        try:
            for fields in reader:
                end = start + reader.line_num
                if fields:
                    yield CsvRecord(first + 1, end, fields, None)
                first = end
            return
        except csv.Error as error:
            # An unclosed quotation mark swallows the rows after it, so that reading resumes at the next line.
            yield CsvRecord(first + 1, first + 1, [], f"is not CSV ({error})")
            start = first + 1


def fault_of(record: CsvRecord, n_columns: int, wrong_bytes: Mapping[int, str]) -> str | None:
    """Return what is wrong with a record; None if it has a field for each column and its lines are UTF-8."""
    if len(record.fields) != n_columns:
        return f"has {len(record.fields)} fields, the header {n_columns}"
    for line in range(record.line, record.end + 1) if wrong_bytes else ():
        if line in wrong_bytes:
            return f"byte {wrong_bytes[line]} is not UTF-8"
    return None


def wrong_bytes_of(raw: bytes) -> dict[int, str]:
    """Return the first byte that is not UTF-8 in each line that has one, by line number."""
    wrong = {}
    for number, line in enumerate(raw.split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong[number] = f"{line[error.start]:#04x}"
    return wrong


class UserTable(NamedTuple):
    """The names of columns, and the rows; a row that cannot be read has its fault."""

    heads: list[str]
    records: Iterable[CsvRecord]
    form: str
    """How it is written, such as ``separated by commas``."""
    wrong_bytes: Mapping[int, str] = {}
    """First byte that is not UTF-8 in each line that has one, by line number."""
    lists: frozenset[str] = frozenset()
    """Columns whose values are lists of texts or numbers, which are written as JSON."""


def user_table(path: Path, raw: bytes) -> UserTable:
    """Return the table in a file.

    Raises:
        DataError: it is neither CSV in UTF-8 nor JSON Lines nor Parquet, or is too large.
    """
    table = _table(path, raw)
    if len(table.heads) > MOST_COLUMNS:
        raise DataError(
            f"--input {path}: has {len(table.heads):,} columns, more than the {MOST_COLUMNS:,} that are read; leave "
            "some out"
        )
    return table


def _table(path: Path, raw: bytes) -> UserTable:
    if raw.startswith(_PARQUET):
        heads, rows, lists = _parquet_records(path, raw)
        return UserTable(heads, rows, "Parquet", lists=lists)
    # No CSV file begins with an object, and none with a list of them.
    begins = raw[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begins.startswith(b"{") or _ARRAY.match(begins):
        is_array = not begins.startswith(b"{")
        heads, records, lists = _json_records(path, _array_entries(path, raw) if is_array else json_lines(raw))
        return UserTable(heads, records, "a JSON array" if is_array else "JSON Lines", lists=lists)
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


def read_frame(path: Path) -> pd.DataFrame:
    """Return the table in a CSV or Parquet file; the cells of a CSV file stay texts.

    Raises:
        DataError: there is no such file, or it cannot be read.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file; name a CSV or Parquet file")
    check_readable(path)
    # Imported here because pandas takes longer to load than most commands take in all.
    import pandas as pd

    from schemas.files import arrow_files

    with path.open("rb") as file:
        is_parquet = file.read(4) == _PARQUET
    try:
        if is_parquet:
            names = arrow_files.foreign_schema(path).names
            stored: pd.DataFrame = arrow_files.foreign_table(path, names).to_pandas()
            return stored
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is neither text in UTF-8 nor Parquet; export it again") from error
    # Errors of Arrow are the first three; pandas raises the others for metadata of its own that are none.
    except (ValueError, OSError, NotImplementedError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: is no readable Parquet file ({one_line(error)}); export it again") from error
    separator, has_line = _separator(text)
    # pandas would rename columns with the same name, pad short lines, and not say on which line a faulty one is.
    rows: list[list[str]] = []
    for record in islice(records_of(text, separator), int(has_line), None):
        fault = record.fault or (fault_of(record, len(rows[0]), {}) if rows else None)
        if fault is not None:
            raise DataError(f"{path}: line {record.line} {fault}; correct it")
        rows.append(record.fields)
    if not rows:
        raise DataError(f"{path}: is empty; give a header that names the columns, and rows")
    return pd.DataFrame(rows[1:], columns=rows[0], dtype=object)


def json_lines(raw: bytes) -> Iterator[tuple[int, JsonValue, str | None]]:
    """Yield number, value and fault of each line that is not empty; the fault is None where there is a value."""
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        where = f"line {number}"
        try:
            if len(line) > _MOST_OF_LINE:
                raise DataError(f"{where}: has {len(line):,} bytes, more than the {_MOST_OF_LINE:,} that are read")
            if line.strip():
                yield number, loads(line.decode("utf-8"), where=where, remedy="give the file as it was published"), None
        except UnicodeDecodeError as error:
            yield number, None, f"byte {line[error.start]:#04x} is not UTF-8"
        except DataError as error:
            yield number, None, str(error).removeprefix(f"{where}: ")


def _array_entries(path: Path, raw: bytes) -> Iterator[tuple[int, JsonValue, str | None]]:
    """Yield number and value of each entry of a JSON array, as :func:`json_lines` does of each line."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"--input {path}: byte {raw[error.start]:#04x} is not UTF-8; save it as UTF-8") from error
    entries = loads(text, where=f"--input {path}", remedy="give the file as it was published")
    yield from ((number, entry, None) for number, entry in enumerate(cast(list[JsonValue], entries), start=1))


def _json_records(
    path: Path, entries: Iterable[tuple[int, JsonValue, str | None]]
) -> tuple[list[str], Iterator[CsvRecord], frozenset[str]]:
    """Return the objects of a file, with a column for each key, and which columns hold lists.

    A missing value is empty. Keys whose values are objects, or lists of more than texts and numbers, are left out.
    """
    rows: list[tuple[int, dict[str, JsonValue], str | None]] = []
    heads: dict[str, None] = {}
    nested: set[str] = set()
    lists: set[str] = set()
    for number, value, fault in entries:
        entry = value if isinstance(value, dict) else {}
        nested.update(key for key, of_key in entry.items() if _is_nested(of_key))
        lists.update(key for key, of_key in entry.items() if isinstance(of_key, list))
        heads.update(dict.fromkeys(entry))
        rows.append((number, {key: of_key for key, of_key in entry.items() if key not in nested}, fault))
        if not isinstance(value, dict) and fault is None:
            rows[-1] = (number, {}, "is no JSON object")
        if len(rows) * len(heads) > MOST_VALUES:
            raise DataError(
                f"--input {path}: has {len(heads):,} names in {len(rows):,} rows, more than {MOST_VALUES:,} values; "
                "leave names or rows out"
            )
    kept = [head for head in heads if head not in nested]
    records = (
        CsvRecord(number, number, [] if fault else [_text(entry.get(head)) for head in kept], fault)
        for number, entry, fault in rows
    )
    return kept, records, frozenset(lists - nested)


def _is_nested(value: JsonValue) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict | list) for one in value))


def _parquet_records(path: Path, raw: bytes) -> tuple[list[str], Iterator[CsvRecord], frozenset[str]]:
    """Return the rows of a Parquet file, counted from 1, and which columns hold lists.

    Columns of structures, and of lists of more than texts and numbers, are left out. Labels that the library datasets
    stores as numbers are given by the names in the metadata of the file.
    """
    # Imported here because other files need no pyarrow.
    from schemas.files import arrow_files

    schema = arrow_files.foreign_schema(path, raw)
    plain_lists = {field.name for field in schema if arrow_files.is_plain_list(field.type)}
    heads = [field.name for field in schema if not arrow_files.is_nested(field.type) or field.name in plain_lists]
    names = label_names(schema.metadata)
    of_columns = [names.get(head, ()) for head in heads]
    rows = arrow_files.foreign_rows(path, heads, raw)
    records = (
        CsvRecord(number, number, [*map(_named, row, of_columns)], None) for number, row in enumerate(rows, start=1)
    )
    return heads, records, frozenset(plain_lists)


def label_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, Sequence[str]]:
    """Return the names of each column's labels, which the library datasets stores in a file's metadata."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {str(key): [*map(str, of["names"])] for key, of in features.items() if of.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _named(value: object, names: Sequence[str]) -> str:
    if names and isinstance(value, int):
        # -1 stands for a label that is kept secret.
        return names[value] if 0 <= value < len(names) else "" if value == -1 else str(value)
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if value is None or value != value:
        return ""
    # pandas makes floats of whole numbers in a column that lacks one.
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
