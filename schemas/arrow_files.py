"""Parquet files whose columns are the fields of a dataclass; :mod:`schemas.tables` checks the rows."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import DataError

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


def write(path: Path, values: Sequence[Mapping[str, Any]], row_type: type) -> None:
    """Write rows to a file; the same rows always give the same bytes.

    Args:
        path: Path of the file.
        values: Fields of each row by name.
        row_type: Dataclass of the rows.
    """
    table = pa.Table.from_pylist(values, schema=arrow_schema(row_type))
    # One row group, fixed compression and no pandas metadata.
    pq.write_table(table, path, compression="zstd", row_group_size=max(1, len(values)), store_schema=True)


def read(path: Path, row_type: type) -> list[dict[str, Any]]:
    """Return the fields of each row of a file by name.

    Raises:
        DataError: the file is truncated, lacks a column, or holds a column of another type.
    """
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
    return cast(list[dict[str, Any]], values)
