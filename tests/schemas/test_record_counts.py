"""Counts of records are those of a loop over them, in the order in which splits came."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns, Tally, count
from tests.schemas import examples

PLACES = [("wood", "test"), ("wood", "bias"), ("oak", "test")]


def made_records() -> list[Record]:
    sound = examples.record()
    states = [replace(sound, truncated=flag) for flag in (False, True)]
    states += [
        replace(sound, status=status, reading=None, reason="made", truncated=flag)
        for status in ("refused", "unparsed", "failed")
        for flag in (False, True)
    ]
    cells = itertools.product(PLACES, enumerate(states))
    return [
        replace(state, config=config, split=split, item_id=f"{config}-{split}-{number}-{copy}")
        for (config, split), (number, state) in cells
        for copy in range(number + 1)
    ]


def test_counts_by_split_are_those_of_a_loop() -> None:
    records = made_records()
    tally = Tally()
    for start in range(0, len(records), 11):
        tally.add(RecordColumns.of(records[start : start + 11]))
    assert [(one.part, one.split) for one in tally.coverage] == PLACES
    for one in tally.coverage:
        own = [record for record in records if (record.config, record.split) == (one.part, one.split)]
        statuses = Counter(record.status for record in own)
        found = one.counts
        assert found.items == len(own)
        assert (found.scored, found.refused, found.unparsed, found.failed) == tuple(
            statuses[status] for status in ("scored", "refused", "unparsed", "failed")
        )
        assert found.truncated == sum(record.truncated for record in own)
    assert tally.counts == count(RecordColumns.of(records))
    assert tally.counts.items == len(records)


def test_nothing_is_counted_where_there_is_nothing() -> None:
    empty = count(RecordColumns.of([]))
    assert (empty.items, empty.scored, empty.truncated) == (0, 0, 0)
