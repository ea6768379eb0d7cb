"""Records as columns: the same as rows, no fault of a row stays unseen, and counts are those of a loop."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from biasboard.ground.errors import DataError
from schemas.documents.base import as_row
from schemas.documents.record import Exchange, Reading, Record
from schemas.files import arrow_files, contract, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.files.record_columns import (
    EXCHANGE_CHECKS,
    RECORD_CHECKS,
    RecordColumns,
    Tally,
    broken_rows,
    items_sha256,
    requests_sha256,
)
from schemas.files.record_files import read_parts, writing_records
from tests.record_files import count, read_records, write_records
from tests.schemas import examples

CHOICE = replace(
    examples.exchange(), option_end_logprobs=(-1.0, None), option_token_counts=(1, None), option_is_bound=(False, True)
)
GENERATED = replace(examples.generated_exchange(), sample=1)
SCORED = replace(
    examples.record("one"),
    exchanges=(CHOICE, replace(CHOICE, outcomes=("nurse", "mechanic"))),
    reading=Reading(outcomes=("nurse", "mechanic"), probabilities=(0.75, 0.25), answers=()),
)
READ = Reading(outcomes=(), probabilities=(), answers=("she", "none"))
WRITTEN = replace(SCORED, item_id="two", target=None, reference=None, pair_id=None, groups={}, reading=READ)
RECORDS = [SCORED, replace(WRITTEN, exchanges=(GENERATED, GENERATED)), examples.failed_record("three")]
ODD: dict[pa.DataType, tuple[Any, ...]] = {
    pa.string(): ("", "scored", "refused", "failed", "generate", "nurse", "a b", examples.HASH + "\n"),
    pa.int64(): (-1, 7),
    pa.float64(): (0.5, 1.5, -0.25, float("nan"), float("inf"), float("-inf")),
    pa.bool_(): (True, False),
}


def problems_of(record: Record) -> list[str]:
    return list(contract.converted(contract.dump(record), Record)[1])


def changes(value: Any, kind: pa.DataType) -> Iterator[Any]:
    """Every value that differs from the given one in a single place."""
    if pa.types.is_struct(kind):
        for field in kind if value is not None else ():
            for other in changed(value[field.name], field):
                yield {**value, field.name: other}
    elif pa.types.is_map(kind):
        yield from ({}, {"": ""}, {**value, "more": ""})
    elif pa.types.is_list(kind):
        for place, one in enumerate(value):
            for other in changed(one, kind.value_field):
                yield [*value[:place], other, *value[place + 1 :]]
            yield [*value[:place], *value[place + 1 :]]
            yield [*value, one]
    else:
        yield from (odd for odd in ODD[kind] if odd != value)


def changed(value: Any, field: pa.Field) -> Iterator[Any]:
    yield from changes(value, field.type)
    if field.nullable and value is not None:
        yield None


@pytest.mark.slow
def test_columns_and_single_rows_give_one_verdict() -> None:
    rows = [
        {**copy.deepcopy(as_row(record)), field.name: other}
        for record in RECORDS
        for field in arrow_schema(Record)
        for other in changed(as_row(record)[field.name], field)
    ]
    alone = [place for place, row in enumerate(rows) if list(contract.from_row(row, Record)[1])]
    together = broken_rows(RecordColumns(pa.Table.from_pylist(rows, schema=arrow_schema(Record)))).tolist()
    assert alone == together
    assert 150 < len(alone) < len(rows) - 30


def test_each_rule_over_columns_is_broken_by_a_row_that_breaks_no_other() -> None:
    assert [problem for record in RECORDS for problem in problems_of(record)] == []
    assert broken_rows(RecordColumns.of(RECORDS)).tolist() == []
    shares = Reading(outcomes=("nurse", "mechanic"), probabilities=(0.75, 0.24), answers=())
    broken = {
        "status": replace(SCORED, status="failed"),
        "target": replace(SCORED, target="driver"),
        "outcomes": replace(SCORED, exchanges=(CHOICE, replace(CHOICE, outcomes=("nurse", "driver")))),
        "answers": replace(SCORED, reading=replace(READ, answers=("she",))),
        "distribution": replace(SCORED, reading=shares),
        "kind": replace(SCORED, exchanges=(replace(CHOICE, kind="generate"),)),
        "lengths": replace(SCORED, exchanges=(replace(CHOICE, option_token_counts=(1,)),)),
    }
    assert list(broken) == [*(name for name, *_ in RECORD_CHECKS), *(name for name, *_ in EXCHANGE_CHECKS)]
    lines = {name: problems_of(record) for name, record in broken.items()}
    assert {name: len(found) for name, found in lines.items()} == dict.fromkeys(broken, 1)
    assert lines["distribution"] == ["reading.probabilities: sum to 0.99, not to 1; renormalise them"]
    assert lines["kind"] == ["exchanges[0]: kind 'generate' has no options to score; empty the lists of options"]
    assert len(problems_of(replace(SCORED, reference=None))) == 1


@pytest.mark.parametrize("fields", [{"text": "x"}, {"text": ""}, {"text_logprob": -1.0}])
def test_a_choice_has_no_text(fields: dict[str, Any]) -> None:
    assert problems_of(replace(SCORED, exchanges=(replace(CHOICE, **fields),))) == [
        "exchanges[0]: kind 'choice' has no text; leave text and text_logprob empty"
    ]


def test_a_group_that_stands_twice_is_found() -> None:
    table = RecordColumns.of(RECORDS).table
    twice = pa.array([[("a", "1"), ("a", "2")], [], []], type=table.schema.field("groups").type)
    place = table.schema.get_field_index("groups")
    records = RecordColumns(table.set_column(place, table.schema.field("groups"), twice))
    assert broken_rows(records).tolist() == [0]


def test_columns_are_a_sequence_of_the_same_records(tmp_path: Path) -> None:
    write_records(tmp_path / "columns.parquet", RECORDS)
    row_files.write_rows(tmp_path / "rows.parquet", RECORDS, Record)
    assert (tmp_path / "columns.parquet").read_bytes() == (tmp_path / "rows.parquet").read_bytes()
    records = read_records(tmp_path / "rows.parquet")
    assert (records[1], records[-1]) == (RECORDS[1], RECORDS[-1])
    assert list(records) == RECORDS == row_files.read_rows(tmp_path / "columns.parquet", Record)
    assert records == RecordColumns.of(RECORDS)
    assert records != RECORDS[:2]
    assert (len(records), records[1:]) == (3, RECORDS[1:])


def test_a_faulty_row_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    wrong = replace(RECORDS[1], reading=replace(READ, answers=("she",)))
    with pytest.raises(DataError, match=r"row 2: reading: 1 answers for 2 exchanges"):
        write_records(tmp_path / "records.parquet", [RECORDS[0], wrong])
    assert list(tmp_path.iterdir()) == []


def test_some_fields_are_replaced_and_the_others_stay() -> None:
    texts = [f"text {number}" for number in range(5)]
    readings = [None, {"outcomes": [], "probabilities": [], "answers": ["a", "b"]}, None]
    other = RecordColumns.of(RECORDS).replaced({"reading": readings}, {"text": texts})
    assert [exchange.text for record in other for exchange in record.exchanges] == texts
    assert [None if one.reading is None else one.reading.answers for one in other] == [None, ("a", "b"), None]
    before = [None if one.reading is None else as_row(one)["reading"] for one in RECORDS]
    own = [exchange.text for record in RECORDS for exchange in record.exchanges]
    assert list(other.replaced({"reading": before}, {"text": own})) == RECORDS


def of_exchanges(*exchanges: Exchange) -> RecordColumns:
    return RecordColumns.of([replace(RECORDS[1], exchanges=exchanges)])


def test_hashes_follow_every_request_and_item_also_beyond_the_exact_floats(tmp_path: Path) -> None:
    large = replace(GENERATED, sample=2**60 + 1, n_prompt_tokens=2**60 + 1)
    records = of_exchanges(large, large)
    write_records(tmp_path / "records.parquet", records)
    assert read_records(tmp_path / "records.parquet") == records
    none, zero, worded = (replace(large, **fields) for fields in ({"sample": None}, {"sample": 0}, {"prompt": "Who?"}))
    others = [(large, replace(large, sample=2**60 + 2)), (none, none), (zero, zero), (worded, worded)]
    hashes = {requests_sha256(of_exchanges(*pair)) for pair in ((large, large), *others)}
    assert len(hashes) == 5
    names = ("item_id", "split", "cluster", "pair_id", "target", "reference")
    others_of: list[Any] = [{name: "other"} for name in names]
    items = [SCORED, *(replace(SCORED, **of) for of in others_of), replace(SCORED, groups={"a": "b"})]
    assert len({items_sha256(RecordColumns.of([item])) for item in items}) == len(items)


def test_sets_of_outcomes_are_compared_whatever_their_length_and_order() -> None:
    texts = tuple(f"outcome {number}" for number in range(1000))
    reading = Reading(outcomes=texts, probabilities=(1 / 1000,) * 1000, answers=())
    pairs = {
        (texts, texts[::-1]): False,
        (texts, (*texts[:-1], "other")): True,
        (texts, texts[:-1]): True,
        (("a", "a", "b"), ("b", "b", "a")): False,
        (("a", "b"), ("a", "a")): True,
        ((), ("a",)): True,
    }
    for pair, differ in pairs.items():
        exchanges = tuple(replace(GENERATED, outcomes=outcomes) for outcomes in pair)
        records = RecordColumns.of([SCORED, replace(SCORED, exchanges=exchanges, reading=reading)])
        assert (broken_rows(records).tolist() == [1]) == differ


def test_rows_that_must_be_in_memory_together_are_limited_whatever_the_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.parquet"
    with writing_records(path) as add:
        n_bytes = sum(add(RECORDS).table.nbytes for _ in range(3))
    monkeypatch.setattr(arrow_files, "MOST_BYTES", n_bytes - 1)
    with pytest.raises(DataError, match="GiB of memory"):
        list(read_parts(path))
    monkeypatch.setattr(arrow_files, "MOST_BYTES", n_bytes + 1000)
    assert [len(part) for part in read_parts(path)] == [3 * len(RECORDS)]


def test_counts_by_split_are_those_of_a_loop_in_the_order_in_which_splits_came() -> None:
    places = [("wood", "test"), ("wood", "bias"), ("oak", "test")]
    missed = [
        replace(SCORED, status=status, reading=None, reason="made") for status in ("refused", "unparsed", "failed")
    ]
    states = [replace(one, truncated=flag) for one in (SCORED, *missed) for flag in (False, True)]
    records = [
        replace(state, config=config, split=split, item_id=f"{config}-{split}-{number}-{copy}")
        for (config, split), (number, state) in itertools.product(places, enumerate(states))
        for copy in range(number + 1)
    ]
    tally = Tally()
    for start in range(0, len(records), 11):
        tally.add(RecordColumns.of(records[start : start + 11]))
    assert [(one.part, one.split) for one in tally.coverage] == places
    for one in tally.coverage:
        own = [record for record in records if (record.config, record.split) == (one.part, one.split)]
        statuses = Counter(str(record.status) for record in own)
        n_truncated = sum(record.truncated for record in own)
        assert as_row(one.counts) == dict(statuses) | {"items": len(own), "truncated": n_truncated}
    assert tally.counts == count(RecordColumns.of(records))
    assert tally.counts.items == len(records)
    assert set(as_row(count(RecordColumns.of([]))).values()) == {0}
