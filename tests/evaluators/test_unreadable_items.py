"""Runs whose answers come and cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import RunError
from evaluators.backend import Request, Response
from evaluators.runs.ask.pipeline import run
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.stores.read_only import read_answers
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset

N_PAIRS = 100
N_REQUESTS = 4 * N_PAIRS


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(N_PAIRS)})


def only(folder: Path, name: str) -> Path:
    (found,) = folder.rglob(name)
    return found


@pytest.mark.slow
def test_what_cannot_be_read_is_found_out_before_all_is_asked(dataset: Path, tmp_path: Path) -> None:
    class Merging(LoggingBackend):
        def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
            return [replace(answer, n_moved_tokens=1) for answer in super().answer(requests)]

    manifest = read_manifest(dataset)
    with pytest.raises(RunError, match=r"first 20 answered items .* use the normalisation sum; the rest was not asked"):
        run(
            Plan(select(dataset, manifest, "type2"), TASK, prompt_of(TASK, "mcq2-v1"), "token_mean"),
            Merging(tmp_path / "log"),
            RunOptions(root=tmp_path / "runs", command="tests"),
        )
    assert len((tmp_path / "log").read_text().split()) < N_REQUESTS
    folder = ask(dataset, tmp_path / "runs", Merging(tmp_path / "log"))
    assert read_run(folder).result.counts.failed == 0


def test_items_that_cannot_be_read_leave_no_result(dataset: Path, tmp_path: Path) -> None:
    manifest = read_manifest(dataset)
    backend = LoggingBackend(tmp_path / "log")
    with pytest.raises(RunError, match=r"none of the first 20 answered items could be read: .* no end token"):
        run(
            Plan(select(dataset, manifest, "type2"), TASK, prompt_of(TASK, None), "sum_with_end"),
            backend,
            RunOptions(root=tmp_path / "runs", command="tests"),
        )
    assert not list((tmp_path / "runs").rglob("result.json"))
    assert 20 <= len(read_answers(only(tmp_path / "runs", "responses.sqlite"))) < 200


def test_items_that_cannot_be_read_later_on_leave_no_result_either(dataset: Path, tmp_path: Path) -> None:
    class PartlyMerging(LoggingBackend):
        def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
            return [
                replace(answer, n_moved_tokens=int(request.sha256[0] in "01234567"))
                for request, answer in zip(requests, super().answer(requests), strict=True)
            ]

    manifest = read_manifest(dataset)
    # Half of the items cannot be read, and of the first twenty some can.
    with pytest.raises(RunError, match=r"of 200 items failed, more than the share of 0\.05 .*: the tokenizer"):
        run(
            Plan(select(dataset, manifest, "type2"), TASK, prompt_of(TASK, None), "token_mean"),
            PartlyMerging(tmp_path / "log", batch=200),
            RunOptions(root=tmp_path / "runs", command="tests"),
        )
    assert not list((tmp_path / "runs").rglob("result.json"))
    assert len(read_answers(only(tmp_path / "runs", "responses.sqlite"))) == 200
