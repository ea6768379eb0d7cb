"""Dataset folders: what is in them, that two are equal to the byte, and what is never replaced."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from builders.build_command import Out, Overwrite, check_input, target_folder
from builders.dataset.card import render_benchmark
from builders.dataset.output import Draft, DraftSplit, ExtraFile, Rule, check_target, write_dataset
from builders.description import all_builders
from builders.publishable import check_manifest, read_dataset
from builders.synthbias import embedded
from evaluators.benchmark import load_benchmark
from schemas import validate
from schemas.documents.dataset import Reject
from schemas.files.row_files import read_rows
from schemas.folders import dataset_folder
from schemas.items.coreference import CoreferenceItem
from tests import commands

Made = Draft[CoreferenceItem]


@pytest.fixture(scope="module")
def draft() -> Made:
    return embedded.draft(limit=40)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_a_folder_holds_data_card_manifest_and_rejects(draft: Made, tmp_path: Path) -> None:
    manifest = write_dataset(draft, tmp_path / "d")
    described = {"README.md", "croissant.json", "dataset.json", "eval.yaml", "rejects.parquet"}
    assert set(files_of(tmp_path / "d")) == described | {split.path for split in draft.splits}
    assert dataset_folder.read_manifest(tmp_path / "d") == manifest
    for entry, split in zip(manifest.splits, draft.splits, strict=True):
        assert dataset_folder.read_split(tmp_path / "d", entry) == list(split.items)
    assert read_rows(tmp_path / "d" / "rejects.parquet", Reject) == list(draft.rejects)
    assert {count.rule: count.n for count in manifest.rejects if count.n} == {"gap_too_small": 5}
    assert len(manifest.rejects) > 1
    # And the library of the Hub loads it.
    assert datasets.get_dataset_config_names(str(tmp_path / "d")) == ["type1", "type2"]
    for split in draft.splits:
        loaded = datasets.load_dataset(str(tmp_path / "d"), split.config, cache_dir=str(tmp_path / "cache"))
        assert list(loaded) == ["test"]
        for name in ("item_id", "referent"):
            assert loaded["test"][name] == [getattr(item, name) for item in split.items]
        assert loaded["test"][0]["occupations"] == list(split.items[0].occupations)


def test_the_card_and_the_benchmark_file_say_what_the_hub_and_a_reader_need(draft: Made, tmp_path: Path) -> None:
    manifest = write_dataset(draft, tmp_path / "d")
    _, front, body = (tmp_path / "d" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    metadata = yaml.safe_load(front)
    told = {"license": "apache-2.0", "language": ["en"], "size_categories": ["n<1K"]}
    assert {name: metadata[name] for name in told} == told
    assert metadata["configs"] == [
        {"config_name": split.config, "data_files": [{"split": "test", "path": split.path}]} for split in draft.splits
    ]
    assert "Do not use it to infer the gender of people" in body
    assert "| `gap_too_small` | 5 |" in body
    assert "| pronoun agrees with the stereotype (pro) | 0 | 10 |" in body
    assert str(tmp_path) not in body
    benchmark = yaml.safe_load((tmp_path / "d" / "eval.yaml").read_text(encoding="utf-8"))
    assert set(benchmark) == {"name", "description", "evaluation_framework", "tasks"}
    assert benchmark["name"] == draft.title
    assert "40 items in 2 configs; no human" in benchmark["description"]
    assert benchmark["tasks"] == [{"id": name, "config": name, "split": "test"} for name in ("type1", "type2")]
    # A config of two splits has two tasks, whose ids must differ.
    more = replace(manifest, splits=(*manifest.splits, replace(manifest.splits[0], split="train")))
    ids = [task["id"] for task in yaml.safe_load(render_benchmark(more))["tasks"]]
    assert ids == ["type1-test", "type2", "type1-train"]


@pytest.mark.slow
def test_a_folder_is_replaced_only_when_asked_and_only_if_it_holds_the_same_dataset(
    draft: Made, tmp_path: Path
) -> None:
    folder, precious = tmp_path / "d", tmp_path / "thesis"
    folder.mkdir()
    write_dataset(draft, folder)
    before = files_of(folder)
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    other = replace(draft, name="another")
    for of, place, overwrite, said in (
        (draft, folder, False, "is not empty; give another folder, or --overwrite"),
        (other, folder, True, "holds the dataset 'synthbias', not 'another', so --overwrite leaves it alone"),
        (draft, precious, True, r"holds files but no dataset\.json"),
    ):
        with pytest.raises(ConfigError, match=said):
            write_dataset(of, place, overwrite=overwrite)
    assert (files_of(folder), files_of(precious)) == (before, {"thesis.txt": b"years of work"})
    write_dataset(embedded.draft(limit=44), folder, overwrite=True)
    assert files_of(folder) != before
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    for name, said in (("file", "is a file; give a folder"), ("link", "is a link; give the folder that it leads to")):
        with pytest.raises(ConfigError, match=said):
            check_target(tmp_path / name, overwrite=True)


def test_a_draft_with_an_unsound_item_or_an_id_twice_leaves_nothing_behind(draft: Made, tmp_path: Path) -> None:
    first, *others = draft.splits[1].items
    broken = replace(draft.splits[1], items=[*others, replace(first, referent="astronaut")])
    twice = DraftSplit(config="type2", split="train", item_shape="coreference", items=[first])
    for splits, said in (
        ((draft.splits[0], broken), "'astronaut' is not one of the item's occupations"),
        ((*draft.splits, twice), f"item_id '{first.item_id}' stands 2 times"),
    ):
        with pytest.raises(DataError, match=said):
            write_dataset(replace(draft, splits=splits), tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_flags_are_counted_and_one_that_nobody_describes_is_our_own_bug(draft: Made, tmp_path: Path) -> None:
    items = [replace(item, flags=("odd",)) if item.stereotype == "pro" else item for item in draft.splits[1].items]
    flagged = replace(draft, splits=(draft.splits[0], replace(draft.splits[1], items=items)))
    with pytest.raises(ValueError, match="flag rules without a description: odd"):
        write_dataset(flagged, tmp_path / "d")
    rules = (Rule(name="odd", description="is odd"), Rule(name="even", description="is even"))
    manifest = write_dataset(replace(flagged, flag_rules=rules), tmp_path / "d")
    assert [(count.rule, count.n) for count in manifest.flags] == [("odd", 10), ("even", 0)]


def test_what_must_stay_here_is_no_benchmark_of_the_hub_and_is_refused_with_the_reason(
    draft: Made, tmp_path: Path
) -> None:
    check_manifest(write_dataset(draft, tmp_path / "open"))
    write_dataset(replace(draft, publish_refusal="its licence forbids it"), tmp_path / "closed")
    manifest = dataset_folder.read_manifest(tmp_path / "closed")
    assert manifest.redistributable is False
    assert not (tmp_path / "closed" / "eval.yaml").exists()
    with pytest.raises(DataError, match=r"dataset synthbias@4\.0\.0 must not be published: its licence forbids it"):
        check_manifest(manifest)


def test_further_files_come_along_and_a_described_one_is_listed_with_its_hash(draft: Made, tmp_path: Path) -> None:
    votes = ExtraFile(name="annotation/votes.csv", content=b"item_id\r\n", description="votes of people")
    licence = ExtraFile(name="LICENSE", content=b"terms")
    manifest = write_dataset(replace(draft, extra_files=(votes, licence)), tmp_path / "d")
    assert (tmp_path / "d" / "LICENSE").read_bytes() == b"terms"
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
    with pytest.raises(DataError, match=r"files: 'annotation/votes\.csv' is listed 2 times; list it once"):
        write_dataset(replace(draft, extra_files=(votes, votes)), tmp_path / "e")
    # Fields that were added later are left out while they are empty.
    write_dataset(draft, tmp_path / "f")
    assert not {"suites", "files"} & {*strict_json.read(tmp_path / "f" / "dataset.json")}  # type: ignore[misc]


def test_a_build_takes_a_version_that_every_file_names_and_that_changes_no_item(draft: Made, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    manifest = write_dataset(draft, folder, version="2.10.0")
    assert (manifest.version, manifest.parameters["dataset_version"]) == ("2.10.0", "2.10.0")
    croissant: Any = strict_json.read(folder / "croissant.json")
    assert croissant["version"] == "2.10.0"
    assert "version 2.10.0" in yaml.safe_load((folder / "eval.yaml").read_text())["description"]
    assert "Dataset `synthbias`, version 2.10.0," in (folder / "README.md").read_text()
    assert read_dataset(folder).tag == "v2.10.0"
    # The builder's own version is the default, and two builds give the same bytes.
    write_dataset(draft, tmp_path / "one")
    write_dataset(embedded.draft(limit=40), tmp_path / "two", version=embedded.DATASET_VERSION)
    one, two, other = (files_of(tmp_path / name) for name in ("one", "two", "d"))
    assert one == two
    assert len({name for name in one if name.endswith(".parquet") and one[name] == other[name]}) == 3


@pytest.mark.slow
def test_what_is_no_version_is_a_wrong_option(tmp_path: Path) -> None:
    options = ("--out", tmp_path / "d", "--dataset-version", "01.0.0")
    told = commands.output_of("-m", "builders.synthbias", *options, status=2)
    assert "'01.0.0' is not MAJOR.MINOR.PATCH, such as 1.2.0" in told
    assert not (tmp_path / "d").exists()


def test_benchmarks_name_the_sources_that_need_no_input_and_each_is_given_what_it_reads_alone() -> None:
    for builder in all_builders():
        build = importlib.import_module(f"builders.{builder.name}.__main__").build
        parameters = inspect.signature(build, eval_str=True).parameters
        assert (parameters["out"].annotation, parameters["overwrite"].annotation) == (Out, Overwrite)
        embedded = [source for source in builder.sources if source.input is None]
        # The default one has the name of the benchmark.
        expected = {source.dataset: source.name for source in embedded if source.dataset != builder.name}
        assert load_benchmark(builder.name).embedded_sources == expected
        for source in builder.sources:
            if source.input is None:
                check_input(source, None, {"--revision": None})
                with pytest.raises(ConfigError, match=f"--revision x: the {source.name} source reads no file; leave"):
                    check_input(source, None, {"--revision": "x"})
            else:
                check_input(source, Path("x"), {"--revision": "x"})
                with pytest.raises(ConfigError, match=f"--source {source.name} needs --input: "):
                    check_input(source, None)


@pytest.mark.slow
def test_the_command_lists_builders_sources_and_terms(repository: Path) -> None:
    done = commands.run("-m", "builders", cwd=repository, status=0, fresh=True)
    assert done.stdout.startswith("synthbias: ") or "\nsynthbias: " in done.stdout
    for source in ("embedded", "synthbias", "winobias"):
        assert f"\n  {source} " in done.stdout
    assert "CC-BY-NC-ND-4.0, not for publishing" in done.stdout
    assert done.stderr == ""


def test_a_folder_that_is_named_by_its_child_is_written_in_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "one" / "two").mkdir(parents=True)
    with pytest.raises(ConfigError, match="is not empty"):
        target_folder(tmp_path / "one" / "two" / "..", Path("x"), overwrite=False)
    assert target_folder(tmp_path / "one" / ".." / "three", Path("x"), overwrite=False) == tmp_path / "three"
    assert target_folder(None, tmp_path / "four", overwrite=False) == tmp_path / "four"
