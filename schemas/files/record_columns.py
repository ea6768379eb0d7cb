"""Records as columns: rows become objects only on demand, and counting happens in arrays.

Hashes of records compare results without their rows, and replace texts that are kept elsewhere.

A file of records can hold a million rows, and making one row takes as long as reading hundreds from arrays. So every
rule is a mask over columns, and only the few rows that break one become objects, to word what is wrong::

    breaks_a_type      the annotations of single fields
    RECORD_CHECKS      rules that join several fields of a record ...
    EXCHANGE_CHECKS    ... or of one of its exchanges: a mask, and the words for one row
    broken_scores      all rules of text scores

A single row is checked as a table of one row, so that each rule exists only once.
"""

from __future__ import annotations

import hashlib
import re
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, cached_property
from itertools import islice, pairwise
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from annotated_types import Ge, Le, Lt, MinLen
from pydantic import AllowInfNan, BeforeValidator, PlainSerializer, StringConstraints, WithJsonSchema

from biasboard.ground import strict_json
from biasboard.ground.columns import BoolArray, Column, IntArray, columns_of
from biasboard.ground.errors import DataError
from biasboard.ground.strict_json import JsonValue
from schemas.documents.base import INTEGERS, Document, as_row, shown
from schemas.documents.record import Exchange, Reading, Record, choice_sha256, exchange_sha256
from schemas.documents.result import Counts, SplitCounts
from schemas.documents.run_files import ScorerKind, TextScore, text_sha256
from schemas.files import arrow_files
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


ExchangeColumns: TypeAlias = Mapping[str, Column]
# Each rule: its name, the mask of the rows that break it, and what is wrong with one of them, with value and remedy.
RecordCheck: TypeAlias = tuple[str, Callable[[RecordColumns], BoolArray], Callable[[Record], str]]
ExchangeCheck: TypeAlias = tuple[str, Callable[[ExchangeColumns], BoolArray], Callable[[Exchange], str]]
_CONVERSIONS = (AllowInfNan, BeforeValidator, PlainSerializer, WithJsonSchema)
"""Annotations about the form of a value in JSON, which mean nothing for a column."""
_SUM_TOLERANCE = 1e-9
"""Largest deviation of a sum of probabilities from 1: each is rounded to 1e-16, and there are up to a thousand."""
_PER_OPTION = ("outcomes", "option_byte_counts")
_PER_ANSWER = ("option_logprobs", "option_end_logprobs", "option_token_counts")
_SCORE_TOLERANCE = 1e-4
"""Largest deviation of a length or a sum from 1: scorers compute in single precision."""
_EXPECTED: Mapping[ScorerKind, str] = {
    "sentiment": "one value in [-1, 1], or three probabilities that sum to 1",
    "toxicity": "one value in [0, 1]",
    "regard": "one or more values in [-1, 1]",
    "embedding": "a vector of length 1",
}


def breaks_a_type(columns: Mapping[str, Column], row_type: Any) -> BoolArray:
    """Return the mask of the rows in which a value breaks the annotation of its field."""
    broken: BoolArray = np.logical_or.reduce([_broken(columns[name], hint) for name, hint in _hints(row_type).items()])
    return broken


@cache
def _hints(row_type: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(row_type, include_extras=True)


def _broken(column: Column, hint: Any) -> BoolArray:
    """Return the mask of the values that an annotation does not allow."""
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = (argument for argument in get_args(hint) if argument is not types.NoneType)
        return column.known & _broken(column, inner)
    constraints: Sequence[Any] = ()
    if get_origin(hint) is Annotated:
        hint, *constraints = get_args(hint)
    if get_origin(hint) is Literal:
        return ~column.coded.is_one_of(*get_args(hint))
    broken: BoolArray = ~column.known
    if get_origin(hint) is tuple:
        is_broken = _broken(column.lists.values, get_args(hint)[0])
        # Computing the owners takes longer than all the rest, and nearly all files are valid.
        if is_broken.any():
            broken[column.lists.owners[is_broken]] = True
    elif get_origin(hint) is dict:
        key, value = get_args(hint)
        if key is not str:
            raise TypeError(f"no check of columns knows the keys {key}; add it")
        broken |= _broken_maps(column, value)
    elif is_dataclass(hint):
        broken |= breaks_a_type(column.fields, hint)
    elif hint is float:
        may_be_infinite = any(isinstance(constraint, AllowInfNan) for constraint in constraints)
        broken |= np.isnan(column.numbers) if may_be_infinite else ~np.isfinite(column.numbers)
    for constraint in constraints:
        broken |= _outside(column, constraint)
    return broken


def _outside(column: Column, constraint: Any) -> BoolArray:
    """Return the mask of the values that a constraint does not allow."""
    match constraint:
        case StringConstraints(pattern=str(pattern), min_length=None, max_length=None):
            return ~column.matches(pattern)
        case StringConstraints(pattern=None, min_length=1, max_length=None):
            return np.asarray(column.text_lengths == 0)
        case MinLen(min_length=least):
            return np.asarray(column.lists.lengths < least)
        case Ge(ge=float(least) | int(least)):
            return ~(column.numbers >= least)
        case Lt(lt=bound) if bound == INTEGERS:
            # Columns of int64 cannot hold more.
            return np.zeros(len(column), dtype=np.bool_)
        case Le(le=float(most) | int(most)):
            return ~(column.numbers <= most)
        case _ if isinstance(constraint, _CONVERSIONS):
            return np.zeros(len(column), dtype=np.bool_)
    raise TypeError(f"no check of columns knows the constraint {constraint}; add it")


def _broken_maps(column: Column, hint: Any) -> BoolArray:
    """Return the mask of the maps that hold a wrong value or a duplicate key: Arrow allows both."""
    owners, keys, values = column.entries
    # Each pair of row and key becomes one number, so that after sorting a duplicate key is two equal neighbours.
    width = len(keys.coded.texts) + 1
    cells = np.sort(owners * width + keys.coded.codes)
    broken = np.zeros(len(column), dtype=np.bool_)
    broken[owners[_broken(values, hint)]] = True
    broken[cells[1:][cells[1:] == cells[:-1]] // width] = True
    return broken


def _differs_from_status(records: RecordColumns) -> BoolArray:
    is_scored = records.columns["status"].coded.is_one_of("scored")
    return np.asarray((is_scored != records.has_reading) | (is_scored == records.columns["reason"].known))


def _other_target(records: RecordColumns) -> BoolArray:
    target, reference = records.columns["target"], records.columns["reference"]
    differs = pc.not_equal(target.array, reference.array).fill_null(True).to_numpy(zero_copy_only=False)
    is_other: BoolArray = target.known & differs
    return is_other


def _other_outcomes(records: RecordColumns) -> BoolArray:
    """Compare the set of outcomes of each exchange with that of the one before it."""
    lists = records.exchanges["outcomes"].lists
    codes, starts, lengths = lists.values.coded.codes, lists.offsets, lists.lengths
    follows = np.flatnonzero(np.diff(records.owners) == 0) + 1
    differs = lengths[follows] != lengths[follows - 1]
    for k in np.unique(lengths[follows[~differs]]).tolist():
        of_length = np.flatnonzero((lengths[follows] == k) & ~differs)
        here, before = (
            np.sort(codes[starts[exchanges][:, None] + np.arange(k)], axis=1)
            for exchanges in (follows[of_length], follows[of_length] - 1)
        )
        differs[of_length] = (here != before).any(axis=1)
    # Lists that differ may still be equal as sets, if one repeats an outcome. There are few such, if any.
    is_other = [
        {*codes[starts[exchange] : starts[exchange + 1]]} != {*codes[starts[exchange - 1] : starts[exchange]]}
        for exchange in follows[differs].tolist()
    ]
    return _marked(records.owners[follows[differs][np.array(is_other, dtype=np.bool_)]], len(records))


def _other_number_of_answers(records: RecordColumns) -> BoolArray:
    n_answers = records.readings["answers"].lists.lengths
    return np.asarray((n_answers > 0) & (n_answers != np.diff(records.first_exchanges)))


def _no_distribution(records: RecordColumns) -> BoolArray:
    n_outcomes, shares = records.readings["outcomes"].lists.lengths, records.readings["probabilities"].lists
    sums = np.bincount(shares.owners, weights=shares.values.numbers, minlength=len(records))
    is_one = np.abs(sums - 1) <= _SUM_TOLERANCE
    return np.asarray((n_outcomes > 0) & ((n_outcomes != shares.lengths) | ~is_one))


def _words_of_distribution(record: Record) -> str:
    reading = record.reading
    assert reading is not None
    if len(reading.outcomes) != len(reading.probabilities):
        return "reading: outcomes and probabilities differ in length; give one probability per outcome"
    return f"reading.probabilities: sum to {sum(reading.probabilities)}, not to 1; renormalise them"


def _words_of_answers(record: Record) -> str:
    assert record.reading is not None
    n_answers, n_exchanges = len(record.reading.answers), len(record.exchanges)
    return f"reading: {n_answers} answers for {n_exchanges} exchanges; one per exchange, or none"


RECORD_CHECKS: tuple[RecordCheck, ...] = (
    (
        "status",
        _differs_from_status,
        lambda record: (
            f"status: '{record.status}' needs "
            f"{'a reading and no reason' if record.status == 'scored' else 'a reason and no reading'}; correct it"
        ),
    ),
    (
        "target",
        _other_target,
        lambda record: (
            f"target: {shown(record.target)} differs from reference {shown(record.reference)}; set both to the target"
        ),
    ),
    (
        "outcomes",
        _other_outcomes,
        lambda record: "exchanges: have different sets of outcomes; all exchanges of an item must share one set",
    ),
    ("answers", _other_number_of_answers, _words_of_answers),
    ("distribution", _no_distribution, _words_of_distribution),
)


def _answers_as_another_kind(fields: ExchangeColumns) -> BoolArray:
    has_options = (fields["options"].lists.lengths > 0) | (fields["option_logprobs"].lists.lengths > 0)
    # Any text beside a choice would make the hash of copied answers another one.
    has_text = fields["text"].known | fields["text_logprob"].known
    return np.where(fields["kind"].coded.is_one_of("choice"), has_text, has_options)


def _words_of_kind(exchange: Exchange) -> str:
    if exchange.kind == "choice":
        return "kind 'choice' has no text; leave text and text_logprob empty"
    return f"kind '{exchange.kind}' has no options to score; empty the lists of options"


def _lengths_differ(fields: ExchangeColumns) -> BoolArray:
    lengths = {name: fields[name].lists.lengths for name in (*_PER_OPTION, *_PER_ANSWER, "options", "option_is_bound")}
    differs = np.zeros(len(lengths["options"]), dtype=np.bool_)
    for name in _PER_OPTION:
        differs |= lengths[name] != lengths["options"]
    is_answered = fields["status"].coded.is_one_of("answered")
    for name in _PER_ANSWER:
        differs |= is_answered & (lengths[name] != lengths["options"])
    differs |= (lengths["option_is_bound"] > 0) & (lengths["option_is_bound"] != lengths["options"])
    return differs & fields["kind"].coded.is_one_of("choice")


def _words_of_lengths(exchange: Exchange) -> str:
    names = ("options", *_PER_OPTION, *_PER_ANSWER, "option_is_bound")
    counts = {name: len(getattr(exchange, name)) for name in names}
    return f"lists differ in length: {counts}; give one entry per option"


EXCHANGE_CHECKS: tuple[ExchangeCheck, ...] = (
    ("kind", _answers_as_another_kind, _words_of_kind),
    ("lengths", _lengths_differ, _words_of_lengths),
)


def broken_rows(records: RecordColumns) -> IntArray:
    """Return the indices of the records that break a rule, in order."""
    broken = breaks_a_type(records.columns, Record)
    for _, breaks, _ in RECORD_CHECKS:
        broken |= breaks(records)
    for _, breaks_exchange, _ in EXCHANGE_CHECKS:
        broken |= _marked(records.owners[breaks_exchange(records.exchanges)], len(records))
    return np.flatnonzero(broken)


def record_problems(record: Record) -> Iterator[str]:
    """Yield a line for each rule that joins several fields and that a record breaks."""
    records = RecordColumns.of([record])
    yield from (words(record) for _, breaks, words in RECORD_CHECKS if breaks(records).any())
    for _, breaks_exchange, words_of_exchange in EXCHANGE_CHECKS:
        for index in np.flatnonzero(breaks_exchange(records.exchanges)).tolist():
            yield f"exchanges[{index}]: {words_of_exchange(record.exchanges[index])}"


def _marked(indices: IntArray, n: int) -> BoolArray:
    mask = np.zeros(n, dtype=np.bool_)
    mask[indices] = True
    return mask


def _fits_no_kind(columns: Mapping[str, Column]) -> BoolArray:
    lists = columns["values"].lists
    numbers = lists.values.numbers
    n_rows = len(columns["kind"])
    lowest, highest = np.full(n_rows, np.inf), np.full(n_rows, -np.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinities are found by breaks_a_type.
        np.minimum.at(lowest, lists.owners, numbers)
        np.maximum.at(highest, lists.owners, numbers)
        sums = np.bincount(lists.owners, weights=numbers, minlength=n_rows)
        lengths = np.sqrt(np.bincount(lists.owners, weights=numbers**2, minlength=n_rows))
    is_single = lists.lengths == 1
    are_probabilities = (lists.lengths == 3) & (lowest >= 0) & (np.abs(sums - 1) <= _SCORE_TOLERANCE)
    fits = {
        "sentiment": (is_single & (lowest >= -1) & (highest <= 1)) | are_probabilities,
        "toxicity": is_single & (lowest >= 0) & (highest <= 1),
        "regard": (lowest >= -1) & (highest <= 1),
        "embedding": (lists.lengths > 1) & (np.abs(lengths - 1) <= _SCORE_TOLERANCE),
    }
    kinds = columns["kind"].coded
    is_sound: BoolArray = np.logical_or.reduce([kinds.is_one_of(kind) & fits[kind] for kind in fits])
    return ~is_sound


def _words_of_values(score: TextScore) -> str:
    values = ", ".join(f"{value:.6g}" for value in score.values[:3]) + (", ..." if len(score.values) > 3 else "")
    return f"values: {values} is not {_EXPECTED[score.kind]}, as {score.kind} needs; score the texts again"


def score_problems(score: TextScore) -> Iterator[str]:
    """Yield a line if the values of a score are none of its kind."""
    columns = columns_of(pa.Table.from_pylist([as_row(score)], schema=arrow_files.arrow_schema(TextScore)))
    if _fits_no_kind(columns).any():
        yield _words_of_values(score)


def broken_scores(columns: Mapping[str, Column]) -> BoolArray:
    """Return the mask of the scores that break a rule."""
    return breaks_a_type(columns, TextScore) | _fits_no_kind(columns)
