"""Records as columns; a row is made only where one is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import pyarrow as pa

from biasboard.ground.columns import BoolArray, Column, IntArray, columns_of
from biasboard.ground.errors import DataError
from schemas.documents.conversion import as_row, from_values
from schemas.documents.record import Record
from schemas.files.arrow_files import MOST_BYTES, arrow_schema


class RecordColumns(Sequence[Record]):
    """A sequence of records whose fields can be read as arrays.

    Code that needs rows takes them as from any sequence. Making a row takes as long as reading hundreds from arrays.
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
        """Return records as columns; records that are columns already are returned as they are."""
        if isinstance(records, RecordColumns):
            return records
        values = [as_row(record) for record in records]
        columns = cls(pa.Table.from_pylist(values, schema=arrow_schema(Record)))
        # The rows are there already: they fill the cache of the property.
        vars(columns)["_rows"] = list(records)
        return columns

    @classmethod
    def joined(cls, parts: Iterable[RecordColumns]) -> RecordColumns:
        """Return the records of several parts as one sequence; a single part is returned as it is.

        Raises:
            DataError: together they take too much memory.
        """
        kept: list[RecordColumns] = []
        n_bytes = 0
        for part in parts:
            kept.append(part)
            n_bytes += part.table.nbytes
            if n_bytes > MOST_BYTES:
                raise DataError(
                    f"its records take more than {MOST_BYTES >> 30} GiB of memory together; a task that reads suites "
                    "with a table_of_parts of its own takes them part by part"
                )
        if not kept:
            return cls(arrow_schema(Record).empty_table())
        return kept[0] if len(kept) == 1 else cls(pa.concat_tables([part.table for part in kept]))

    def __len__(self) -> int:
        """Return the number of records."""
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        """Return one record or several."""
        # A single row is made alone, unless all rows were made before.
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

    def rows(self, indices: IntArray) -> list[Record]:
        """Return some records by their indices; many at a time are made faster than one by one."""
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
        """The place of each record's first exchange among all exchanges, and their number; shape (n + 1,)."""
        return self.columns["exchanges"].lists.offsets

    @cached_property
    def owners(self) -> IntArray:
        """The record that each exchange belongs to, shape (n_exchanges,)."""
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
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    return [from_values(row, Record) for row in rows]
