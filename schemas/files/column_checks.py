"""Finds the rows of a table that break a rule, using whole columns.

A file of records can hold a million rows, and making one row takes as long as reading hundreds from arrays. So every
rule is a mask over columns, and only the few rows that break one become objects, to word what is wrong::

    breaks_a_type      the annotations of single fields
    RECORD_CHECKS      rules that join several fields of a record ...
    EXCHANGE_CHECKS    ... or of one of its exchanges: a mask, and the words for one row
    broken_scores      all rules of text scores

A single row is checked as a table of one row, so that each rule exists only once.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from annotated_types import Ge, Le, Lt, MinLen
from pydantic import AllowInfNan, BeforeValidator, PlainSerializer, StringConstraints, WithJsonSchema

from biasboard.ground.columns import BoolArray, Column, IntArray, columns_of
from schemas.documents.base import INTEGERS, as_row, shown
from schemas.documents.record import Exchange, Record
from schemas.documents.run_files import ScorerKind, TextScore
from schemas.files import arrow_files
from schemas.files.record_columns import RecordColumns

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
