"""Files that are small on disk and fill the memory when they are read, and paths that are no files."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from builders.dataset.inputs import read_files
from builders.gifi.published import variant_rows
from builders.gifi.tango import frames
from schemas.documents.dataset import Reject
from schemas.files import arrow_files, row_files
from schemas.folders.dataset_folder import read_manifest
from tests.commands import run
from tests.evaluators.made_data import made_items, write_dataset

ROW = asdict(Reject(candidate="a", source_row="b", rule="c", reason="d"))
SCHEMA = arrow_files.arrow_schema(Reject)


@pytest.mark.slow
def test_millions_of_equal_rows_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rejects.parquet"
    texts = [pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), [text]) for text in ROW.values()]
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(pa.table([text.cast(pa.string()) for text in texts], schema=SCHEMA))
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DataError, match="10,000,000 rows, more than the 1,000,000 of any file; make it again"):
        row_files.read_rows(path, Reject)


@pytest.mark.slow
def test_equal_long_values_are_refused_although_the_file_is_small(tmp_path: Path) -> None:
    path = tmp_path / "rejects.parquet"
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", dictionary_pagesize_limit=1 << 30) as writer:
        for _ in range(25):
            writer.write_table(pa.Table.from_pylist([{**ROW, "reason": "x" * 2_000_000}] * 25, schema=SCHEMA))
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DataError, match="its rows take more than 1 GiB of memory; split it, or make it again"):
        row_files.read_rows(path, Reject)


def test_an_unknown_column_is_not_read_and_a_doubled_or_unreadable_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rejects.parquet"
    table = pa.Table.from_pylist([ROW], schema=SCHEMA).append_column("more", pa.array([["x"] * 1000]))
    pq.write_table(table, path)
    assert row_files.read_rows(path, Reject) == [Reject(**ROW)]
    pq.write_table(pa.table([*table.columns[:4], ["y"]], names=[*SCHEMA.names, SCHEMA.names[0]]), path)
    with pytest.raises(DataError, match=f"column {SCHEMA.names[0]} stands twice; keep one"):
        row_files.read_rows(path, Reject)
    pq.write_table(pa.Table.from_pylist([ROW], schema=SCHEMA), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"candidate", b"candid\xff\xfee"))
    with pytest.raises(DataError, match="not a readable parquet file"):
        row_files.read_rows(path, Reject)


def test_a_text_file_of_a_gigabyte_is_refused_by_its_size(tmp_path: Path) -> None:
    for name in ("dataset.json", "data.csv"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 30)
    said = r"has 1,073,741,824 bytes, more than the 536,870,912 that are read; give a smaller file"
    with pytest.raises(DataError, match=r"has 1,073,741,824 bytes, more than the 16,777,216 that are read"):
        read_manifest(tmp_path)
    with pytest.raises(DataError, match=said):
        read_files(tmp_path, ["data.csv"], what="it", remedy="take it")


def test_a_pipe_a_device_or_a_folder_is_no_file_and_a_number_of_thousands_of_digits_no_json(tmp_path: Path) -> None:
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
