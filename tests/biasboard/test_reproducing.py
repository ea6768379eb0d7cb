"""``biasboard reproduce``: what is listed and counted, what is refused, and that it compares what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leaderboard.reproductions import reproductions
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.label import LabelItem
from tests.commands import run

PAPERS = reproductions()


def counted(paper: str, folder: Path, *options: str) -> dict[str, Any]:
    """The document of a dry run."""
    done = run("-m", "biasboard", "reproduce", paper, "--dry-run", "--format", "json", *options, cwd=folder, status=0)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_without_a_name_all_papers_are_listed(tmp_path: Path) -> None:
    done = run("-m", "biasboard", "reproduce", cwd=tmp_path, status=0)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [*PAPERS, "next"]


REFUSED = {
    "gfi": "gfi: no such paper; have: gifi, gini, label-bias, synthbias",
    "gini --models ,": "--models: names no model; give one, or leave the option out",
    "gifi --runs all": "--runs all: no such run; have: published, templates, own-problems, own-texts",
    "gifi --input gifi=x": "--input gifi=x: write DATASET=PATH; datasets that are built from files: ",
    "gini --runs ddi --answers x": "--answers: nobody published answers that these runs",
    "gini --runs ddi --models x": "--models: no dataset of the paper is built; give --input",
    # What is given for one dataset serves others of the same files: the builder of gifi-published looks into it.
    "gifi --dry-run --runs templates --input gifi-published-compat=.": "--input .: no tango-all-genders.csv",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, options: str) -> None:
    done = run("-m", "biasboard", "reproduce", *options.split(), cwd=tmp_path, status=1)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert REFUSED[options] in line


def test_labels_have_names_and_a_built_dataset_is_not_built_anew(tmp_path: Path) -> None:
    for name, n_rows in (("train", 120), ("test", 20)):
        rows = [f"{number % 4 + 1},A title,What is in {name} {number}" for number in range(n_rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["Class Index,Title,Description", *rows]))
    options = ["--runs", "ag-news", "--input", "ag-news=train.csv", "--input", "ag-news=test.csv"]
    counted("gini", tmp_path, *options)
    folder = tmp_path / "out/datasets/ag-news"
    (entry,) = (entry for entry in read_manifest(folder).splits if entry.split == "test")
    items = [item for item in read_split(folder, entry) if isinstance(item, LabelItem)]
    assert items
    assert all(set(item.labels) == {"World", "Sports", "Business", "Sci/Tech"} for item in items)
    again = run("-m", "biasboard", "reproduce", "gini", "--dry-run", *options, cwd=tmp_path, status=0)
    assert "out/datasets/ag-news: is there already, and --input is not read for it; remove the folder" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "runs"),
    [("gifi", "own-problems,own-texts"), ("label-bias", "own-tasks"), ("synthbias", "own,families,reasoning")],
)
def test_the_counts_in_the_files_are_those_of_the_command(tmp_path: Path, paper: str, runs: str) -> None:
    names = ("n_requests", "n_prompt_tokens", "n_completion_tokens")
    document = counted(paper, tmp_path, "--runs", runs)
    known = {one.name: one for one in PAPERS[paper].runs}
    assert [one["name"] for one in document["runs"]] == runs.split(",")
    for one in document["runs"]:
        assert one["is_built"]
        assert [one[name] for name in names] == [getattr(known[one["name"]], name) for name in names]
    with_hours = [model for model in document["models"] if model["gpu_hours"] is not None]
    assert with_hours
    assert all(model["usd"] == pytest.approx(3.0 * model["gpu_hours"]) for model in with_hours)


def test_what_is_not_built_is_taken_from_the_file(tmp_path: Path) -> None:
    document = counted("label-bias", tmp_path, "--runs", "279-tasks", "--gpu-hour", "2")
    (size,) = document["runs"]
    assert (size["is_built"], size["n_requests"]) == (False, 3_938_441)
    seven = next(model for model in document["models"] if model["model"] == "meta-llama/Llama-2-7b-hf")
    # 2 operations for each of 7 billion parameters and 592 million tokens, at 316 TFLOP/s: the page Cluster says 6.3
    # for the evaluated items alone.
    assert seven["gpu_hours"] == pytest.approx(7.3, abs=0.05)
    assert seven["usd"] == pytest.approx(2 * seven["gpu_hours"])
    assert document["findings"] == document["tables"] == []
