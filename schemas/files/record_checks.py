"""The rules of records that join several fields, over whole columns.

A file of records can hold a million rows, so that all of them are looked at together. What is wrong with the few that
break a rule is then said one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from biasboard.ground.columns import BoolArray, Column, IntArray
from schemas.documents.base import shown
from schemas.documents.record import Exchange, Record
from schemas.files.column_checks import ColumnCheck, breaks_a_type
from schemas.files.record_columns import RecordColumns

_SUM_TOLERANCE = 1e-9
"""Largest deviation of a sum of probabilities from 1: each is rounded to 1e-16, and there are up to a thousand."""
_PER_OPTION = ("outcomes", "option_byte_counts")
_PER_ANSWER = ("option_logprobs", "option_end_logprobs", "option_token_counts")

ExchangeColumns: TypeAlias = Mapping[str, Column]


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
    # Lists that differ may still be one set, where an outcome stands twice. There are few such, if any.
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


def _words_of_status(record: Record) -> str:
    need = "a reading and no reason" if record.status == "scored" else "a reason and no reading"
    return f"status: '{record.status}' needs {need}; correct it"


def _words_of_answers(record: Record) -> str:
    assert record.reading is not None
    n_answers, n_exchanges = len(record.reading.answers), len(record.exchanges)
    return f"reading: {n_answers} answers for {n_exchanges} exchanges; one per exchange, or none"


RECORD_CHECKS: tuple[ColumnCheck[RecordColumns, Record], ...] = (
    ColumnCheck("status", _differs_from_status, _words_of_status),
    ColumnCheck(
        "target",
        _other_target,
        lambda record: (
            f"target: {shown(record.target)} differs from reference {shown(record.reference)}; set both to the target"
        ),
    ),
    ColumnCheck(
        "outcomes",
        _other_outcomes,
        lambda record: "exchanges: have different sets of outcomes; all exchanges of an item must share one set",
    ),
    ColumnCheck("answers", _other_number_of_answers, _words_of_answers),
    ColumnCheck("distribution", _no_distribution, _words_of_distribution),
)


def _scores_options_of_text(fields: ExchangeColumns) -> BoolArray:
    has_options = (fields["options"].lists.lengths > 0) | (fields["option_logprobs"].lists.lengths > 0)
    return ~fields["kind"].coded.is_one_of("choice") & has_options


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


EXCHANGE_CHECKS: tuple[ColumnCheck[ExchangeColumns, Exchange], ...] = (
    ColumnCheck(
        "text",
        _scores_options_of_text,
        lambda exchange: f"kind '{exchange.kind}' has no options to score; empty the lists of options",
    ),
    ColumnCheck("lengths", _lengths_differ, _words_of_lengths),
)


def broken_rows(records: RecordColumns) -> IntArray:
    """Return the indices of the records that break a rule, in order."""
    broken = breaks_a_type(records.columns, Record)
    for check in RECORD_CHECKS:
        broken |= check.broken(records)
    for exchange_check in EXCHANGE_CHECKS:
        broken |= _marked(records.owners[exchange_check.broken(records.exchanges)], len(records))
    return np.flatnonzero(broken)


def problems_of(record: Record) -> Iterator[str]:
    """Yield a line for each rule that joins several fields and that a record breaks."""
    records = RecordColumns.of([record])
    for check in RECORD_CHECKS:
        if check.broken(records).any():
            yield check.words(record)
    for exchange_check in EXCHANGE_CHECKS:
        for index in np.flatnonzero(exchange_check.broken(records.exchanges)).tolist():
            yield f"exchanges[{index}]: {exchange_check.words(record.exchanges[index])}"


def _marked(indices: IntArray, n: int) -> BoolArray:
    mask = np.zeros(n, dtype=np.bool_)
    mask[indices] = True
    return mask
