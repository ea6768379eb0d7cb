"""Records as columns: the same as rows, no fault of a row stays unseen, and counts are those of a loop."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from builders.dataset.inputs import read_files
from builders.gifi.published import variant_rows
from builders.gifi.tango import frames
from schemas.documents.base import Document, as_row
from schemas.documents.dataset import Reject
from schemas.documents.record import Exchange, Reading, Record
from schemas.files import arrow_files, contract, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.files.json_answers import NoJsonError, find_json
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
from schemas.folders import dataset_folder
from schemas.folders.dataset_folder import read_manifest
from schemas.items.coreference import CoreferenceItem
from tests.commands import run
from tests.evaluators.made_data import made_items, write_dataset
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
    for more in ({"text": "x"}, {"text": ""}, {"text_logprob": -1.0}):
        assert problems_of(replace(SCORED, exchanges=(replace(CHOICE, **more),))) == [
            "exchanges[0]: kind 'choice' has no text; leave text and text_logprob empty"
        ]
    table = RecordColumns.of(RECORDS).table
    twice = pa.array([[("a", "1"), ("a", "2")], [], []], type=table.schema.field("groups").type)
    place = table.schema.get_field_index("groups")
    records = RecordColumns(table.set_column(place, table.schema.field("groups"), twice))
    assert broken_rows(records).tolist() == [0]


def test_columns_are_a_sequence_of_the_same_records_of_which_some_fields_can_be_replaced(tmp_path: Path) -> None:
    write_records(tmp_path / "columns.parquet", RECORDS)
    row_files.write_rows(tmp_path / "rows.parquet", RECORDS, Record)
    assert (tmp_path / "columns.parquet").read_bytes() == (tmp_path / "rows.parquet").read_bytes()
    records = read_records(tmp_path / "rows.parquet")
    assert (records[1], records[-1]) == (RECORDS[1], RECORDS[-1])
    assert list(records) == RECORDS == row_files.read_rows(tmp_path / "columns.parquet", Record)
    assert records == RecordColumns.of(RECORDS)
    assert records != RECORDS[:2]
    assert (len(records), records[1:]) == (3, RECORDS[1:])
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


AMBIGUOUS = replace(examples.item(), referent=None, stereotype=None, pronoun_case=None, flags=("odd",))


@pytest.mark.parametrize(
    ("rows", "row_type"),
    [
        ([examples.record(), examples.failed_record()], Record),
        ([examples.item("she"), AMBIGUOUS], CoreferenceItem),
        ([], Reject),
    ],
)
def test_rows_come_back_as_they_were_and_give_the_same_bytes(
    rows: list[Document], row_type: type[Document], tmp_path: Path
) -> None:
    for name, of_file in (("first", rows), ("second", rows), ("turned", rows[::-1])):
        row_files.write_rows(tmp_path / name, of_file, row_type)
        assert row_files.read_rows(tmp_path / name, row_type) == of_file
    first, second, turned = ((tmp_path / name).read_bytes() for name in ("first", "second", "turned"))
    assert first == second
    assert (first == turned) == (not rows)


def test_some_rows_are_the_first_and_every_so_manieth_after_it(tmp_path: Path) -> None:
    rows = [replace(examples.item(), item_id=f"pair-1-he-{number}") for number in range(5)]
    row_files.write_rows(tmp_path / "items", rows, CoreferenceItem)
    assert contract.sound(row_files.checked_rows(tmp_path / "items", CoreferenceItem, step=2)) == rows[::2]


def test_columns_have_the_types_of_the_dataclass() -> None:
    schema = arrow_schema(CoreferenceItem)
    assert schema.names == [field.name for field in fields(CoreferenceItem)]
    assert schema.field("pronoun_start").type == pa.int64()
    assert (schema.field("sentence").nullable, schema.field("referent").nullable) == (False, True)
    assert pa.types.is_list(schema.field("occupations").type)
    assert pa.types.is_map(arrow_schema(Record).field("groups").type)


def test_the_content_hash_is_of_the_canonical_json_lines_and_never_changes() -> None:
    digest = hashlib.sha256()
    for item in examples.items():
        digest.update(json.dumps(asdict(item), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
        digest.update(b"\n")
    sha256 = "b6577dbe2c6e5f25a76c29749de60f6eb1da9f7f97fe5e495fa294940bea35d8"
    assert row_files.content_sha256(examples.items()) == digest.hexdigest() == sha256


@pytest.mark.parametrize("content", [b"", b"PAR1", b"item_id,sentence\n1,Hello\n", None])
def test_a_file_of_another_kind_or_a_cut_or_missing_one_is_one_line(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    with pytest.raises(DataError, match=r"items\.parquet: no such file; build the dataset"):
        row_files.read_rows(path, CoreferenceItem)
    row_files.write_rows(path, examples.items(), CoreferenceItem)
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    with pytest.raises(DataError, match=r"items\.parquet: not a readable parquet file \(truncated\?\): ") as caught:
        row_files.read_rows(path, CoreferenceItem)
    assert "\n" not in str(caught.value)


def test_an_unsound_row_is_neither_written_nor_read(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    with pytest.raises(DataError, match=r"row 2: referent: 'pilot' is not one of the item's occupations; have: mech"):
        row_files.write_rows(path, [examples.item(), replace(examples.item(), referent="pilot")], CoreferenceItem)
    wrong = replace(RECORDS[1], reading=replace(READ, answers=("she",)))
    with pytest.raises(DataError, match=r"row 2: reading: 1 answers for 2 exchanges"):
        write_records(tmp_path / "records.parquet", [RECORDS[0], wrong])
    assert list(tmp_path.iterdir()) == []
    row_files.write_rows(path, examples.items(), CoreferenceItem)
    examples.replace_rows(path, CoreferenceItem, {3: {"pronoun_gender": "neuter"}})
    with pytest.raises(DataError, match=r"items\.parquet: row 3: pronoun_gender: 'neuter' is not allowed; have: masc"):
        row_files.read_rows(path, CoreferenceItem)


@pytest.mark.parametrize("n_items", [2, 5])
def test_items_that_the_manifest_does_not_list_are_noticed(n_items: int, tmp_path: Path) -> None:
    made = examples.write_dataset(tmp_path)
    assert dataset_folder.read_manifest(tmp_path) == made
    assert dataset_folder.read_split(tmp_path, made.splits[0]) == examples.items()
    row_files.write_rows(tmp_path / examples.SPLIT_PATH, [*examples.items(), AMBIGUOUS][:n_items], CoreferenceItem)
    with pytest.raises(DataError, match=rf"{n_items} rows, dataset\.json says 4; build the dataset again"):
        dataset_folder.read_split(tmp_path, made.splits[0])
    other = replace(made, splits=(replace(made.splits[0], item_shape="essay"),))
    strict_json.write(tmp_path / "dataset.json", contract.dump(other))
    with pytest.raises(DataError, match=r"item_shape 'essay' is unknown; have: assignment, coreference"):
        dataset_folder.read_split(tmp_path, dataset_folder.read_manifest(tmp_path).splits[0])


VALUE = {"sentences": [{"before": "The {baker} ", "case": "nominative", "after": " [left]."}]}
BARE = json.dumps(VALUE)


@pytest.mark.parametrize(
    "text",
    [
        f"\n\n{BARE}\n",
        f"```json\n{BARE}\n```",
        f"Here you are:\n```\n{json.dumps(VALUE, indent=2)}\n```\nAnything else?",
        f"As {{asked}} and [as] said: {BARE} I hope that this helps.",
        f"```python\nprint()\n```\n{BARE}",
    ],
)
def test_a_value_is_found_however_it_is_wrapped(text: str) -> None:
    assert find_json(text) == VALUE


@pytest.mark.parametrize(
    "text",
    ["", BARE[:-3], '{"a": NaN}', '{"a": 1, "a": 2}', '"only a text"', "12", "[" * 100_000, "{" * 500 + "x"],
)
def test_what_is_no_object_and_no_array_is_none(text: str) -> None:
    with pytest.raises(NoJsonError):
        find_json(text)
    with pytest.raises(NoJsonError, match=r"Expecting value"):
        find_json("I cannot do that.")


ROW = asdict(Reject(candidate="a", source_row="b", rule="c", reason="d"))
SCHEMA = arrow_files.arrow_schema(Reject)


@pytest.mark.slow
def test_millions_of_equal_rows_and_long_values_are_refused_although_the_file_is_small(tmp_path: Path) -> None:
    path = tmp_path / "rejects.parquet"
    texts = [pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), [text]) for text in ROW.values()]
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(pa.table([text.cast(pa.string()) for text in texts], schema=SCHEMA))
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DataError, match="10,000,000 rows, more than the 1,000,000 of any file; make it again"):
        row_files.read_rows(path, Reject)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", dictionary_pagesize_limit=1 << 30) as writer:
        for _ in range(25):
            writer.write_table(pa.Table.from_pylist([{**ROW, "reason": "x" * 2_000_000}] * 25, schema=SCHEMA))
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DataError, match="its rows take more than 1 GiB of memory; split it, or make it again"):
        row_files.read_rows(path, Reject)


def test_an_unknown_column_is_not_read_and_a_missing_doubled_or_unreadable_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rejects.parquet"
    table = pa.Table.from_pylist([ROW], schema=SCHEMA).append_column("more", pa.array([["x"] * 1000]))
    pq.write_table(table, path)
    assert row_files.read_rows(path, Reject) == [Reject(**ROW)]
    pq.write_table(table.drop_columns(["rule", "reason"]), path)
    with pytest.raises(DataError, match=r"column rule, reason is missing; have: candidate, .*; rows of Reject"):
        row_files.read_rows(path, Reject)
    pq.write_table(pa.table([*table.columns[:4], ["y"]], names=[*SCHEMA.names, SCHEMA.names[0]]), path)
    with pytest.raises(DataError, match=f"column {SCHEMA.names[0]} stands twice; keep one"):
        row_files.read_rows(path, Reject)
    pq.write_table(pa.Table.from_pylist([ROW], schema=SCHEMA), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"candidate", b"candid\xff\xfee"))
    with pytest.raises(DataError, match="not a readable parquet file"):
        row_files.read_rows(path, Reject)


def test_a_huge_text_file_a_pipe_a_device_a_folder_and_a_number_of_thousands_of_digits_are_refused(
    tmp_path: Path,
) -> None:
    for name in ("dataset.json", "data.csv"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 30)
    with pytest.raises(DataError, match=r"has 1,073,741,824 bytes, more than the 16,777,216 that are read"):
        read_manifest(tmp_path)
    with pytest.raises(DataError, match=r"824 bytes, more than the 536,870,912 that are read; give a smaller file"):
        read_files(tmp_path, ["data.csv"], what="it", remedy="take it")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(DataError, match="is not a regular file; give a file"):
            strict_json.read(path)
        with pytest.raises(DataError, match="no such file"):
            row_files.read_rows(path, Reject)
    with pytest.raises(DataError, match="a number has 5,000 digits; write one of up to 300"):
        strict_json.loads("9" * 5000, where="here")


@pytest.mark.slow
@pytest.mark.parametrize("name", [b"bad\xff", b"two\nlines", b"\x1b[31mred"])
@pytest.mark.parametrize(
    "command",
    [
        "builders.synthbias --source embedded --limit 80 --out",
        "evaluators run --dataset items --backend baseline --model uniform --out",
        "evaluators run --backend baseline --model uniform --dataset",
        "schemas.validate",
    ],
)
def test_a_name_that_cannot_be_printed_is_one_line(command: str, name: bytes, tmp_path: Path) -> None:
    write_dataset(tmp_path / "items", {"type2": made_items(4)})
    ended = run("-m", *command.split(), os.fsdecode(name), cwd=tmp_path, status=1)
    assert (ended.stderr.isascii(), ended.stderr.count("\n"), ended.stdout) == (True, 1, "")
    assert "is not UTF-8 or holds a control character; choose another name" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["items"]


@pytest.mark.parametrize("index", ["9" * 5000, "1_0", "\N{ARABIC-INDIC DIGIT FIVE}", "-1", "1e9", ""])
def test_an_index_that_is_no_short_number_is_one_line(index: str) -> None:
    published = f"template_index,pronoun_family,template\n{index},he,He left.\n".encode()
    with pytest.raises(DataError, match=r":2: template index '.{0,20}' is no number of up to 9 digits; use the files"):
        variant_rows(published, "recognition")
    prompts = f"template_idx,ante,ante_type,pronoun_family,template\n{index},a,distal,he,He left.\n".encode()
    with pytest.raises(DataError, match=r":2: template_idx '.{0,20}' is no number; use"):
        frames(prompts)
