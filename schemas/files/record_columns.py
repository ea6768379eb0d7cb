"""Records as columns: rows become objects only on demand, and counting happens in arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa

from biasboard.ground.columns import BoolArray, Column, IntArray, columns_of
from biasboard.ground.errors import DataError
from schemas.documents.base import Document, as_row
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Counts, SplitCounts
from schemas.files.arrow_files import MOST_BYTES, arrow_schema

AT_A_TIME = 1024
"""Number of records that are objects at a time: as such they take ten times the memory that their columns take."""
D = TypeVar("D", bound=Document)
T = TypeVar("T")
_TRUNCATED = "truncated"


class RecordColumns(Sequence[Record]):
    """A sequence of records whose fields can be read as arrays.

    It can be used as any sequence of rows, but making one row takes as long as reading hundreds from arrays.
    """

    def __init__(self, table: pa.Table, first_row: int = 1) -> None:
        """Wrap a table that has the Arrow schema of records.

        Args:
            table: The records.
            first_row: Number of the first record in the file that the records were read from, counted from 1.
        """
        self.table = table
        self.first_row = first_row

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordColumns:
        """Return records as columns; an instance of this class is returned unchanged."""
        if isinstance(records, RecordColumns):
            return records
        values = [as_row(record) for record in records]
        columns = cls(pa.Table.from_pylist(values, schema=arrow_schema(Record)))
        # The rows exist already: put them into the cache of the property.
        vars(columns)["_rows"] = list(records)
        return columns

    @classmethod
    def of_stream(cls, records: Iterable[Record]) -> RecordColumns:
        """Return records as columns, without ever holding more than a few of them as objects."""
        stream, schema = iter(records), arrow_schema(Record)
        tables = [schema.empty_table()]
        while rows := [as_row(record) for record in islice(stream, AT_A_TIME)]:
            tables.append(pa.Table.from_pylist(rows, schema=schema))
        # In one piece, for a file has the same bytes then, whatever the pieces were.
        return cls(pa.concat_tables(tables).combine_chunks())

    @classmethod
    def joined(cls, parts: Iterable[RecordColumns]) -> RecordColumns:
        """Return the records of several parts as one sequence; a single part is returned unchanged.

        Raises:
            DataError: together they take too much memory.
        """
        read: list[RecordColumns] = []
        n_bytes = 0
        for part in parts:
            read.append(part)
            n_bytes += part.table.nbytes
            if n_bytes > MOST_BYTES:
                raise DataError(
                    f"its records take more than {MOST_BYTES >> 30} GiB of memory together; a task that reads suites "
                    "with a table_of_parts of its own takes them part by part"
                )
        if not read:
            return cls(arrow_schema(Record).empty_table())
        return read[0] if len(read) == 1 else cls(pa.concat_tables([part.table for part in read]))

    def __len__(self) -> int:
        """Return the number of records."""
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        """Return one record or several."""
        # Make only the one row, unless all rows were made before.
        if isinstance(index, slice) or "_rows" in vars(self):
            return self._rows[index]
        return _made(self.table.slice(range(len(self))[index], 1))[0]

    def __iter__(self) -> Iterator[Record]:
        """Yield every record."""
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        """Return True if another sequence holds equal records."""
        return isinstance(other, Sequence) and len(self) == len(other) and self._rows == list(other)

    __hash__ = None  # type: ignore[assignment]

    def replaced(
        self, fields: Mapping[str, Sequence[Any]], exchange_fields: Mapping[str, Sequence[Any]]
    ) -> RecordColumns:
        """Return the same records with other values in some fields.

        Args:
            fields: Values of fields of the records by name, one per record; structures are dictionaries.
            exchange_fields: Values of fields of the exchanges by name, one per exchange of any record.
        """
        table = self.table
        exchanges = self.columns["exchanges"]
        struct = exchanges.array.type.value_type
        values = [
            pa.array(exchange_fields[field.name], type=field.type)
            if field.name in exchange_fields
            else self.exchanges[field.name].array
            for field in struct
        ]
        changed = {name: pa.array(given, type=table.schema.field(name).type) for name, given in fields.items()}
        offsets = pa.array(self.first_exchanges, type=pa.int32())
        changed["exchanges"] = pa.ListArray.from_arrays(
            offsets, pa.StructArray.from_arrays(values, fields=list(struct)), type=exchanges.array.type
        )
        for name, array in changed.items():
            table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), array)
        return RecordColumns(table, self.first_row)

    def only_exchanges(self, kept: BoolArray) -> RecordColumns:
        """Return the same records with some of their exchanges only.

        Args:
            kept: Mask of the exchanges to keep, shape (n_exchanges,).
        """
        column = self.columns["exchanges"]
        n_before = np.concatenate([[0], np.cumsum(kept)])
        lists = pa.ListArray.from_arrays(
            pa.array(n_before[self.first_exchanges], type=pa.int32()),
            column.lists.values.array.filter(pa.array(kept)),
            type=column.array.type,
        )
        index = self.table.schema.get_field_index("exchanges")
        return RecordColumns(self.table.set_column(index, self.table.schema.field(index), lists), self.first_row)

    def rows(self, indices: IntArray) -> list[Record]:
        """Return records by their indices, which is faster than indexing one by one."""
        if "_rows" in vars(self):
            return [self._rows[index] for index in indices.tolist()]
        return _made(self.table.take(pa.array(indices)))

    @cached_property
    def _rows(self) -> list[Record]:
        return _made(self.table)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The fields of the records, by name."""
        return columns_of(self.table)

    @cached_property
    def first_exchanges(self) -> IntArray:
        """The index of each record's first exchange among all exchanges, then their number; shape (n + 1,)."""
        return self.columns["exchanges"].lists.offsets

    @cached_property
    def owners(self) -> IntArray:
        """The index of the record of each exchange, shape (n_exchanges,)."""
        return self.columns["exchanges"].lists.owners

    @cached_property
    def exchanges(self) -> Mapping[str, Column]:
        """The fields of all exchanges of all records, by name."""
        return self.columns["exchanges"].lists.values.fields

    @cached_property
    def has_reading(self) -> BoolArray:
        """The mask of the records with a reading, shape (n,)."""
        return self.columns["reading"].known

    @cached_property
    def readings(self) -> Mapping[str, Column]:
        """The fields of the readings, by name; a record without a reading has empty lists."""
        return self.columns["reading"].fields


def _made(table: pa.Table) -> list[Record]:
    """Return rows as objects, without checking them again: the values of files are checked by column."""
    records = RecordColumns(table)
    fields: dict[str, Sequence[Any]] = {
        name: _values(column) for name, column in records.columns.items() if name not in ("exchanges", "reading")
    }
    fields["exchanges"] = _tuples(_objects(records.exchanges, Exchange), records.first_exchanges)
    readings = zip(_objects(records.readings, Reading), records.has_reading.tolist(), strict=True)
    fields["reading"] = [reading if is_known else None for reading, is_known in readings]
    return _joined(fields, Record)


def _objects(columns: Mapping[str, Column], document_type: type[D]) -> list[D]:
    return _joined({name: _values(column) for name, column in columns.items()}, document_type)


def _joined(fields: Mapping[str, Sequence[Any]], document_type: type[D]) -> list[D]:
    return [document_type(**dict(zip(fields, row, strict=True))) for row in zip(*fields.values(), strict=True)]


def _values(column: Column) -> Sequence[Any]:
    """Return the values of a column of texts, numbers, lists or maps."""
    if pa.types.is_list(column.array.type):
        return _tuples(_values(column.lists.values), column.lists.offsets)
    if pa.types.is_map(column.array.type):
        owners, keys, values = column.entries
        maps: list[dict[str, Any]] = [{} for _ in range(len(column))]
        for owner, key, value in zip(owners.tolist(), keys.texts, values.texts, strict=True):
            maps[owner][str(key)] = value
        return maps
    values_of_rows: list[Any] = column.array.to_pylist()
    return values_of_rows


def _tuples(values: Sequence[T], offsets: IntArray) -> list[tuple[T, ...]]:
    return [tuple(values[first:end]) for first, end in pairwise(offsets.tolist())]


class Tally:
    """Counts records by status: all of them, and those of each split of each part."""

    def __init__(self) -> None:
        """Start with no records."""
        self._n: dict[tuple[str, str], Counter[str]] = {}

    def add(self, records: RecordColumns) -> None:
        """Count more records."""
        columns = records.columns
        configs, splits, statuses = (columns[name].coded for name in ("config", "split", "status"))
        shape = (len(configs.texts) + 1, len(splits.texts) + 1, len(statuses.texts) + 1, 2)
        flags = columns["truncated"].flags.astype(np.int64)
        # Each combination becomes one number, so that one call counts all rows.
        # A row without a text has the code -1, which wraps around to the last index.
        cells = np.ravel_multi_index((configs.codes, splits.codes, statuses.codes, flags), shape, mode="wrap")
        distinct, firsts, counts = np.unique(cells, return_index=True, return_counts=True)
        order = np.argsort(firsts)
        for (config, split, status, flag), n in zip(
            np.transpose(np.unravel_index(distinct[order], shape)).tolist(), counts[order].tolist(), strict=True
        ):
            key = ((*configs.texts, "None")[config], (*splits.texts, "None")[split])
            counter = self._n.setdefault(key, Counter())
            counter[(*statuses.texts, "None")[status]] += n
            counter[_TRUNCATED] += n * flag

    @property
    def counts(self) -> Counts:
        """The counts of all records."""
        return _as_counts(sum(self._n.values(), Counter()))

    @property
    def coverage(self) -> tuple[SplitCounts, ...]:
        """The counts of each split of each part, in the order in which they came."""
        return tuple(
            SplitCounts(part=part, split=split, counts=_as_counts(counter))
            for (part, split), counter in self._n.items()
        )


def _as_counts(counter: Counter[str]) -> Counts:
    by_status = {name: counter[name] for name in ("scored", "refused", "unparsed", "failed")}
    return Counts(items=sum(by_status.values()), truncated=counter[_TRUNCATED], **by_status)
