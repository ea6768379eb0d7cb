"""Columns of a parquet file as arrays.

Most computations over records need one field of all of them. Arrays make these many times faster than objects, and take
less memory: the text of a prompt stays in the file's buffer until it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Coded(NamedTuple):
    """Texts as integer codes."""

    codes: IntArray
    """Index of each row's text in ``texts``; -1 for a row without a text."""
    texts: tuple[str, ...]
    """The distinct texts, sorted."""

    def is_one_of(self, *wanted: str) -> BoolArray:
        """Return the mask of the rows whose text is one of the given ones, shape (n,)."""
        # Rows without a text have the code -1, which indexes the last entry.
        is_wanted = np.array([text in wanted for text in self.texts] + [False])
        return cast(BoolArray, is_wanted[self.codes])


class Lists(NamedTuple):
    """Lists of values, one list per row."""

    offsets: IntArray
    """Index of each list's first value among all values, then the number of all values; shape (n + 1,)."""
    values: Column

    @property
    def lengths(self) -> IntArray:
        """The length of each list, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> IntArray:
        """The index of the row of each value, shape (n_values,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)


class Column:
    """One field of all rows. Each method is for one type of field."""

    def __init__(self, array: pa.Array | pa.ChunkedArray) -> None:
        """Wrap an Arrow array; its chunks are joined."""
        self.array: pa.Array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if isinstance(self.array, pa.ChunkedArray):  # There are no chunks to join.
            self.array = pa.array([], type=self.array.type)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.array)

    @cached_property
    def known(self) -> BoolArray:
        """The mask of the rows that have a value, shape (n,)."""
        return cast(BoolArray, self.array.is_valid().to_numpy(zero_copy_only=False))

    @cached_property
    def texts(self) -> list[str | None]:
        """The text of each row; None for a row without one."""
        return cast("list[str | None]", self.array.to_pylist())

    @cached_property
    def coded(self) -> Coded:
        """The texts as codes; for fields with few distinct texts."""
        encoded = self.array.dictionary_encode()
        texts = np.array(encoded.dictionary.to_pylist(), dtype=object)
        order = np.argsort(texts)
        ranks = np.empty(len(order) + 1, dtype=np.int64)
        ranks[order], ranks[-1] = np.arange(len(order)), -1
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return Coded(ranks[codes], tuple(texts[order].tolist()))

    @cached_property
    def text_lengths(self) -> IntArray:
        """The number of bytes of each text; 0 for a row without one."""
        return cast(IntArray, pc.binary_length(self.array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))

    def matches(self, pattern: str) -> BoolArray:
        """Return the mask of the rows whose text matches a regular expression, shape (n,); False without a text."""
        mask = pc.match_substring_regex(self.array, pattern).fill_null(False)
        return cast(BoolArray, mask.to_numpy(zero_copy_only=False).astype(np.bool_))

    @cached_property
    def numbers(self) -> FloatArray:
        """The number of each row as a float, rounded if it is a large integer; nan for a row without one."""
        return cast(FloatArray, self.array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))

    @cached_property
    def integers(self) -> IntArray:
        """The integer of each row; 0 for a row without one (see ``known``)."""
        return cast(IntArray, self.array.fill_null(0).to_numpy(zero_copy_only=False))

    @cached_property
    def flags(self) -> BoolArray:
        """The boolean of each row."""
        return cast(BoolArray, self.array.to_numpy(zero_copy_only=False).astype(np.bool_))

    @cached_property
    def lists(self) -> Lists:
        """The lists of all rows; a row without a list has an empty one."""
        lengths = pc.list_value_length(self.array).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Lists(offsets, Column(self.array.flatten()))

    @cached_property
    def fields(self) -> Mapping[str, Column]:
        """The fields of structs, by name; in a row without a struct they have no value."""
        names = [field.name for field in self.array.type]
        return {name: Column(field) for name, field in zip(names, self.array.flatten(), strict=True)}

    @cached_property
    def entries(self) -> tuple[IntArray, Column, Column]:
        """The entries of maps: the index of each entry's row, and the columns of keys and of values."""
        kind = self.array.type
        key = pa.field("key", kind.key_type, nullable=False)
        value = pa.field("value", kind.item_type, nullable=kind.item_field.nullable)
        of_entries = pa.field("entries", pa.struct([key, value]), nullable=False)
        lists = Column(self.array.cast(pa.list_(of_entries))).lists
        keys, values = lists.values.array.flatten()
        return lists.owners, Column(keys), Column(values)


def columns_of(table: pa.Table) -> Mapping[str, Column]:
    """Return the columns of a table by name."""
    return {name: Column(table.column(name)) for name in table.schema.names}
