"""Reads and writes rows of dataclasses as typed parquet files.

Rows are checked when they are written and when they are read. The same rows always give the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from schemas import contract, strict_json
from schemas.dataset import Reject
from schemas.errors import DataError
from schemas.files import replacing
from schemas.item_shape import Item
from schemas.record import Record
from schemas.score import TextScore
from schemas.strict_json import JsonValue

if TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row", bound=Item | Reject | Record | TextScore)

_SCALARS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def arrow_schema(row_type: type) -> pa.Schema:
    """Return the Arrow schema of a dataclass, with one column per field."""
    return pa.schema(_struct_fields(row_type))


def _struct_fields(row_type: type) -> list[pa.Field]:
    hints = get_type_hints(row_type)
    return [_field(field.name, hints[field.name]) for field in dataclasses.fields(row_type)]


def _field(name: str, hint: Any) -> pa.Field:
    if get_origin(hint) in (Union, types.UnionType):
        inner = [argument for argument in get_args(hint) if argument is not type(None)]
        if len(inner) != 1:
            raise TypeError(f"{name}: a parquet column has one type, not {hint}")
        return pa.field(name, _arrow_type(inner[0]), nullable=True)
    return pa.field(name, _arrow_type(hint), nullable=False)


def _arrow_type(hint: Any) -> pa.DataType:
    origin = get_origin(hint)
    if origin is Literal:
        return pa.string()
    if origin is tuple:
        return pa.list_(_field("item", get_args(hint)[0]))
    if origin is dict:
        return pa.map_(pa.string(), _arrow_type(get_args(hint)[1]))
    if dataclasses.is_dataclass(hint):
        return pa.struct(_struct_fields(cast(type, hint)))
    return _SCALARS[hint]


def write_rows(path: Path, rows: Sequence[Row], row_type: type[Row]) -> None:
    """Write rows to a parquet file atomically.

    Args:
        path: Path of the file; its folder is created if needed.
        rows: Rows in the order in which they are stored; may be empty.
        row_type: Dataclass of the rows.

    Raises:
        DataError: a row breaks its schema; nothing is written.
    """
    values = [contract.check(row, where=f"{path}: row {number}") for number, row in enumerate(rows, start=1)]
    table = pa.Table.from_pylist(values, schema=arrow_schema(row_type))
    with replacing(path) as temporary:
        # One row group, fixed compression and no pandas metadata: the same rows give the same bytes.
        pq.write_table(table, temporary, compression="zstd", row_group_size=max(1, len(values)), store_schema=True)


def read_values(path: Path, row_type: type[Row]) -> list[JsonValue]:
    """Read a parquet file as JSON values, one per row, without checking the rows.

    Raises:
        DataError: the file is missing, is truncated, lacks a column, or holds a column of another type.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; build the dataset or run the model again")
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: not a readable parquet file (truncated?): {reason}; make it again") from error
    wanted = [field.name for field in dataclasses.fields(cast(type[Any], row_type))]
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise DataError(
            f"{path}: column {', '.join(missing)} is missing; have: {', '.join(table.column_names)}; "
            f"rows of {row_type.__name__} need: {', '.join(wanted)}"
        )
    for field in arrow_schema(row_type):
        found = table.schema.field(field.name).type
        if found != field.type:
            raise DataError(
                f"{path}: column {field.name} is of type {found}, not {field.type}; write it with schemas.tables"
            )
    try:
        values = table.select(wanted).to_pylist(maps_as_pydicts="strict")
    except (ValueError, KeyError) as error:
        raise DataError(
            f"{path}: holds text that is not UTF-8 or a map with a key twice: {error}; make it again"
        ) from error
    return [contract.plain(value) for value in values]


def read_rows(path: Path, row_type: type[Row]) -> list[Row]:
    """Read a parquet file and check each row.

    Raises:
        DataError: the file cannot be read (see :func:`read_values`), or a row breaks its schema.
    """
    return [
        contract.load(value, row_type, where=f"{path}: row {number}")
        for number, value in enumerate(read_values(path, row_type), start=1)
    ]


def content_sha256(rows: Iterable[Item]) -> str:
    """Return the SHA-256 of the rows as canonical JSON lines, which is the same for every version of pyarrow."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(strict_json.canonical(contract.dump(row)) + b"\n")
    return digest.hexdigest()
