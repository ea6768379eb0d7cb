"""Stored answers as files: what is written is what was answered, and it replays to the same records."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluators.backend import Backend, ChoiceRequest, GenerateRequest, Request, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.replay import open_backend as open_replay
from evaluators.runs.ask.pipeline import run
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.stores.store import ResponseStore, store_key
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.documents.result import Model
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import Run, read_run
from tests.evaluators.invoking import evaluators
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import made_items, write_dataset

N_PAIRS = 30
N_REQUESTS = 2 * N_PAIRS * 2  # two sides, two orders


def model_named(name: str) -> Model:
    return LoggingBackend(Path("unused"), name=name).model


def choice(prompt: str) -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=(" a", " b"), outcomes=("a", "b"))


SOUND = Response(status="answered", option_logprobs=(-0.5, -1.5), option_end_logprobs=(None, None))


@pytest.mark.slow
def test_an_exported_file_replays_to_the_same_records(tmp_path: Path) -> None:
    dataset, cache = write_dataset(tmp_path / "data", {"type2": made_items(30)}), tmp_path / "cache.sqlite"
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), TASK, prompt_of(TASK, "mcq2-v1"))

    def scored(name: str, backend: Backend, cache: Path | None = None) -> Run:
        options = RunOptions(root=tmp_path / name, cache=cache, max_failure_rate=0.5, command="tests")
        return read_run(run(plan, backend, options).folder)

    backend = LoggingBackend(
        tmp_path / "log", status=lambda request: "refused" if request.sha256[0] == "0" else "answered"
    )
    original = scored("runs", backend, cache)
    assert original.result.counts.refused > 0
    for out, more in (("answers.jsonl", ()), ("hashes.jsonl", ("--without-prompts",))):
        done = evaluators("cache", "export", cache, "--out", tmp_path / out, *more)
        assert (done.exit_code, done.stdout) == (0, f"120 answers in {tmp_path / out}\n"), done.stderr
        lines = (tmp_path / out).read_text().splitlines()
        assert len(lines) == 120
        assert {"prompt" in json.loads(line) for line in lines} == {not more}
        again = scored(f"runs-{out}", open_replay(str(tmp_path / out), BackendOptions(name="acme/imported")))
        assert [asdict(record) for record in again.records] == [asdict(record) for record in original.records]
        assert again.result.metrics == original.result.metrics


def test_every_answer_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    model = model_named("tests/one")
    odd = "line\u2028separators, \x85 and \n inside"
    answers: list[tuple[Request, Response]] = [
        (
            choice(odd),
            Response(
                status="answered",
                option_logprobs=(float("-inf"), -0.25),
                option_is_bound=(False, True),
                option_end_logprobs=(None, -1.0),
                option_token_counts=(1, None),
                n_moved_tokens=1,
                n_prompt_tokens=7,
                n_completion_tokens=0,
            ),
        ),
        (choice("refused"), Response(status="refused", error="not this")),
        (
            GenerateRequest(prompt=odd, max_tokens=9, temperature=0.7, stop=("\n",), sample=2, seed=3),
            Response(status="answered", text=odd, n_completion_tokens=4, finish_reason="length"),
        ),
        (GenerateRequest(prompt="empty", max_tokens=1), Response(status="answered", text="")),
    ]
    with ResponseStore(path, model) as store:
        store.add({store_key(model, request, with_facts=False): (request, answer) for request, answer in answers})
    for name in ("answers.jsonl", "answers.parquet"):
        assert evaluators("cache", "export", path, "--out", tmp_path / name).exit_code == 0
    backend = open_replay(str(tmp_path / "answers.jsonl"), BackendOptions())
    for request, answer in answers:
        (found,) = backend.answer([request])
        filled_in = {} if answer.option_end_logprobs else {"option_end_logprobs": (), "option_token_counts": ()}
        assert {**asdict(found), **filled_in} == asdict(answer)
    rows = {row["request_sha256"]: row for row in pq.read_table(tmp_path / "answers.parquet").to_pylist()}
    assert len(rows) == len(answers)
    for request, answer in answers:
        row = rows[request.sha256]
        assert (row["prompt"], row["text"], row["status"]) == (request.prompt, answer.text, answer.status)
        assert row["option_logprobs"] == list(answer.option_logprobs)
        assert row["kind"] == ("choice" if isinstance(request, ChoiceRequest) else "generate")


def test_an_export_of_several_models_needs_a_choice(tmp_path: Path) -> None:
    path, out = tmp_path / "cache.sqlite", tmp_path / "answers.jsonl"
    for name in ("tests/one", "tests/other"):
        model = model_named(name)
        with ResponseStore(path, model) as store:
            store.add({store_key(model, choice("x"), with_facts=False): (choice("x"), SOUND)})
    several = evaluators("cache", "export", path, "--out", out)
    assert several.exit_code == 1
    assert "2 models are meant" in several.stderr
    unknown = evaluators("cache", "export", path, "--out", out, "--model", "tests/none")
    assert "holds no answers of model 'tests/none'; have: tests/one, tests/other" in unknown.stderr
    assert "ends in .jsonl or .parquet" in evaluators("cache", "export", path, "--out", tmp_path / "x.csv").stderr
    assert not out.exists()
    identity = model_named("tests/other").identity_sha256[:12]
    assert evaluators("cache", "export", path, "--out", out, "--model", identity).exit_code == 0
    assert json.loads(out.read_text())["model"] == "tests/other"
    assert "exists already" in evaluators("cache", "export", path, "--out", out, "--model", identity).stderr
    assert evaluators("cache", "export", path, "--out", tmp_path / "all.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "all.parquet").num_rows == 2
