"""Parquet files whose columns are the fields of a dataclass; :mod:`schemas.files.row_files` checks the rows."""

from __future__ import annotations

import dataclasses
import json
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import one_line
from schemas.documents.base import EncodedImage

SCALARS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
"""Arrow type of a column by the Python type of its values."""

# A dictionary, not functools.cache, for the reason given at schemas.documents.base._ADAPTERS.
_SCHEMAS: dict[type, pa.Schema] = {}
# A file of a few kilobytes can decompress to ten million rows, or to one long text many times over. So its metadata is
# compared with these limits before anything is read.
MOST_ROWS = 1_000_000
"""Maximum number of rows of a file."""
MOST_VALUES = 100_000_000
"""Maximum number of values of a column; one row can hold a list of many."""
MOST_BYTES = 1 << 30
"""Maximum size in memory of rows that are read together."""
_BYTES_OF_OBJECT = 50
"""What a value takes in memory besides its text; a file stores one that stands in all rows only once."""
_ROWS_AT_A_TIME = 1024


def arrow_schema(row_type: type) -> pa.Schema:
    """Return the Arrow schema of a dataclass, with one column per field."""
    # Checking a single record makes a table of one row; building the schema each time took 45 % of `write_rows`.
    if row_type not in _SCHEMAS:
        images = [name for name, hint in get_type_hints(row_type).items() if hint is EncodedImage]
        # The library datasets shows a column as images only if this metadata of the file says so.
        features = json.dumps({"info": {"features": {name: {"_type": "Image"} for name in images}}}, sort_keys=True)
        metadata = {"huggingface": features} if images else None
        _SCHEMAS[row_type] = pa.schema(_struct_fields(row_type), metadata=metadata)
    return _SCHEMAS[row_type]


def _struct_fields(row_type: type) -> list[pa.Field]:
    hints = get_type_hints(row_type)
    return [_field(field.name, hints[field.name]) for field in dataclasses.fields(row_type)]


def _field(name: str, hint: Any) -> pa.Field:
    if get_origin(hint) in (Union, types.UnionType):
        inner = [argument for argument in get_args(hint) if argument is not type(None)]
        if len(inner) != 1:
            raise TypeError(f"{name}: a parquet column has one type, not {hint}")
        return pa.field(name, _arrow_type(inner[0]), nullable=True)
    # The library datasets recognises images only in a nullable column.
    return pa.field(name, _arrow_type(hint), nullable=hint is EncodedImage)


def _arrow_type(hint: Any) -> pa.DataType:
    origin = get_origin(hint)
    if origin is Literal:
        return pa.string()
    if origin is tuple:
        return pa.list_(_field("item", get_args(hint)[0]))
    if origin is dict:
        return pa.map_(pa.string(), _arrow_type(get_args(hint)[1]))
    if hint is EncodedImage:
        # Exactly as in the library datasets.
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    if dataclasses.is_dataclass(hint):
        return pa.struct(_struct_fields(cast(type, hint)))
    return SCALARS[hint]


def write(path: Path, values: Sequence[Mapping[str, Any]], row_type: type) -> None:
    """Write rows to a file as one row group; the same rows always give the same bytes."""
    schema = arrow_schema(row_type)
    with writing_tables(path, schema) as add:
        add(pa.Table.from_pylist(values, schema=schema))


@contextmanager
def writing_tables(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Open a file and yield a function that appends a table to it as a row group of its own.

    Equal tables give equal bytes: the compression is fixed, and there is no pandas metadata.
    """
    # Embeddings are half as large with their bytes apart. Records are 4 % smaller at level 12 than at level 1 and 7 %
    # at level 15, for .09 and .30 seconds per megabyte instead of .02. Nothing here reads statistics.
    columns = dict(leaf for field in schema for leaf in _leaves(field.name, field.type))
    numbers = [path for path, kind in columns.items() if kind == pa.float64()]
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=12,
        write_statistics=False,
        use_byte_stream_split=numbers or False,
        use_dictionary=[path for path in columns if path not in numbers] or False,
        store_schema=True,
    ) as writer:
        yield lambda table: writer.write_table(table, row_group_size=max(1, table.num_rows))


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path in a file and the type of each column of values."""
    inner: Mapping[str, pa.DataType] = {}
    if pa.types.is_list(kind):
        inner = {"list.element": kind.value_type}
    elif pa.types.is_map(kind):
        inner = {"key_value.key": kind.key_type, "key_value.value": kind.item_type}
    elif pa.types.is_struct(kind):
        inner = {field.name: field.type for field in kind}
    else:
        yield path, kind
    for name, of_inner in inner.items():
        yield from _leaves(f"{path}.{name}", of_inner)


def metadata(path: Path) -> pq.FileMetaData:
    """Return the metadata of a file, without reading its rows.

    Raises:
        DataError: the file is missing or is not a readable parquet file.
    """
    with _opened(path) as file:
        return file.metadata


@contextmanager
def _opened(path: Path, content: bytes | None = None) -> Iterator[pq.ParquetFile]:
    if content is None and not path.is_file():
        raise DataError(f"{path}: no such file; build the dataset or run the model again")
    try:
        with pq.ParquetFile(path if content is None else pa.BufferReader(content)) as file:
            yield file
    except pa.ArrowMemoryError:
        raise  # Out of memory: the file itself may be valid.
    # UnicodeDecodeError: names of columns need not be UTF-8.
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: not a readable parquet file (truncated?): {one_line(error)}; make or fetch it again"
        ) from error


def _check_size(path: Path, file: pq.ParquetFile, groups: Sequence[int]) -> int:
    """Check the sizes of some row groups by the metadata, and return how many rows to read at a time."""
    metadata = file.metadata
    chunks = [metadata.row_group(group).column(column) for group in groups for column in range(metadata.num_columns)]
    largest = max((chunk.total_uncompressed_size for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"), default=0)
    if sum(chunk.total_uncompressed_size for chunk in chunks) > MOST_BYTES:
        raise too_large(path)
    n_values = max((chunk.num_values for chunk in chunks), default=0)
    if n_values > MOST_VALUES:
        raise DataError(f"{path}: {n_values:,} values in a column, more than {MOST_VALUES:,}; make it again")
    # No text is larger than its column, so this many rows fit even if each repeats the largest text.
    return max(1, min(_ROWS_AT_A_TIME, MOST_BYTES // max(1, largest)))


def too_large(path: Path) -> DataError:
    """Return the error for rows that must be in memory together and take more than ``MOST_BYTES``."""
    return DataError(f"{path}: its rows take more than {MOST_BYTES >> 30} GiB of memory; split it, or make it again")


def read_table(path: Path, row_type: type) -> pa.Table:
    """Read the columns of a row type, and no others.

    Raises:
        DataError: the file is missing, is truncated, is too large, lacks a column, or holds a column of another type.
    """
    with _opened(path) as file:
        _check_columns(path, file, row_type)
        return _read_groups(path, file, range(file.metadata.num_row_groups), row_type)


def read_row_groups(path: Path, row_type: type) -> Iterator[pa.Table]:
    """Yield the columns of a row type, one row group of the file after the other.

    Raises:
        DataError: the file is missing or truncated, a row group is too large, a column is missing or has another type.
    """
    with _opened(path) as file:
        _check_columns(path, file, row_type)
        for group in range(file.metadata.num_row_groups):
            yield _read_groups(path, file, [group], row_type)


def foreign_schema(path: Path, content: bytes | None = None) -> pa.Schema:
    """Return the names and types of the columns of a file that another program wrote, and its metadata.

    ``content`` is that of the file, if it was read already.

    Raises:
        DataError: the file is missing or is not a readable parquet file.
    """
    with _opened(path, content) as file:
        return file.schema_arrow


def foreign_rows(path: Path, names: Sequence[str], content: bytes | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a file that another program wrote, as objects of Python.

    Raises:
        DataError: the file is missing, truncated or too large, or holds a value that Python has not.
    """
    try:
        with _opened(path, content) as file:
            _check_rows(path, file)
            # First only counted: a second without objects spares a file that is too large most of a minute.
            deque(_foreign_batches(path, file, names, of_number=_BYTES_OF_OBJECT), maxlen=0)
            for batch in _foreign_batches(path, file, names, of_number=_BYTES_OF_OBJECT):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
    # Times may be too early, and in zones that nobody knows.
    except (ValueError, KeyError, OverflowError) as error:
        raise DataError(f"{path}: has a value that cannot be read ({one_line(error)}); leave its column out") from error


def foreign_table(path: Path, names: Sequence[str]) -> pa.Table:
    """Return columns of a file that another program wrote.

    Raises:
        DataError: the file is missing, truncated or too large, or lacks a column.
    """
    with _opened(path) as file:
        # Each reading of the schema makes it again.
        have = {*file.schema_arrow.names}
        if missing := [name for name in names if name not in have]:
            raise DataError(f"{path}: column {', '.join(missing)} is missing; make it again")
        batches = [*_foreign_batches(path, file, names, of_number=8)]
        table = pa.Table.from_batches(batches, None if batches else file.schema_arrow).select(list(names))
        return table.replace_schema_metadata(file.schema_arrow.metadata)


def _foreign_batches(
    path: Path, file: pq.ParquetFile, names: Sequence[str], *, of_number: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows of columns of any types; each floating-point number counts as so many bytes."""
    groups, wanted = range(file.metadata.num_row_groups), {*names}
    at_a_time, n_bytes = _check_size(path, file, groups), 0
    for at in range(file.metadata.num_columns):
        column = file.metadata.schema.column(at)
        if column.path in wanted or column.path.partition(".")[0] in wanted:
            n_values = sum(file.metadata.row_group(group).column(at).num_values for group in groups)
            n_bytes += n_values * (of_number if column.physical_type in ("FLOAT", "DOUBLE") else _BYTES_OF_OBJECT)
    if n_bytes > MOST_BYTES:
        raise too_large(path)
    yield from _read_batches(path, file, groups, names, at_a_time, n_bytes)


def is_nested(kind: pa.DataType) -> bool:
    """Return True for lists and structures."""
    return bool(pa.types.is_nested(kind))


def is_plain_list(kind: pa.DataType) -> bool:
    """Return True for lists of texts or numbers."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_list(kind) for is_list in lists) and not is_nested(kind.value_type)


def _check_rows(path: Path, file: pq.ParquetFile) -> None:
    n_rows = file.metadata.num_rows
    if n_rows > MOST_ROWS:
        raise DataError(f"{path}: {n_rows:,} rows, more than the {MOST_ROWS:,} of any file; make it again")


def _check_columns(path: Path, file: pq.ParquetFile, row_type: type) -> None:
    """Check that a file has the columns of a row type, and not too many rows."""
    _check_rows(path, file)
    expected, schema = arrow_schema(row_type), file.schema_arrow
    missing = [name for name in expected.names if name not in schema.names]
    if missing:
        raise DataError(
            f"{path}: column {', '.join(missing)} is missing; have: {', '.join(schema.names)}; "
            f"rows of {row_type.__name__} need: {', '.join(expected.names)}"
        )
    for field in expected:
        if schema.names.count(field.name) > 1:
            raise DataError(f"{path}: column {field.name} stands twice; keep one")
        stored = schema.field(field.name).type
        if not _fits(stored, field.type, row_type, field.name):
            raise DataError(
                f"{path}: column {field.name} is of type {stored}, not {field.type}; "
                "write it with schemas.files.row_files"
            )


def _fits(stored: pa.DataType, wanted: pa.DataType, row_type: type, name: str) -> bool:
    """Return True if the type of a column is the wanted one, apart from some fields of a list of structs.

    A field may never be null where the wanted one might, or be missing if it is among those that were added later.
    """
    # Files from before a field could be null, or was there, stay readable.
    if stored == wanted or not all(
        pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) for kind in (stored, wanted)
    ):
        return bool(stored == wanted)
    # Not for columns that are as wanted: to resolve annotations took a tenth of a board's time.
    added = _added_fields(row_type, name)
    of_stored = {field.name: field for field in stored.value_type}
    lenient = [
        field.with_nullable(field.nullable and of_stored.get(field.name, field).nullable)
        for field in wanted.value_type
        if field.name in of_stored or field.name not in added
    ]
    return bool(stored == pa.list_(wanted.value_field.with_type(pa.struct(lenient))))


def _added_fields(row_type: type, name: str) -> frozenset[str]:
    """Return the fields of the structs in a column of lists that have a default, since older files lack them."""
    (document_type, *_) = *get_args(get_type_hints(row_type)[name]), None
    if not (isinstance(document_type, type) and dataclasses.is_dataclass(document_type)):
        return frozenset()
    return frozenset(
        field.name for field in dataclasses.fields(document_type) if field.default is not dataclasses.MISSING
    )


def _read_groups(path: Path, file: pq.ParquetFile, groups: Sequence[int], row_type: type) -> pa.Table:
    expected = arrow_schema(row_type)
    batches = [*_read_batches(path, file, groups, expected.names, _check_size(path, file, groups))]
    table = pa.Table.from_batches(batches, schema=batches[0].schema if batches else expected).select(expected.names)
    return table.cast(pa.schema([table.schema.field(field.name).with_type(field.type) for field in expected]))


def _read_batches(
    path: Path, file: pq.ParquetFile, groups: Sequence[int], names: Sequence[str], at_a_time: int, n_bytes: int = 0
) -> Iterator[pa.RecordBatch]:
    """Yield rows, so many at a time, until they and the bytes that are counted already are too large."""
    for batch in file.iter_batches(at_a_time, row_groups=list(groups), columns=list(names)):
        n_bytes += sum(map(_decoded_size, batch.columns))
        if n_bytes > MOST_BYTES:
            raise too_large(path)
        yield batch


def _decoded_size(column: pa.Array) -> int:
    """Return the size of a column in memory, where each row that names a text of a dictionary has one of its own."""
    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    if not (pa.types.is_dictionary(column.type) and column.type.value_type in texts):
        return int(column.nbytes)
    # Imported here because no file of ours has such columns.
    import pyarrow.compute as pc

    return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)


def check_texts(path: Path, table: pa.Table) -> None:
    """Check that all texts are UTF-8, which Arrow does not do when it reads them.

    Raises:
        DataError: a text is not UTF-8.
    """
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: holds text that is not UTF-8: {error}; make it again") from error


def values_of(table: pa.Table, *, where: str) -> list[dict[str, Any]]:
    """Return the fields of each row of a table by name.

    Raises:
        DataError: a text is not UTF-8, or a map has a key twice.
    """
    try:
        columns = [_values(column) for column in table.columns]
    except (ValueError, KeyError) as error:
        raise DataError(
            f"{where}: holds text that is not UTF-8 or a map with a key twice: {error}; make it again"
        ) from error
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    # Arrow would make an object of its own of each number first, and sums of clusters are lists of thousands.
    if len(column) and pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        array = column.combine_chunks()
        numbers = array.flatten()
        if not array.null_count and not numbers.null_count:
            ends = accumulate(array.value_lengths().to_pylist(), initial=0)
            values = numbers.to_numpy().tolist()
            return [values[first:end] for first, end in pairwise(ends)]
    return cast(list[Any], column.to_pylist(maps_as_pydicts="strict"))
