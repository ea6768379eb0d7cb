"""Folders and files that are no results harm nobody but themselves."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from leaderboard.verify.entries import Root
from leaderboard.verify.loading import load
from schemas.documents.base import from_values
from schemas.documents.record import Record
from schemas.documents.result import Result
from tests.leaderboard.forging import Places, forge, judged, signed


def pipe(folder: Path) -> None:
    (folder / "result.json").unlink()
    os.mkfifo(folder / "result.json")


def link_to(target: str, name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def huge_json(folder: Path) -> None:
    with (folder / "result.json").open("r+b") as file:
        file.truncate(200 << 20)


def table_bomb(n_rows: int, **texts: str) -> Callable[[Path], None]:
    """Equal rows that take a few bytes in the file."""

    def change(folder: Path) -> None:
        path = folder / "records.parquet"
        honest = pq.read_table(path).slice(0, 1)
        first = honest
        for name, text in texts.items():
            column = pa.array([text])
            place = first.schema.get_field_index(name)
            first = (
                first.append_column(name, column)
                if place < 0
                else first.set_column(place, first.schema.field(place), column)
            )
        many = honest.take(pa.array([0] * (n_rows - 1)))
        many = pa.concat_tables([first, many], promote_options="default")
        pq.write_table(many, path, compression="zstd")
        told = json.loads((folder / "result.json").read_text())
        told["records"] |= {"sha256": sha256_file(path), "n_rows": n_rows}
        told["signature"]["n_items"] = n_rows
        told["counts"] |= {"items": n_rows, "scored": n_rows}
        contracted = from_values(told, Result)
        told["signature_sha256"] = contracted.signature.sha256()
        (folder / "result.json").write_text(json.dumps(told))

    return change


def repeated_metrics(folder: Path) -> None:
    told = json.loads((folder / "result.json").read_text())
    told["metrics"] = told["metrics"][:1] * 16_000
    (folder / "result.json").write_text(json.dumps(told))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (pipe, "is not a regular file"),
        (link_to("/dev/zero", "result.json"), "is a link that leaves this folder"),
        (link_to("/etc/hostname", "result.json"), "is a link that leaves this folder"),
        (link_to("nowhere", "result.json"), "cannot be opened"),
        (link_to("result.json", "result.json"), "cannot be opened"),
        (link_to("nowhere", "records.parquet"), "cannot be opened"),
        (link_to("records.parquet", "records.parquet"), "cannot be opened"),
        (link_to("/dev/zero", "records.parquet"), "is a link that leaves this folder"),
        (huge_json, "has 209,715,200 bytes, more than the 16,777,216 of any such file"),
        (table_bomb(200_000), "names 200000 items of made@1.0.0"),
        (table_bomb(200, extra="x" * 1000), "column extra is none of Record"),
        (table_bomb(200, reason="x" * 100_000_000), "more than the 46,661,632 of any result of such a size"),
        (repeated_metrics, "stands twice"),
        (lambda folder: (folder / "records.parquet").write_bytes(b"PAR1"), "not a readable parquet file"),
    ],
)
def test_files_that_are_no_results_are_one_line(
    places: Places, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    folder = forge(places, tmp_path / "results" / "aaa")
    change(folder)
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    found = {Path(one.place).name: one for one in judged([tmp_path / "results"], places)}
    assert said in (found["aaa"].reason or "")
    assert "root" not in (found["aaa"].reason or "")
    assert found["honest"].reason is None
    loaded = load([Root(tmp_path / "results", "accepted")], places.book, Memory(None))
    assert [entry.place for entry in loaded.entries] == ["honest"]
    assert [left_out.place for left_out in loaded.left_out] == ["aaa"]


@pytest.mark.slow
def test_groups_without_an_answer_key_are_bounded(places: Places, tmp_path: Path) -> None:
    def many(records: list[Record]) -> list[Record]:
        row, *_ = records
        return [
            replace(row, item_id=f"i{n}", cluster=f"c{n}", pair_id=None, groups={**row.groups, "occupation": f"o{n}"})
            for n in range(900)
        ]

    folder = forge(places, tmp_path / "aaa", many, of_result=lambda one: signed(one, dataset="own", n_items=900))
    (verdict,) = judged([folder], places)
    assert "groups in 900 records without an answer key are too many to check" in (verdict.reason or "")
    # The owner of a folder may look at such a run.
    assert load([Root(tmp_path, "local")], places.book, Memory(None)).entries


@pytest.mark.slow
def test_links_to_folders_are_named_and_not_followed(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    (tmp_path / "results" / "loop").symlink_to(tmp_path / "results")
    (tmp_path / "results" / "nowhere").symlink_to(tmp_path / "gone")
    found = {Path(one.place).name: one.reason for one in judged([tmp_path / "results"], places)}
    assert found["honest"] is None
    for name in ("loop", "nowhere"):
        assert "is a link, which is not followed" in (found[name] or "")
    assert len(load([Root(tmp_path / "results", "accepted")], places.book, Memory(None)).entries) == 1
