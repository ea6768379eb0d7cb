"""``biasboard reproduce``: what is listed and counted, what is refused, and that it compares what is there."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.backend import ChoiceRequest, GenerateRequest
from evaluators.runs.ask.study import Study
from leaderboard.ranking.reproduced import reproductions
from schemas.documents.papers import PaperRun
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.label import LabelItem
from tests.commands import run

PAPERS = reproductions()


def counted(paper: str, folder: Path, *options: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What a dry run says of runs and of models, by their names."""
    done = run("-m", "biasboard", "reproduce", paper, "--dry-run", *options, cwd=folder, status=0)
    tables: list[dict[str, list[str]]] = []
    for line in done.stdout.splitlines():
        cells = re.split(r" {2,}", line)
        if cells[0] in ("run", "model"):
            tables.append({})
        elif len(cells) == 5:
            tables[-1][cells[0]] = cells[1:]
    runs, models = tables
    return runs, models


def test_without_a_name_all_papers_are_listed(tmp_path: Path) -> None:
    done = run("-m", "biasboard", "reproduce", cwd=tmp_path, status=0)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [*PAPERS, "next"]


REFUSED = {
    "gfi": "gfi: no such paper; have: bbq, gifi, gini, label-bias, stereoset, synthbias",
    "gifi --runs all": "--runs all: no such run; have: published, templates, own-problems, own-texts",
    "gifi --input gifi=x": "--input gifi=x: write DATASET=PATH; datasets that are built from files: ",
    "gini --runs ddi --answers x": "--answers: nobody published answers that these runs",
    "bbq --models org/model": "--models: these runs are of published answers, and nothing is asked; leave it out",
    "bbq --answers .": "--answers: give --input bbq-published=PATH too, the folder results/UnifiedQA of",
    "gini --runs ddi --models org/model": "--models: give --input ddi=PATH too, ",
    # What is given for one dataset serves others of the same files: the builder of gifi-published looks into it.
    "gifi --dry-run --runs templates --input gifi-published-compat=.": "--input .: no tango-all-genders.csv",
}


@pytest.mark.slow
@pytest.mark.parametrize("options", REFUSED)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, options: str) -> None:
    done = run("-m", "biasboard", "reproduce", *options.split(), cwd=tmp_path, status=1)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert REFUSED[options] in line


@pytest.mark.slow
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


def rough_tokens(text: str) -> int:
    """The tokens of a text, of four bytes each, as English has with a large vocabulary."""
    return -(-len(text.encode()) // 4)


def sizes_of(asked: PaperRun, folder: Path) -> tuple[int, int, int]:
    """The requests, prompt tokens and generated tokens at most of a run, counted from its requests."""
    n_requests = n_prompt = n_completion = 0
    for plan in Study(datasets=(folder,), configs=asked.configs, prompts=asked.prompts).usual_plans:
        for part in replace(plan, count_tokens=rough_tokens).parts:
            requests = [request for of_item in part.requests for request in of_item]
            n_requests += plan.prompt.n_rounds * len(requests)
            # What all prompts of a part begin with is computed once.
            head = os.path.commonprefix([request.prompt for request in requests])  # noqa: RUF071 - of texts, not paths
            n_prompt += rough_tokens(head)
            texts = [request for request in requests if isinstance(request, GenerateRequest)]
            longest = sum(request.max_tokens for request in texts)
            n_completion += longest
            if plan.prompt.follow_up is not None:
                # The answers are read again, at most as long as they may be.
                requests += [plan.prompt.following(request, "") for request in texts]
                n_prompt += longest
            for request in requests:
                options = request.options if isinstance(request, ChoiceRequest) else ()
                n_prompt += rough_tokens(request.prompt[len(head) :]) + sum(map(rough_tokens, options))
    return n_requests, n_prompt, n_completion


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "runs"),
    [("gifi", "own-problems,own-texts"), ("label-bias", "own-tasks"), ("synthbias", "own,families,reasoning")],
)
def test_the_counts_in_the_files_are_those_of_the_requests(tmp_path: Path, paper: str, runs: str) -> None:
    sizes, models = counted(paper, tmp_path, "--runs", runs)
    known = {one.name: one for one in PAPERS[paper].runs}
    assert list(sizes) == runs.split(",")
    for name, (dataset, *numbers) in sizes.items():
        assert numbers == [f"{number:,}" for number in sizes_of(known[name], tmp_path / "out/datasets" / dataset)]
    with_hours = [cells for cells in models.values() if cells[2] != "unknown"]
    assert with_hours
    assert all(abs(float(usd) - 3.0 * float(hours)) <= 0.65 for *_, hours, usd in with_hours)


def test_without_models_nothing_is_asked_and_what_is_there_is_compared(tmp_path: Path) -> None:
    done = run("-m", "biasboard", "reproduce", "bbq", cwd=tmp_path, status=0)
    assert "published: the authors published the answers: --answers FOLDER imports them" in done.stdout
    assert "bbq-published is not built: give --input bbq-published=PATH, the folder " in done.stdout
    # The accepted results are of these very answers.
    assert (
        "holds: Models are much more accurate where the context tells the answer. (published answers: " in done.stdout
    )
    assert "papers/bbq.html shows each value beside the printed one" in done.stdout


def test_what_is_not_built_is_taken_from_the_file(tmp_path: Path) -> None:
    sizes, models = counted("label-bias", tmp_path, "--runs", "279-tasks", "--gpu-hour", "2")
    (size,) = sizes.values()
    assert size[1] == "3,938,441"
    seven = models["Llama-2 7B"]
    # 2 operations for each of 7 billion parameters and 592 million tokens, at 316 TFLOP/s: the page Cluster says 6.3
    # for the evaluated items alone.
    assert seven[2:] == ["7.3", "15"]
