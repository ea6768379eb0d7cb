"""Reads a researcher's files: finds form, separator and columns, and keeps each row that is broken as a reject.

A file is CSV, JSON Lines, a JSON array of objects or Parquet, which its content tells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import invisible_sign, listed, printable
from builders.dataset.inputs import read_file
from builders.dataset.licences import OPEN_LICENCES, UNKNOWN
from builders.dataset.output import Rule
from schemas.documents.dataset import Reject, Source
from schemas.files.user_tables import SAVE_AS, SEPARATORS, CsvRecord, fault_of, user_table

BROKEN_ROW = Rule(name="broken_row", description="can be read: as many fields as the header, and UTF-8")


class Form(NamedTuple):
    """The columns that a kind of file has."""

    columns: Mapping[str, Sequence[str]]
    """Names of the columns, and the headings by which each is found, the likeliest first, without case, spaces and
    signs."""
    needed: Sequence[tuple[Sequence[str], str]]
    """Columns of which one is needed, with a phrase for them."""
    what: str
    """Noun in the plural for what a file holds, such as ``sentences``."""
    of_lists: frozenset[str] = frozenset()
    """Columns whose values may be lists; others are not found by a heading of lists."""
    option: str = "--input"
    """Option that names the file."""


_QUOTE = "put quotation marks around a value that holds the separator"
_COMPLETE = "write a separator for each empty value too"
_MOST_SHOWN = 12
_MOST_CHARACTERS = 131_072
"""Maximum length of a value: that of CSV files, for all forms."""


class OwnRow(NamedTuple):
    """A row of a file."""

    where: str
    """File and line, such as ``mine.csv:2``."""
    values: Mapping[str, str]
    """Values by the name of the column, in which each space and line break is one space."""

    @property
    def line(self) -> int:
        """Line of the file on which the row begins."""
        return int(self.where.rpartition(":")[2])


class OwnTable(NamedTuple):
    """What a file holds."""

    name: str
    sha256: str
    headings: Mapping[str, str]
    """Heading in the file of each column that it has."""
    rows: tuple[OwnRow, ...]
    rejects: tuple[Reject, ...]
    """Rows that cannot be read."""
    told: str
    """Which columns are taken for what, on one line."""
    unread: tuple[str, ...] = ()
    """Headings of the other columns."""

    def source(self, licence: str | None) -> Source:
        """Return the file as a source of a dataset, under a licence that the user states; None if not known."""
        return Source(
            name=self.name,
            address=f"file of {len(self.rows) + len(self.rejects)} rows",
            revision=None,
            sha256=self.sha256,
            licence=licence or UNKNOWN,
            redistributable=licence in OPEN_LICENCES,
        )


def read_tables(form: Form, paths: Sequence[Path], mapped: Sequence[str]) -> list[OwnTable]:
    """Read files.

    No two of them have one name, since items name their file. Each of ``mapped`` is ``COLUMN=HEADING``.

    Raises:
        ConfigError: a mapping is no such text, or no file has its heading.
        DataError: a file is missing, is neither CSV in UTF-8 nor JSON Lines nor Parquet, or lacks a column.
    """
    headings = []
    for text in mapped:
        column, equals, heading = text.partition("=")
        if not equals or not heading.strip() or column not in form.columns:
            columns = ", ".join(form.columns)
            raise ConfigError(f"--map {text}: is not COLUMN=HEADING with a column out of {columns}; correct it")
        headings.append((column, heading.strip()))
    inputs = read_inputs(paths, f"a CSV file of your {form.what}", option=form.option)
    tables = [_read(form, path, raw, headings) for path, raw in inputs]
    for column, heading in headings:
        if not any(_key(table.headings.get(column, "")) == _key(heading) for table in tables):
            told = "; ".join(table.told for table in tables)
            raise ConfigError(f"--map {column}={heading}: no file has this heading to be read as {column}; {told}")
    return tables


def read_inputs(paths: Sequence[Path], what: str, *, option: str = "--input") -> Iterator[tuple[Path, bytes]]:
    """Yield each file of a user's rows with its content.

    Raises:
        ConfigError: two files have one name.
        DataError: a file is missing, or its name is no plain text.
    """
    for number, path in enumerate(paths):
        if path.name in {earlier.name for earlier in paths[:number]}:
            raise ConfigError(
                f"{option} {path}: another file is named {path.name}, and items name their file; rename it"
            )
        if not path.is_file():
            fault = "is a folder" if path.is_dir() else "no such file"
            raise DataError(f"{option} {path}: {fault}; give {what}")
        if not path.name.isprintable():
            raise DataError(
                f"{option} {printable(path.name)}: the name is no plain text, and items name their file; rename it"
            )
        yield path, read_file(path)


def plain_values(values: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    """Return the values of a row with single spaces, and their fault if they hold a sign that nobody sees."""
    plain = {column: " ".join(value.split()) for column, value in values.items()}
    sign = invisible_sign("".join(plain.values()))
    return plain, None if sign is None else f"has the invisible sign U+{ord(sign):04X}; remove it"


def _read(form: Form, path: Path, raw: bytes, mapped: Sequence[tuple[str, str]]) -> OwnTable:
    name = path.name
    table = user_table(path, raw)
    heads = [" ".join(field.split()) for field in table.heads]
    headings = _headings(form, heads, mapped, path, table.lists)
    rows, rejects = _rows(table.records, heads, headings, name, table.wrong_bytes)
    if not rows and not rejects:
        raise DataError(f"{form.option} {path}: has a header and no rows; add a row for each of your {form.what}")
    return OwnTable(
        name=name,
        sha256=hashlib.sha256(raw).hexdigest(),
        headings=headings,
        rows=tuple(rows),
        rejects=tuple(rejects),
        told=_told(name, table.form, heads, headings, len(rows) + len(rejects)),
        unread=tuple(head for head in heads if head and head not in headings.values()),
    )


def _headings(
    form: Form, heads: Sequence[str], mapped: Sequence[tuple[str, str]], path: Path, lists: Collection[str]
) -> dict[str, str]:
    """Return the heading of each column that a file has.

    Raises:
        DataError: a column is missing, or two have the heading of one that is needed.
    """
    by_key = {_key(head): head for head in reversed(heads) if head}
    loosely = {letters_of(head): head for head in reversed(heads) if head}
    found = {}
    for column, spellings in form.columns.items():
        named = (by_key.get(_key(heading)) for name, heading in mapped if name == column)
        known = [head for head in (*named, *map(loosely.get, spellings)) if head is not None]
        head = next((head for head in known if column in form.of_lists or head not in lists), None)
        if head is not None:
            found[column] = head
    shown = listed([f"'{printable(head, most=40)}'" for head in heads if head], most=_MOST_SHOWN) or "none at all"
    if len(heads) == 1:
        shown += f" alone (values are separated by {listed([f'{name}s' for name in SEPARATORS.values()], most=3)})"
    for columns, phrase in form.needed:
        if not found.keys() & {*columns}:
            one = "it" if len(columns) == 1 else "one"
            # Nothing may be a heading because the first row is one of values.
            or_header = "" if found else ", or add a header line if that is the first row"
            remedy = f"name {one}: --map {columns[0]}=COLUMN"
            if form.option != "--input":
                remedy = f"call {one} '{columns[0]}'"
            raise DataError(f"{form.option} {path}: has no column for {phrase}, but {shown}; {remedy}{or_header}")
    for column, head in found.items():
        if heads.count(head) > 1:
            raise DataError(
                f"{form.option} {path}: has {heads.count(head)} columns named '{head}' ({column}); rename all but one"
            )
    return found


def _rows(
    records: Iterable[CsvRecord],
    heads: Sequence[str],
    headings: Mapping[str, str],
    name: str,
    wrong_bytes: Mapping[int, str],
) -> tuple[list[OwnRow], list[Reject]]:
    rows, rejects = [], []
    for record in records:
        where = f"{name}:{record.line}"
        fields = [field.strip() for field in record.fields]
        if not record.fault and not any(fields):
            continue
        while len(fields) > len(heads) and not fields[-1]:
            fields.pop()
        # Spreadsheets leave out the ends of rows below empty headings.
        if not any(missing := heads[len(fields) :]):
            fields += missing
        fault = record.fault or fault_of(record._replace(fields=fields), len(heads), wrong_bytes)
        if fault is not None and not record.fault:
            fault += f"; {_QUOTE if len(fields) > len(heads) else _COMPLETE if len(fields) < len(heads) else SAVE_AS}"
        values = dict(zip(heads, fields, strict=False))
        of_columns = {column: values.get(head, "") for column, head in headings.items()}
        if fault is None and (longest := max(map(len, of_columns.values()), default=0)) > _MOST_CHARACTERS:
            fault = f"has a value of {longest:,} characters, more than {_MOST_CHARACTERS:,}; shorten it"
        if fault is None:
            of_columns, fault = plain_values(of_columns)
        if fault is None:
            rows.append(OwnRow(where, of_columns))
        else:
            # A row that cannot be read is not shown: it could hold a text that must not be shared.
            rejects.append(Reject(candidate="", source_row=where, rule=BROKEN_ROW.name, reason=fault))
    return rows, rejects


def _told(name: str, written: str, heads: Sequence[str], headings: Mapping[str, str], n_rows: int) -> str:
    taken = ", ".join(f"{column} from '{printable(head, most=40)}'" for column, head in headings.items())
    rest = [f"'{printable(head, most=40)}'" for head in heads if head and head not in headings.values()]
    not_read = f"; not read: {listed(rest, most=_MOST_SHOWN)}" if rest else ""
    return f"{name}: {n_rows} row{'s' * (n_rows != 1)}, {written}; {taken}{not_read}"


def _key(heading: str) -> str:
    return " ".join(heading.casefold().split())


def letters_of(text: str) -> str:
    """Return a heading or another name without what people spell in different ways: case, spaces and signs."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())
