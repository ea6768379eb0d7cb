"""Rows of parquet files, and the splits of a dataset that hold them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from schemas.documents.base import Document
from schemas.documents.dataset import Reject
from schemas.documents.record import Record
from schemas.files import contract, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.folders import dataset_folder
from schemas.items.coreference import CoreferenceItem
from tests.schemas import examples

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


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    row_files.write_rows(path, examples.items(), CoreferenceItem)
    pq.write_table(pq.read_table(path).drop_columns(["pair_id", "flags"]), path)
    with pytest.raises(DataError, match=r"column pair_id, flags is missing; have: item_id, .*; rows of CoreferenceIt"):
        row_files.read_rows(path, CoreferenceItem)


def test_an_unsound_row_is_neither_written_nor_read(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    with pytest.raises(DataError, match=r"row 2: referent: 'pilot' is not one of the item's occupations; have: mech"):
        row_files.write_rows(path, [examples.item(), replace(examples.item(), referent="pilot")], CoreferenceItem)
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
