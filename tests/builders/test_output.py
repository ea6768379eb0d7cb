"""Dataset folders: what is in them, that two are equal to the byte, and what is never replaced."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from builders.dataset.card import render_benchmark
from builders.dataset.output import Draft, DraftSplit, ExtraFile, Rule, check_target, ensure_publishable, write_dataset
from builders.synthbias import embedded
from schemas import validate
from schemas.documents.dataset import Manifest, Reject
from schemas.files.contract import load
from schemas.files.row_files import read_rows
from schemas.folders import dataset_folder
from schemas.items.coreference import CoreferenceItem


@pytest.fixture(scope="module")
def draft() -> Draft[CoreferenceItem]:
    return embedded.draft(limit=40)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_a_folder_holds_data_card_manifest_and_rejects(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    manifest = write_dataset(draft, tmp_path / "d")
    assert set(files_of(tmp_path / "d")) == {
        "README.md",
        "croissant.json",
        "dataset.json",
        "eval.yaml",
        "rejects.parquet",
        "data/type1/test-00000-of-00001.parquet",
        "data/type2/test-00000-of-00001.parquet",
    }
    assert dataset_folder.read_manifest(tmp_path / "d") == manifest
    for entry, split in zip(manifest.splits, draft.splits, strict=True):
        assert dataset_folder.read_split(tmp_path / "d", entry) == list(split.items)
    assert read_rows(tmp_path / "d" / "rejects.parquet", Reject) == list(draft.rejects)
    counted = {count.rule: count.n for count in manifest.rejects}
    assert counted.pop("gap_too_small") == 5
    assert set(counted.values()) == {0}


@pytest.mark.slow
def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_dataset(embedded.draft(seed=3, limit=200), tmp_path / name)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


class ReadOnce(Sequence[CoreferenceItem]):
    """Items that are made when they are read, which may happen once."""

    def __init__(self, items: Sequence[CoreferenceItem]) -> None:
        self.items, self.n_reads = items, 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        raise AssertionError("items are read in their order, all at once")

    def __iter__(self) -> Iterator[CoreferenceItem]:
        self.n_reads += 1
        return iter(self.items)


def test_each_split_is_read_once_and_gives_the_same_bytes(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    lazy = [ReadOnce(split.items) for split in draft.splits]
    splits = tuple(replace(split, items=items) for split, items in zip(draft.splits, lazy, strict=True))
    write_dataset(replace(draft, splits=splits), tmp_path / "lazy")
    assert [items.n_reads for items in lazy] == [1, 1]
    write_dataset(draft, tmp_path / "plain")
    assert files_of(tmp_path / "lazy") == files_of(tmp_path / "plain")


def test_the_hub_library_loads_the_folder(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    write_dataset(draft, tmp_path / "d")
    cache = str(tmp_path / "cache")
    assert datasets.get_dataset_config_names(str(tmp_path / "d")) == ["type1", "type2"]
    for split in draft.splits:
        loaded = datasets.load_dataset(str(tmp_path / "d"), split.config, cache_dir=cache)
        assert list(loaded) == ["test"]
        assert loaded["test"]["item_id"] == [item.item_id for item in split.items]
        assert loaded["test"][0]["occupations"] == list(split.items[0].occupations)
        assert loaded["test"]["referent"] == [item.referent for item in split.items]


def test_the_card_says_what_the_hub_and_a_reader_need(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    write_dataset(draft, tmp_path / "d")
    _, front, body = (tmp_path / "d" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    metadata = yaml.safe_load(front)
    assert metadata["license"] == "apache-2.0"
    assert metadata["language"] == ["en"]
    assert metadata["size_categories"] == ["n<1K"]
    assert metadata["configs"] == [
        {"config_name": name, "data_files": [{"split": "test", "path": f"data/{name}/test-00000-of-00001.parquet"}]}
        for name in ("type1", "type2")
    ]
    headings = [line.removeprefix("## ") for line in body.splitlines() if line.startswith("## ")]
    assert headings == [
        "Data statement",
        "Files",
        "How to load",
        "How it was built",
        "Annotation",
        "Licence and sources",
        "Intended use",
        "Out-of-scope use",
        "Biases of the data",
        "Known limits",
        "Balance",
        "Citation",
    ]
    assert "Do not use it to infer the gender of people" in body
    assert "| `gap_too_small` | 5 |" in body
    assert "| pronoun agrees with the stereotype (pro) | 0 | 10 |" in body
    assert str(tmp_path) not in body


@pytest.mark.slow
def test_a_folder_with_files_is_replaced_only_when_asked_and_only_if_it_is_a_dataset(
    draft: Draft[CoreferenceItem], tmp_path: Path
) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    write_dataset(draft, folder)
    before = files_of(folder)
    with pytest.raises(ConfigError, match="is not empty; give another folder, or --overwrite"):
        write_dataset(draft, folder)
    assert files_of(folder) == before
    write_dataset(embedded.draft(seed=5, limit=40), folder, overwrite=True)
    assert files_of(folder) != before

    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"holds files but no dataset\.json"):
        write_dataset(draft, precious, overwrite=True)
    assert files_of(precious) == {"thesis.txt": b"years of work"}


def test_a_file_and_a_link_are_no_target(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="is a file; give a folder"):
        check_target(tmp_path / "file", overwrite=True)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="is a link; give the folder that it leads to"):
        check_target(tmp_path / "link", overwrite=True)


def test_a_draft_with_an_unsound_item_leaves_nothing_behind(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    first, *others = draft.splits[1].items
    broken = [*others, replace(first, referent="astronaut")]
    splits = (draft.splits[0], replace(draft.splits[1], items=broken))
    with pytest.raises(DataError, match="'astronaut' is not one of the item's occupations"):
        write_dataset(replace(draft, splits=splits), tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_stands_twice_is_refused(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    item = draft.splits[0].items[0]
    twice = DraftSplit(config="type1", split="train", item_shape="coreference", items=[item])
    with pytest.raises(DataError, match=f"item_id '{item.item_id}' stands 2 times"):
        write_dataset(replace(draft, splits=(*draft.splits, twice)), tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_flags_are_counted_and_one_that_nobody_describes_is_our_own_bug(
    draft: Draft[CoreferenceItem], tmp_path: Path
) -> None:
    items = [replace(item, flags=("odd",)) if item.stereotype == "pro" else item for item in draft.splits[1].items]
    flagged = replace(draft, splits=(draft.splits[0], replace(draft.splits[1], items=items)))
    with pytest.raises(ValueError, match="flag rules without a description: odd"):
        write_dataset(flagged, tmp_path / "d")
    rules = (Rule(name="odd", description="is odd"), Rule(name="even", description="is even"))
    manifest = write_dataset(replace(flagged, flag_rules=rules), tmp_path / "d")
    assert [(count.rule, count.n) for count in manifest.flags] == [("odd", 10), ("even", 0)]


def test_extra_files_come_along(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    write_dataset(replace(draft, extra_files=(ExtraFile(name="LICENSE", content=b"terms"),)), tmp_path / "d")
    assert (tmp_path / "d" / "LICENSE").read_bytes() == b"terms"


def test_publishing_is_refused_with_the_reason(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    ensure_publishable(write_dataset(draft, tmp_path / "open"))
    write_dataset(replace(draft, publish_refusal="its licence forbids it"), tmp_path / "closed")
    manifest = load(strict_json.read(tmp_path / "closed" / "dataset.json"), Manifest, where="dataset.json")
    assert manifest.redistributable is False
    with pytest.raises(DataError, match=r"dataset synthbias@3\.0\.0 must not be published: its licence forbids it"):
        ensure_publishable(manifest)


def test_the_hub_is_told_one_task_for_each_split(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    manifest = write_dataset(draft, tmp_path / "open")
    told = yaml.safe_load((tmp_path / "open" / "eval.yaml").read_text(encoding="utf-8"))
    assert set(told) == {"name", "description", "evaluation_framework", "tasks"}
    assert told["name"] == draft.title
    assert f"{sum(len(split.items) for split in draft.splits)} items in 2 configs; no human" in told["description"]
    assert told["tasks"] == [
        {"id": "type1", "config": "type1", "split": "test"},
        {"id": "type2", "config": "type2", "split": "test"},
    ]
    # A config of two splits has two tasks, whose ids must differ.
    more = replace(manifest, splits=(*manifest.splits, replace(manifest.splits[0], split="train")))
    ids = [task["id"] for task in yaml.safe_load(render_benchmark(more))["tasks"]]
    assert ids == ["type1-test", "type2", "type1-train"]


def test_a_dataset_that_must_stay_here_is_no_benchmark_of_the_hub(
    draft: Draft[CoreferenceItem], tmp_path: Path
) -> None:
    write_dataset(replace(draft, publish_refusal="its licence forbids it"), tmp_path / "closed")
    assert not (tmp_path / "closed" / "eval.yaml").exists()


@pytest.mark.slow
def test_another_dataset_is_not_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    draft = embedded.draft(seed=5, limit=40)
    write_dataset(dataclasses.replace(draft, name="another"), folder)
    before = (folder / "dataset.json").read_bytes()
    with pytest.raises(
        ConfigError, match="holds the dataset 'another', not 'synthbias', so --overwrite leaves it alone"
    ):
        write_dataset(draft, folder, overwrite=True)
    assert (folder / "dataset.json").read_bytes() == before


def test_a_described_file_is_listed_with_its_hash_and_a_changed_one_is_noticed(
    draft: Draft[CoreferenceItem], tmp_path: Path
) -> None:
    votes = ExtraFile(name="annotation/votes.csv", content=b"item_id\r\n", description="votes of people")
    manifest = write_dataset(replace(draft, extra_files=(votes,)), tmp_path / "d")
    (entry,) = manifest.files
    assert (entry.path, entry.description) == ("annotation/votes.csv", "votes of people")
    assert entry.sha256 == hashlib.sha256(b"item_id\r\n").hexdigest()
    assert dataset_folder.read_manifest(tmp_path / "d") == manifest
    assert "| `annotation/votes.csv` | votes of people |" in (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    assert list(validate.problems(tmp_path / "d")) == []
    path = tmp_path / "d" / "annotation" / "votes.csv"
    path.write_bytes(b"item_id,answer\r\n")
    (problem,) = validate.problems(tmp_path / "d")
    assert problem.startswith(f"{path}: sha256 ")
    assert "build the dataset again" in problem
    path.unlink()
    assert list(validate.problems(tmp_path / "d")) == [
        f"{path}: no such file, dataset.json lists it; build the dataset again"
    ]


def test_a_file_is_listed_once(draft: Draft[CoreferenceItem], tmp_path: Path) -> None:
    twice = (ExtraFile(name="notes.txt", content=b"a", description="notes"),) * 2
    with pytest.raises(DataError, match=r"files: 'notes\.txt' is listed 2 times; list it once"):
        write_dataset(replace(draft, extra_files=twice), tmp_path / "d")
