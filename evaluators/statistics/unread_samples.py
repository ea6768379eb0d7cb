"""What answers that could not be read might change where several answers to an item are read together."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasboard.ground.columns import FloatArray
from schemas.files.record_columns import RecordColumns


def unsettled_shares(records: RecordColumns, unread: AbstractSet[str]) -> FloatArray:
    """Return the share of each reading that answers which could not be read might change, shape (n,), in [0, 1].

    An answer that was refused, cut or not understood is missing among the others to the item, which have a reading
    nevertheless: a model that leaves out its wrong answers is right in all that are left. A vote is unsettled as a
    whole where the missing answers could take its majority away. Where nothing is missing, the share is 0.

    Args:
        records: The records.
        unread: Readings of an answer that say that it could not be read.
    """
    answers, outcomes = (records.readings[name].lists for name in ("answers", "outcomes"))
    n, coded = answers.lengths, answers.values.coded
    is_unread = coded.is_one_of(*unread)
    missing = np.bincount(answers.owners[is_unread], minlength=len(n))
    n_codes = len(coded.texts) + 1
    cells, votes = np.unique((answers.owners * n_codes + coded.codes)[~is_unread], return_counts=True)
    most = np.zeros(len(n), dtype=np.int64)
    np.maximum.at(most, cells // n_codes, votes)
    may_turn = (outcomes.lengths > 0) & (missing > 0) & (2 * most <= n)
    return np.where(may_turn, 1.0, missing / np.maximum(n, 1))


def settled(records: RecordColumns, unread: AbstractSet[str]) -> RecordColumns:
    """Return the records without the readings that answers which could not be read might turn: those are missing."""
    is_turned = unsettled_shares(records, unread) == 1.0
    if not is_turned.any():
        return records
    table, mask = records.table, pa.array(is_turned)
    for name, value in (("status", "unparsed"), ("reading", None)):
        field = table.schema.field(name)
        kept = pc.if_else(mask, pa.scalar(value, type=field.type), table[name])
        table = table.set_column(table.schema.get_field_index(name), field, kept)
    return RecordColumns(table, records.first_row)


class UnsettledShares:
    """How far the readings of many records rest on answers that could not be read."""

    def __init__(self, unread: AbstractSet[str]) -> None:
        """Start with no records."""
        self._unread = unread
        self._shares: list[FloatArray] = [np.empty(0)]

    def add(self, records: RecordColumns) -> None:
        """Add the records with a reading."""
        self._shares.append(unsettled_shares(records, self._unread)[records.has_reading])

    @property
    def may_turn(self) -> bool:
        """True if a reading is unsettled as a whole."""
        return bool((np.concatenate(self._shares) == 1.0).any())

    def mean(self, *, with_turned: bool) -> float:
        """Return the mean share, perhaps without the readings that are unsettled as a whole; 0 if there are none."""
        shares = np.concatenate(self._shares)
        shares = shares[(shares < 1.0) | with_turned]
        return float(shares.mean()) if len(shares) else 0.0
