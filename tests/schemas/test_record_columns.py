"""Records as columns: the same as rows, and no fault of a row stays unseen."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from biasboard.ground.errors import DataError
from schemas.documents.base import as_row
from schemas.documents.record import Reading, Record
from schemas.files import arrow_files, contract, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.files.column_checks import EXCHANGE_CHECKS, RECORD_CHECKS, broken_rows
from schemas.files.record_columns import RecordColumns
from schemas.files.record_files import read_parts, read_records, write_records, writing_records
from schemas.files.record_hashes import requests_sha256
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
RECORDS = [
    SCORED,
    replace(
        SCORED,
        item_id="two",
        target=None,
        reference=None,
        pair_id=None,
        groups={},
        exchanges=(GENERATED, GENERATED),
        reading=Reading(outcomes=(), probabilities=(), answers=("she", "none")),
    ),
    examples.failed_record("three"),
]
ODD: dict[pa.DataType, tuple[Any, ...]] = {
    pa.string(): ("", "scored", "refused", "failed", "generate", "nurse", "a b", examples.HASH + "\n"),
    pa.int64(): (-1, 7),
    pa.float64(): (0.5, 1.5, -0.25, float("nan"), float("inf"), float("-inf")),
    pa.bool_(): (True, False),
}


def changes(value: Any, kind: pa.DataType) -> Iterator[Any]:
    """Every value that differs from the given one in a single place."""
    if pa.types.is_struct(kind):
        for field in kind:
            if value is not None:
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


def mutants() -> Iterator[dict[str, Any]]:
    schema = arrow_schema(Record)
    for record in RECORDS:
        row = as_row(record)
        for field in schema:
            for other in changed(row[field.name], field):
                yield {**copy.deepcopy(row), field.name: other}


def test_sound_records_break_no_rule() -> None:
    assert [problem for record in RECORDS for problem in contract.errors(contract.dump(record), Record)] == []
    assert broken_rows(RecordColumns.of(RECORDS)).tolist() == []


@pytest.mark.slow
def test_columns_and_single_rows_give_one_verdict() -> None:
    rows = list(mutants())
    alone = [place for place, row in enumerate(rows) if list(contract.from_row(row, Record)[1])]
    together = broken_rows(RecordColumns(pa.Table.from_pylist(rows, schema=arrow_schema(Record)))).tolist()
    assert alone == together
    assert 150 < len(alone) < len(rows) - 30


def test_each_rule_over_columns_is_broken_by_a_row_that_breaks_no_other() -> None:
    other = replace(CHOICE, outcomes=("nurse", "driver"))
    broken = {
        "status": replace(SCORED, status="failed"),
        "target": replace(SCORED, target="driver"),
        "outcomes": replace(SCORED, exchanges=(CHOICE, other)),
        "answers": replace(SCORED, reading=Reading(outcomes=(), probabilities=(), answers=("she",))),
        "distribution": replace(
            SCORED, reading=Reading(outcomes=("nurse", "mechanic"), probabilities=(0.75, 0.24), answers=())
        ),
        "kind": replace(SCORED, exchanges=(replace(CHOICE, kind="generate"),)),
        "lengths": replace(SCORED, exchanges=(replace(CHOICE, option_token_counts=(1,)),)),
    }
    assert list(broken) == [*(check.name for check in RECORD_CHECKS), *(check.name for check in EXCHANGE_CHECKS)]
    lines = {name: list(contract.errors(contract.dump(record), Record)) for name, record in broken.items()}
    assert {name: len(found) for name, found in lines.items()} == dict.fromkeys(broken, 1)
    assert lines["distribution"] == ["reading.probabilities: sum to 0.99, not to 1; renormalise them"]
    assert lines["kind"] == [
        "exchanges[0]: kind 'generate' has no options to score; empty the lists of options",
    ]


@pytest.mark.parametrize("fields", [{"text": "x"}, {"text": ""}, {"text_logprob": -1.0}])
def test_a_choice_has_no_text(fields: dict[str, Any]) -> None:
    record = replace(SCORED, exchanges=(replace(CHOICE, **fields),))
    assert list(contract.errors(contract.dump(record), Record)) == [
        "exchanges[0]: kind 'choice' has no text; leave text and text_logprob empty"
    ]


def test_a_group_that_stands_twice_is_found(tmp_path: Path) -> None:
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
    assert records[1] == RECORDS[1]
    assert records[-1] == RECORDS[-1]
    assert list(records) == RECORDS == row_files.read_rows(tmp_path / "columns.parquet", Record)
    assert records == RecordColumns.of(RECORDS)
    assert records != RECORDS[:2]
    assert (len(records), records[1:]) == (3, RECORDS[1:])


def test_a_faulty_row_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    wrong = replace(RECORDS[1], reading=Reading(outcomes=(), probabilities=(), answers=("she",)))
    with pytest.raises(DataError, match=r"row 2: reading: 1 answers for 2 exchanges"):
        write_records(tmp_path / "records.parquet", [RECORDS[0], wrong])
    assert list(tmp_path.iterdir()) == []


def test_some_fields_are_replaced_and_the_others_stay() -> None:
    records = RecordColumns.of(RECORDS)
    texts = [f"text {number}" for number in range(5)]
    readings = [None, {"outcomes": [], "probabilities": [], "answers": ["a", "b"]}, None]
    other = records.replaced({"reading": readings}, {"text": texts})
    assert [exchange.text for record in other for exchange in record.exchanges] == texts
    assert [None if one.reading is None else one.reading.answers for one in other] == [None, ("a", "b"), None]
    back = other.replaced(
        {"reading": [None if one.reading is None else as_row(one)["reading"] for one in RECORDS]},
        {"text": [exchange.text for record in RECORDS for exchange in record.exchanges]},
    )
    assert list(back) == RECORDS


def test_large_integers_are_as_valid_as_in_rows(tmp_path: Path) -> None:
    large = 2**60 + 1
    many = [
        replace(
            RECORDS[1], exchanges=tuple(replace(one, sample=large, n_prompt_tokens=large) for one in (GENERATED,) * 2)
        )
    ]
    write_records(tmp_path / "records.parquet", many)
    records = read_records(tmp_path / "records.parquet")
    assert list(records) == many
    others = [replace(many[0], exchanges=(many[0].exchanges[0], replace(many[0].exchanges[1], sample=large + 1)))]
    assert requests_sha256(records) != requests_sha256(RecordColumns.of(others))
    without = [replace(many[0], exchanges=tuple(replace(one, sample=None) for one in many[0].exchanges))]
    zero = [replace(many[0], exchanges=tuple(replace(one, sample=0) for one in many[0].exchanges))]
    assert requests_sha256(RecordColumns.of(without)) != requests_sha256(RecordColumns.of(zero))
    reworded = [replace(many[0], exchanges=tuple(replace(one, prompt="Who?") for one in many[0].exchanges))]
    assert requests_sha256(records) != requests_sha256(RecordColumns.of(reworded))


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
    for (first, second), differ in pairs.items():
        exchanges = tuple(replace(GENERATED, outcomes=outcomes) for outcomes in (first, second))
        record = replace(SCORED, exchanges=exchanges, reading=reading)
        assert (broken_rows(RecordColumns.of([SCORED, record])).tolist() == [1]) == differ


def test_rows_that_must_be_in_memory_together_are_limited_whatever_the_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.parquet"
    with writing_records(path) as add:
        n_bytes = [add(RECORDS).table.nbytes for _ in range(3)]
    monkeypatch.setattr(arrow_files, "MOST_BYTES", sum(n_bytes) - 1)
    with pytest.raises(DataError, match="GiB of memory"):
        list(read_parts(path))
    monkeypatch.setattr(arrow_files, "MOST_BYTES", sum(n_bytes) + 1000)
    assert [len(part) for part in read_parts(path)] == [3 * len(RECORDS)]
