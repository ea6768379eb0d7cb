"""The pages of datasets: what their manifests, cards and answer keys say, and which items models miss."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.memory import Memory
from evaluators.task import load_task
from leaderboard.pages.dataset_views import kept_keys, safe_html
from leaderboard.verify import keys
from leaderboard.verify.keys import KeyBook
from schemas.documents.result import Signature
from schemas.files import contract
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import make_records, make_result, present, uniform
from tests.record_files import read_records
from tests.worlds import MadeBoard, gifi_manifest

PAGE = "datasets/gifi-1.0.0.md"


@pytest.mark.slow
def test_a_dataset_that_is_not_here_shows_what_results_and_keys_tell(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("lab/one", "lab/two"):
        write_gifi_model(runs, name, 0.5, tasks=("recognition", "continuation"), n_templates=4)
    keys = write_keys(tmp_path / "keys", runs)
    made = MadeBoard(runs, keys=kept_keys(keys))
    page = made.texts[PAGE]
    assert "This dataset is not on the machine that built the site." in page
    assert "Sources" not in page
    assert "Licence" not in page
    assert "The board keeps 2 answer keys of this dataset" in page
    rows = made.rows("files/dataset-gifi-1.0.0-keys")
    for row in rows:
        key = strict_json.read(keys / "gifi@1.0.0" / f"{row['config']}-{row['task']}-{row['prompt']}.json")
        assert isinstance(key, dict)
        assert row["key_sha256"] == strict_json.sha256(key)
        assert row["key_sha256"][:12] in page
    n_items = len(read_records(runs / "lab__one" / "recognition" / "records.parquet"))
    assert {row["n_items"] for row in rows} == {n_items}
    for path, link in (("data.md", ""), ("benchmarks/gifi.md", "../")):
        assert f'href="{link}datasets/gifi-1.0.0.html"' in made.texts[path]
    (row,) = made.rows("files/datasets")
    assert row["page"] == "datasets/gifi-1.0.0.html"
    assert (row["dataset"], row["n_results"], row["licence"]) == ("gifi", 4, None)
    for sha256, is_other in (("0" * 64, False), ("1" * 64, True)):
        other = MadeBoard(*made.entries, keys=kept_keys(keys), built=[gifi_manifest(content_sha256=sha256)])
        assert ("has other contents than the one that the answer keys" in other.texts[PAGE]) is is_other


def test_the_page_says_what_the_manifest_says_and_cards_of_strangers_cannot_act() -> None:
    told = gifi_manifest(redistributable=False, publish_refusal="the licence is CC BY-NC-ND; ask the owner")
    page = MadeBoard(built=[told]).texts[PAGE]
    assert "May be redistributed</dt><dd>no: the licence is CC BY-NC-ND; ask the owner</dd>" in page
    parts = (
        "a <img src=x onerror=alert(1)> <script>x</script> [l](javascript:x) ![p](http://e.test) <http://e.test> &#60;",
        "* one\n\n  two `c` **b**",
        "# head",
        "    indented",
        "Counts:\n\n| a | b |\n| --- | --- |",
        "\u202eback\x1b",
        "```\n\nx\n```\n",
    )
    shown = str(safe_html("\n\n".join(parts)))
    assert set(re.findall(r"</?(\w+)", shown)) <= {"p", "ul", "li", "code", "strong"}
    assert "\n" not in shown
    assert "\\u202eback\\x1b" in shown
    assert "<strong>b</strong>" in shown
    assert "---" not in shown
    assert "Counts" not in shown


def signature(**fields: Any) -> Signature:
    signed = make_result(make_records(uniform), "acme/small").signature
    return replace(signed, task_version=load_task(signed.task).version, **fields)


@pytest.mark.slow
def test_the_dataset_of_a_result_is_built_once_and_not_in_other_processes(tmp_path: Path) -> None:
    book, memory = KeyBook(None, embedded=tmp_path), Memory(None)
    other, unknown = pickle.loads(pickle.dumps(book)), signature(dataset_version="99.0.0")
    assert other.find(unknown, memory) is None
    assert list(tmp_path.iterdir()) == []
    assert book.find(unknown, memory) is None
    manifest = read_manifest(tmp_path / "synthbias")
    built = (tmp_path / "synthbias" / "dataset.json").stat().st_mtime_ns
    for opened in (book, other):
        known = present(opened.find(signature(dataset_version=manifest.version), memory))
        assert known.key.dataset_sha256 == manifest.content_sha256
    assert (tmp_path / "synthbias" / "dataset.json").stat().st_mtime_ns == built
    # A further source that needs no input is built too.
    assert book.find(replace(unknown, dataset="synthbias-families"), memory) is None
    assert read_manifest(tmp_path / "synthbias-families").parameters["source"] == "families"


@pytest.mark.parametrize(("prompt", "is_same"), [("intrinsic-v1", True), ("mcq2-generate-v1", False)])
def test_a_licence_that_hides_prompts_changes_keys_of_texts_alone(tmp_path: Path, prompt: str, is_same: bool) -> None:
    # The hash of a choice stands for its prompt; how a text is read may depend on the prompt itself.
    memory, found = Memory(tmp_path / "memory"), []
    for redistributable in (False, True):
        folder = tmp_path / str(redistributable)
        write_dataset(folder / "made", {"made": made_items(2)}, redistributable=redistributable)
        manifest = read_manifest(folder / "made")
        of_made = {"dataset": "made", "dataset_version": manifest.version, "config": "made", "prompt": prompt}
        known = present(KeyBook(None, folder).find(signature(**of_made), memory))
        found.append(known.key.parts[0])
    withheld, shown = found
    assert withheld.facts_sha256 == shown.facts_sha256
    assert (withheld.requests_sha256 == shown.requests_sha256) is is_same


def test_nothing_else_is_built(tmp_path: Path) -> None:
    names = [{"dataset": name} for name in ("official", "synthbias-generated", "image_labels")]
    for fields in (*names, {"benchmark": "official"}):
        assert KeyBook(None, embedded=tmp_path).find(signature(**fields), Memory(None)) is None
        assert list(tmp_path.iterdir()) == []


def made_dataset(folder: Path, **fields: Any) -> Signature:
    """A dataset with other facts and the same items; gives the signature of results on it."""
    write_dataset(folder / "made", {"made": made_items(2)})
    manifest = replace(read_manifest(folder / "made"), **fields)
    strict_json.write(folder / "made" / "dataset.json", contract.dump(manifest))
    return signature(dataset=manifest.name, dataset_version=manifest.version, config="made")


@pytest.mark.parametrize("fields", [{"version": "9.9.9"}, {"title": "Other"}])
def test_datasets_with_the_same_items_do_not_share_a_key(tmp_path: Path, fields: dict[str, str]) -> None:
    memory, found = Memory(tmp_path / "memory"), []
    for folder, changed in ((tmp_path / "first", {}), (tmp_path / "second", fields)):
        asked = made_dataset(folder, **changed)
        known = present(KeyBook(None, folder).find(asked, memory))
        # Made again, and as it is remembered.
        assert known == KeyBook(None, folder).find(asked, Memory(None)) == KeyBook(None, folder).find(asked, memory)
        of_key = known.key.signature
        assert (of_key.dataset, of_key.dataset_version) == (asked.dataset, asked.dataset_version)
        found.append(known.key)
    assert len(list((tmp_path / "memory").rglob("*.json"))) == 2
    assert (found[0] == found[1]) == ("title" in fields)


def test_a_result_of_another_benchmark_hides_no_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(asked: Signature, folder: Path) -> None:
        if asked.benchmark == "synthbias":
            write_dataset(folder / "made", {"made": made_items(2)})

    monkeypatch.setattr(keys, "_build_embedded", build)
    book, honest = KeyBook(None, embedded=tmp_path / "embedded"), made_dataset(tmp_path / "elsewhere")
    assert book.find(replace(honest, benchmark="gifi"), Memory(None)) is None
    assert book.find(honest, Memory(None)) is not None


def test_a_part_of_a_dataset_never_passes_for_the_whole(tmp_path: Path) -> None:
    """A dataset that was built with a limit has the name and version of the whole."""
    write_dataset(tmp_path / "datasets" / "a_part", {"made": made_items(2)})
    write_dataset(tmp_path / "embedded" / "made", {"made": made_items(4)})
    manifest = read_manifest(tmp_path / "embedded" / "made")
    asked = signature(dataset=manifest.name, dataset_version=manifest.version, config="made")
    known = present(KeyBook(None, tmp_path / "datasets", embedded=tmp_path / "embedded").find(asked, Memory(None)))
    assert known.origin == str(tmp_path / "embedded" / "made")
