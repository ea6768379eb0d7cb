"""Records as columns: rows become objects only on demand, and counting happens in arrays.

Hashes of records compare results without their rows, and replace texts that are kept elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from biasboard.ground import strict_json
from biasboard.ground.columns import BoolArray, Column, IntArray, columns_of
from biasboard.ground.errors import DataError
from biasboard.ground.strict_json import JsonValue
from schemas.documents.base import Document, as_row
from schemas.documents.record import Exchange, Reading, Record, choice_sha256, exchange_sha256
from schemas.documents.result import Counts, SplitCounts
from schemas.documents.run_files import text_sha256
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


TEXT_ELSEWHERE = "the text is kept elsewhere"
"""Reason of a record without a reading, instead of one that quotes the text."""
_MARK = "sha256:"
_N_DIGITS = 16
"""Number of digits of a hash that replaces a text. It recognises equal texts, which 64 bits do: of a billion texts, two
have the same hash with a probability of 3 %. What binds to the texts is the SHA-256 of the complete file of records."""
_HASHED = re.compile(rf"{_MARK}[0-9a-f]{{{_N_DIGITS}}}\Z")


def exchange_hashes(records: RecordColumns) -> list[str | None]:
    """Return the hash of the request of every exchange, as :func:`exchange_sha256` does."""
    exchanges = records.exchanges
    hashes, prompts = list(exchanges["request_sha256"].texts), exchanges["prompt"].texts
    follows = exchanges["kind"].coded.is_one_of("choice") & exchanges["prompt"].known
    options = exchanges["options"].lists
    texts, ends = options.values.texts, list(pairwise(options.offsets.tolist()))
    for index in np.flatnonzero(follows & ~exchanges["request_sha256"].known).tolist():
        start, end = ends[index]
        hashes[index] = choice_sha256(prompts[index] or "", tuple(texts[start:end]))
    return hashes


def joined_sha256(of_parts: Sequence[str]) -> str:
    """Return the hash of several parts, given theirs; that of a single part is returned unchanged."""
    return of_parts[0] if len(of_parts) == 1 else strict_json.sha256(list(of_parts))


def items_sha256(records: RecordColumns, *, with_options: bool = False) -> str:
    """Return a hash of the items of a part, that is of all fields of its records that do not depend on a model.

    Args:
        records: The records.
        with_options: True if the options belong to the items, because the prompt offers none of its own.
    """
    digest = hashlib.sha256()
    for name in ("item_id", "split", "cluster", "pair_id", "target", "reference"):
        _add(digest, records.columns[name])
    owners, keys, values = records.columns["groups"].entries
    texts = values.texts
    for code, key in enumerate(keys.coded.texts):
        entries = np.flatnonzero(keys.coded.codes == code).tolist()
        digest.update(strict_json.canonical([key, owners[entries].tolist(), [texts[entry] for entry in entries]]))
    if with_options:
        digest.update(records.first_exchanges.tobytes())
        _add_options(digest, records)
    return digest.hexdigest()


def requests_sha256(records: RecordColumns) -> str:
    """Return a hash of the requests of a part and of the sizes of their options in bytes."""
    digest = _digest_of_requests(records)
    lengths = records.exchanges["option_byte_counts"].lists
    digest.update(lengths.offsets.tobytes() + lengths.values.integers.tobytes())
    return digest.hexdigest()


def asked_sha256(records: RecordColumns) -> str:
    """Return a hash of the requests of a part.

    It does not depend on whether the prompts of choices are shown. Those of generations count, since a reading of a
    text may depend on its prompt.
    """
    return _digest_of_requests(records).hexdigest()


def answers_sha256(records: RecordColumns) -> str:
    """Return a hash of the answers of a part: statuses, generated texts and log-probabilities of options."""
    digest = hashlib.sha256(records.owners.tobytes())
    _add(digest, records.exchanges["status"])
    # Texts enter by their hashes, so that a result without its texts has the same hash as the complete one.
    texts = records.exchanges["text"].texts
    digest.update(strict_json.canonical([text if text is None else as_hash(text) for text in texts]))
    logprobs = records.exchanges["option_logprobs"].lists
    digest.update(logprobs.offsets.tobytes() + logprobs.values.numbers.tobytes())
    return digest.hexdigest()


def item_hashes(records: Sequence[Record], *, with_requests: bool) -> npt.NDArray[np.uint8]:
    """Return the SHA-256 of each record's item and requests.

    Args:
        records: The records.
        with_requests: False to leave out the requests, for answers given elsewhere, whose requests cannot be rebuilt.

    Returns:
        One hash per row, shape (n, 32).
    """
    hashes = [hashlib.sha256(strict_json.canonical(_facts(record, with_requests))).digest() for record in records]
    return np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(len(hashes), 32)


def _facts(record: Record, with_requests: bool) -> JsonValue:
    facts: list[JsonValue] = [record.item_id, record.config, record.split, record.cluster, record.pair_id]
    facts += [record.target, record.reference, dict(record.groups)]
    if with_requests:
        facts += [
            [
                exchange.kind,
                None if exchange.kind == "choice" else exchange.prompt,
                exchange_sha256(exchange),
                exchange.sample,
                list(exchange.outcomes),
                list(exchange.options),
            ]
            for exchange in record.exchanges
        ]
    return facts


def _digest_of_requests(records: RecordColumns) -> hashlib._Hash:
    """Return a digest of the requests by their hashes, with the prompts of generations and what no hash covers."""
    digest = hashlib.sha256(records.owners.tobytes())
    kinds, prompts = records.exchanges["kind"], records.exchanges["prompt"].array
    is_choice = pa.array(kinds.coded.is_one_of("choice"))
    shown = pc.if_else(is_choice, pa.scalar(None, prompts.type), prompts)
    hashes = pa.array(exchange_hashes(records), pa.string())
    for column in (kinds, Column(shown), Column(hashes)):
        _add(digest, column)
    samples = records.exchanges["sample"]
    digest.update(samples.known.tobytes() + samples.integers.tobytes())
    _add_options(digest, records)
    return digest


def _add_options(digest: hashlib._Hash, records: RecordColumns) -> None:
    """Add options and the outcomes that they stand for."""
    for name in ("outcomes", "options"):
        lists = records.exchanges[name].lists
        digest.update(lists.offsets.tobytes())
        _add(digest, lists.values)


def _add(digest: hashlib._Hash, column: Column) -> None:
    """Add the texts of a column to a digest, with their lengths, so that the same letters split otherwise differ."""
    digest.update(column.known.tobytes() + column.text_lengths.tobytes())
    digest.update("".join(text for text in column.texts if text is not None).encode())


def hashed(text: str) -> str:
    """Return the hash that replaces a text.

    >>> hashed("")
    'sha256:e3b0c44298fc1c14'
    """
    return f"{_MARK}{text_sha256(text)[:_N_DIGITS]}"


def is_hashed(text: str) -> bool:
    """Return True if a text has the form of a hash that replaces a text."""
    return _HASHED.match(text) is not None


def as_hash(text: str) -> str:
    """Return the hash that replaces a text; such a hash itself is returned unchanged."""
    return text if is_hashed(text) else hashed(text)


def without_prompts(records: RecordColumns) -> RecordColumns:
    """Return records of choices with the hash of each request in place of its prompt; the options stay."""
    n_exchanges = len(records.owners)
    return records.replaced({}, {"prompt": [None] * n_exchanges, "request_sha256": exchange_hashes(records)})


def without_texts(records: RecordColumns, *, with_prompts: bool, with_requests: bool) -> RecordColumns:
    """Return records with hashes in place of all generated texts.

    The prompts of choices are left out, with the hash of each request in their place: they hold the texts after which
    the options were scored.

    Args:
        records: The complete records of one part.
        with_prompts: False to leave out the prompts of the texts too.
        with_requests: False to leave out the hashes of the requests too.
    """
    texts, prompts = (records.exchanges[name].texts for name in ("text", "prompt"))
    is_shown = ~records.exchanges["kind"].coded.is_one_of("choice") & with_prompts
    reasons: Sequence[str | None] = records.columns["reason"].texts
    has_text = {owner for owner, text in zip(records.owners.tolist(), texts, strict=True) if text is not None}
    new_reasons = [
        TEXT_ELSEWHERE if reason is not None and index in has_text else reason for index, reason in enumerate(reasons)
    ]
    return records.replaced(
        {"reason": new_reasons},
        {
            "text": [None if text is None else hashed(text) for text in texts],
            "prompt": [prompt if shown else None for prompt, shown in zip(prompts, is_shown.tolist(), strict=True)],
            "request_sha256": exchange_hashes(records) if with_requests else [None] * len(prompts),
        },
    )
