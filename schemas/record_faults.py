"""Finds records that may be invalid by looking at whole columns.

The rules are those of ``record.schema.json`` and :mod:`schemas.checks`, which decide: this module only tells which rows
they need to look at. A row that breaks a rule is always among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import numpy as np
import pyarrow.compute as pc

from schemas.columns import BoolArray, Column, IntArray, Lists
from schemas.record import ExchangeStatus, RecordStatus, RequestKind
from schemas.record_columns import RecordColumns

_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
_SHA256 = "^[0-9a-f]{64}$"
_SUM_TOLERANCE = 0.9e-9
"""Largest deviation of a sum from 1 that is certainly none by the rule, whatever the order of the sum."""
_MANY = 64
"""Length above which a list is looked at by itself: a sum of more numbers may round by more than the tolerance, and
sets of more texts are slow to compare as arrays."""
_PER_OPTION = ("options", "option_byte_counts")
_PER_ANSWER = ("option_logprobs", "option_end_logprobs", "option_token_counts")


def doubtful_rows(records: RecordColumns) -> IntArray:
    """Return the indices of the records that may break a rule, in order."""
    columns = records.columns
    found: BoolArray = ~columns["config"].matches(_NAME) | ~columns["split"].matches(_NAME)
    for name in ("item_id", "cluster"):
        found |= columns[name].text_lengths == 0
    for name in ("reason", "pair_id", "target", "reference"):
        found |= _is_empty(columns[name])
    for name in ("status", "truncated", "groups", "exchanges"):
        found |= ~columns[name].known
    found |= ~columns["status"].coded.is_one_of(*get_args(RecordStatus))
    is_scored = columns["status"].coded.is_one_of("scored")
    found |= (is_scored != records.has_reading) | (is_scored == columns["reason"].known)
    target, reference = columns["target"].array, columns["reference"].array
    differs = pc.not_equal(target, reference).fill_null(True).to_numpy(zero_copy_only=False)
    found |= columns["target"].known & differs
    found |= _repeated_groups(columns["groups"], len(records))
    found[records.owners[_doubtful_exchanges(records.exchanges)]] = True
    found |= _other_outcomes(records)
    found |= _doubtful_readings(records)
    return np.flatnonzero(found)


def _is_empty(column: Column) -> BoolArray:
    found: BoolArray = column.known & (column.text_lengths == 0)
    return found


def _repeated_groups(groups: Column, n: int) -> BoolArray:
    owners, keys, values = groups.entries
    found = np.zeros(n, dtype=np.bool_)
    found[owners[~values.known]] = True
    cells, counts = np.unique(owners * (len(keys.coded.texts) + 1) + keys.coded.codes, return_counts=True)
    found[cells[counts > 1] // (len(keys.coded.texts) + 1)] = True
    return found


def _doubtful_exchanges(fields: Mapping[str, Column]) -> BoolArray:
    status, kind = fields["status"].coded, fields["kind"].coded
    found = ~status.is_one_of(*get_args(ExchangeStatus)) | ~kind.is_one_of(*get_args(RequestKind))
    found |= ~fields["request_sha256"].matches(_SHA256)
    found |= _is_empty(fields["finish_reason"]) | _is_empty(fields["error"])
    for name in ("n_moved_tokens", "sample", "n_prompt_tokens", "n_completion_tokens"):
        found |= fields[name].numbers < 0
    lists = {name: fields[name].lists for name in (*_PER_OPTION, *_PER_ANSWER, "outcomes", "option_is_bound")}
    _mark(found, lists["outcomes"], lists["outcomes"].values.text_lengths == 0)
    for name in ("option_token_counts", "option_byte_counts"):
        _mark(found, lists[name], lists[name].values.numbers < 0)
    for name in ("option_logprobs", "option_end_logprobs"):
        values = lists[name].values
        # A comparison with NaN is false; a value that is unknown is nan too, but known to be so.
        _mark(found, lists[name], values.known & ~(values.numbers <= 0))
    is_choice, is_answered = kind.is_one_of("choice"), status.is_one_of("answered")
    n_options = lists["options"].lengths
    found |= ~is_choice & ((n_options > 0) | (lists["option_logprobs"].lengths > 0))
    for name in ("outcomes", "option_byte_counts"):
        found |= is_choice & (lists[name].lengths != n_options)
    for name in _PER_ANSWER:
        found |= is_choice & is_answered & (lists[name].lengths != n_options)
    n_bounds = lists["option_is_bound"].lengths
    found |= is_choice & (n_bounds > 0) & (n_bounds != n_options)
    return found


def _mark(found: BoolArray, lists: Lists, is_doubtful: BoolArray) -> None:
    """Set the mask of rows in which a value of a list is in doubt."""
    found[lists.owners[is_doubtful]] = True


def _other_outcomes(records: RecordColumns) -> BoolArray:
    """Return the mask of the records whose exchanges may have different sets of outcomes."""
    outcomes = records.exchanges["outcomes"].lists
    lengths, owners = outcomes.lengths, records.owners
    found = np.zeros(len(records), dtype=np.bool_)
    sets = np.full(len(lengths), -1)
    is_compared = np.diff(records.first_exchanges)[owners] > 1
    found[owners[is_compared & (lengths > _MANY)]] = True
    for k in np.unique(lengths[is_compared & (lengths > 0) & (lengths <= _MANY)]).tolist():
        places = np.flatnonzero(is_compared & (lengths == k))
        codes = np.sort(outcomes.values.coded.codes[outcomes.offsets[places][:, None] + np.arange(k)], axis=1)
        # A set with a text that stands twice may equal a smaller one.
        found[owners[places[(np.diff(codes, axis=1) == 0).any(axis=1)]]] = True
        sets[places] = sets.max() + 1 + np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
    found[owners[1:][(owners[1:] == owners[:-1]) & (sets[1:] != sets[:-1])]] = True
    return found


def _doubtful_readings(records: RecordColumns) -> BoolArray:
    readings = records.readings
    outcomes, shares, answers = (readings[name].lists for name in ("outcomes", "probabilities", "answers"))
    found: BoolArray = (answers.lengths > 0) & (answers.lengths != np.diff(records.first_exchanges))
    _mark(found, outcomes, outcomes.values.text_lengths == 0)
    values = shares.values.numbers
    _mark(found, shares, ~((values >= 0) & (values <= 1)))
    sums = np.bincount(shares.owners, weights=values, minlength=len(records))
    found |= shares.lengths > _MANY
    has_outcomes = outcomes.lengths > 0
    found |= has_outcomes & ((outcomes.lengths != shares.lengths) | ~(np.abs(sums - 1) <= _SUM_TOLERANCE))
    return found
