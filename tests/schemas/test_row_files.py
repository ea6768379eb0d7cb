from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground.errors import DataError
from schemas.documents.dataset import Reject
from schemas.documents.record import Record
from schemas.files import row_files
from schemas.files.arrow_files import arrow_schema
from schemas.items.coreference import CoreferenceItem
from tests.schemas import examples

CONTENT_SHA256 = "b6577dbe2c6e5f25a76c29749de60f6eb1da9f7f97fe5e495fa294940bea35d8"


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    rows = [examples.record(), examples.failed_record()]
    row_files.write_rows(path, rows, Record)
    read = row_files.read_rows(path, Record)
    assert read == rows
    assert read[0].exchanges[0].option_logprobs == (-0.25, float("-inf"))
    assert read[0].exchanges[0].option_end_logprobs == (None, None)
    assert read[0].groups == {"pronoun": "he", "gender": "masculine"}
    assert read[1].groups == {}
    assert read[1].reading is None


def test_items_and_rejects_come_back_as_they_were(tmp_path: Path) -> None:
    ambiguous = dataclasses.replace(examples.item(), referent=None, stereotype=None, pronoun_case=None, flags=("odd",))
    row_files.write_rows(tmp_path / "items.parquet", [examples.item("she"), ambiguous], CoreferenceItem)
    assert row_files.read_rows(tmp_path / "items.parquet", CoreferenceItem) == [examples.item("she"), ambiguous]
    row_files.write_rows(tmp_path / "rejects.parquet", [], Reject)
    assert row_files.read_rows(tmp_path / "rejects.parquet", Reject) == []


def test_columns_have_the_types_of_the_dataclass() -> None:
    schema = arrow_schema(CoreferenceItem)
    assert schema.names == [field.name for field in dataclasses.fields(CoreferenceItem)]
    assert schema.field("pronoun_start").type == pa.int64()
    assert not schema.field("sentence").nullable
    assert schema.field("referent").nullable
    assert pa.types.is_list(schema.field("occupations").type)
    assert pa.types.is_map(arrow_schema(Record).field("groups").type)


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = [examples.record(), examples.failed_record()]
    row_files.write_rows(tmp_path / "first.parquet", rows, Record)
    row_files.write_rows(tmp_path / "second.parquet", rows, Record)
    row_files.write_rows(tmp_path / "turned.parquet", rows[::-1], Record)
    assert (tmp_path / "first.parquet").read_bytes() == (tmp_path / "second.parquet").read_bytes()
    assert (tmp_path / "first.parquet").read_bytes() != (tmp_path / "turned.parquet").read_bytes()


def test_the_content_hash_never_changes() -> None:
    assert row_files.content_sha256(examples.items()) == CONTENT_SHA256


def test_the_content_hash_is_of_the_canonical_json_lines() -> None:
    digest = hashlib.sha256()
    for item in examples.items():
        fields = {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(item).items()}
        digest.update(json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    assert row_files.content_sha256(examples.items()) == digest.hexdigest()


def test_a_truncated_file_is_one_line_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    row_files.write_rows(path, [examples.record()], Record)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"records\.parquet: not a readable parquet file \(truncated\?\): .*") as caught:
        row_files.read_rows(path, Record)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"item_id,sentence\n1,Hello\n"])
def test_a_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a readable parquet file"):
        row_files.read_rows(path, CoreferenceItem)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"items\.parquet: no such file; build the dataset"):
        row_files.read_rows(tmp_path / "items.parquet", CoreferenceItem)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    row_files.write_rows(path, examples.items(), CoreferenceItem)
    pq.write_table(pq.read_table(path).drop_columns(["pair_id", "flags"]), path)
    with pytest.raises(
        DataError, match=r"column pair_id, flags is missing; have: item_id, .*; rows of CoreferenceItem"
    ):
        row_files.read_rows(path, CoreferenceItem)


def test_an_unsound_row_is_named_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    row_files.write_rows(path, examples.items(), CoreferenceItem)
    values = pq.read_table(path).to_pylist()
    values[2]["pronoun_gender"] = "neuter"
    pq.write_table(pa.Table.from_pylist(values, schema=arrow_schema(CoreferenceItem)), path)
    with pytest.raises(DataError, match=r"items\.parquet: row 3: pronoun_gender: 'neuter' is not allowed; have: masc"):
        row_files.read_rows(path, CoreferenceItem)


def test_an_unsound_row_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    bad = dataclasses.replace(examples.item(), referent="pilot")
    with pytest.raises(DataError, match=r"row 2: referent: 'pilot' is not one of the item's occupations; have: mech"):
        row_files.write_rows(path, [examples.item(), bad], CoreferenceItem)
    assert list(tmp_path.iterdir()) == []
