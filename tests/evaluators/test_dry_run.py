"""What a run would ask, told beforehand: right, and without asking or writing anything."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from typer.testing import Result

from evaluators.backend import OF_LANGUAGE_MODELS, TokenCount
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.plan.earlier_answers import AnswerStores
from evaluators.runs.plan.estimate import Estimate, estimate, sampled_estimate
from evaluators.runs.plan.plan import Plan, Selection, select
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.fake_endpoint import FakeEndpoint
from tests.evaluators.invoking import evaluators
from tests.evaluators.logging_backend import LoggingBackend, finish
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset

PROMPT = prompt_of(TASK, "mcq2-v1")
N_REQUESTS = 60 * 2


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    items = {"type1": made_items(30, ambiguous=True), "type2": made_items(30)}
    return write_dataset(tmp_path / "data", items)


def selected(dataset: Path, limit: int | None = None) -> Selection:
    return select(dataset, read_manifest(dataset), "type2", limit=limit)


def estimated(dataset: Path, tmp_path: Path, cache: Path | None = None, limit: int | None = None) -> Estimate:
    stores = AnswerStores(root=tmp_path / "runs", cache=cache)
    return estimate(
        Plan(selected(dataset, limit), TASK, PROMPT), LoggingBackend(tmp_path / "dry.log"), stores, "unused"
    )


def asked(dataset: Path, tmp_path: Path, backend: LoggingBackend, **how: Any) -> Finished:
    return finish(dataset, tmp_path / "runs", backend, config="type2", **how)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_left_to_ask_is_told_exactly_and_nothing_is_touched(dataset: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    fresh = estimated(dataset, tmp_path, cache)
    assert (fresh.n_items, fresh.n_requests, fresh.n_distinct_requests) == (60, N_REQUESTS, N_REQUESTS)
    assert (fresh.n_answered, fresh.n_to_ask, fresh.n_prompt_tokens) == (0, N_REQUESTS, 10 * N_REQUESTS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]

    backend = LoggingBackend(tmp_path / "log")
    asked(dataset, tmp_path, backend, limit=20, cache=cache)
    before = files(tmp_path)
    known_to_cache = estimated(dataset, tmp_path, cache)
    known_to_run = estimated(dataset, tmp_path, limit=20)
    known_to_part = estimated(dataset, tmp_path)
    elsewhere = AnswerStores(root=tmp_path / "elsewhere", cache=None)
    unknown = estimate(Plan(selected(dataset), TASK, PROMPT), backend, elsewhere, "unused")
    assert (known_to_cache.n_answered, known_to_cache.n_to_ask) == (40, N_REQUESTS - 40)
    assert known_to_cache.n_prompt_tokens == 10 * (N_REQUESTS - 40)
    assert (known_to_run.n_answered, known_to_run.n_to_ask, known_to_run.store_bytes) == (40, 0, 0)
    assert (known_to_part.n_answered, known_to_part.n_to_ask) == (40, N_REQUESTS - 40)
    assert (unknown.n_to_ask, unknown.seconds_left) == (N_REQUESTS, None)
    assert files(tmp_path) == before
    assert not (tmp_path / "dry.log").exists()

    finished = asked(dataset, tmp_path, backend, cache=cache)
    assert finished.result.usage.n_attempts == known_to_cache.n_to_ask


def test_what_follows_from_answers_is_counted_before_they_are_there(dataset: Path, tmp_path: Path) -> None:
    stores = AnswerStores(root=tmp_path / "runs", cache=None)
    prompt = prompt_of(TASK, "cot-logprob-v1")
    backend = LoggingBackend(tmp_path / "log", capabilities=OF_LANGUAGE_MODELS)

    def told(limit: int | None = None) -> Estimate:
        return estimate(Plan(selected(dataset, limit), TASK, prompt), backend, stores, "unused")

    fresh = told()
    assert (fresh.n_requests, fresh.n_distinct_requests, fresh.n_to_ask) == (240, 240, 240)
    # Ten tokens each, and in the second round the longest answers again.
    assert (fresh.n_prompt_tokens, fresh.n_prompt_tokens_at_most) == (None, 240 * 10 + 120 * 256)
    assert (fresh.n_completion_tokens, fresh.is_counted_in_bytes) == (120 * 256, False)
    sampled = sampled_estimate(Plan(selected(dataset), TASK, prompt), backend, stores, "unused", n_items=6)
    assert (sampled.n_requests, sampled.n_prompt_tokens_at_most) == (240, fresh.n_prompt_tokens_at_most)
    assert not (tmp_path / "log").exists()

    asked(dataset, tmp_path, backend, limit=20, prompt=prompt.id)
    rest, done = told(), told(20)
    assert (rest.n_answered, rest.n_to_ask, rest.n_prompt_tokens_at_most) == (80, 160, 160 * 10 + 80 * 256)
    assert (done.n_answered, done.n_to_ask, done.n_prompt_tokens, done.store_bytes) == (80, 0, 0, 0)
    # Texts without their scores, as after a stop between the rounds, tell the rest exactly.
    with closing(sqlite3.connect(next((tmp_path / "runs").rglob("responses.sqlite")))) as store:
        store.execute("DELETE FROM responses WHERE json_extract(CAST(response AS TEXT), '$.text') IS NULL")
        store.commit()
    stopped = told(20)
    assert (stopped.n_answered, stopped.n_to_ask, stopped.n_prompt_tokens) == (40, 40, 400)


def test_requests_that_items_share_are_counted_once(tmp_path: Path) -> None:
    items = made_items(4)
    dataset = write_dataset(tmp_path / "data", {"type2": items[:2] * 2 + items[4:]})
    found = estimated(dataset, tmp_path)
    assert (found.n_items, found.n_requests, found.n_distinct_requests) == (8, 16, 12)
    stores = AnswerStores(root=tmp_path / "runs", cache=None)
    plan = Plan(selected(dataset), TASK, PROMPT)
    sampled = sampled_estimate(plan, LoggingBackend(tmp_path / "log"), stores, "unused", n_items=8)
    assert (sampled.n_requests, sampled.n_to_ask) == (16, 12)
    assert sampled.n_prompt_tokens == found.n_prompt_tokens


def runs_of(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.stderr
    return list(json.loads(done.stdout)["runs"])


@pytest.mark.slow
def test_tokens_of_a_language_model_are_those_that_its_result_counts(dataset: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    asked = ("run", "--dataset", dataset, "--backend", "transformers", "--model", save_tiny_llama(tmp_path / "model"))
    command = (*asked, "--device", "cpu", "--out", tmp_path / "runs", "--format", "json")
    told = runs_of(evaluators(*command, "--dry-run"))
    assert not (tmp_path / "runs").exists()
    counted = {one["config"]: one["usage"]["n_prompt_tokens"] for one in runs_of(evaluators(*command))}
    assert {one["config"]: one["n_prompt_tokens"] for one in told} == counted
    again = runs_of(evaluators(*command, "--dry-run"))
    assert [(one["n_to_ask"], one["n_prompt_tokens"]) for one in again] == [(0, 0), (0, 0)]


@pytest.mark.slow
def test_baselines_and_replays_take_no_tokens(dataset: Path, tmp_path: Path) -> None:
    command = ("run", "--dataset", dataset, "--out", tmp_path / "none", "--dry-run")
    told = evaluators(*command, "--backend", "baseline", "--model", "uniform").stdout
    rows = [line.split()[:7] for line in told.splitlines() if line.startswith("type")]
    assert rows == [[name, "60", "60", "60", "0", "0", "0"] for name in ("type1", "type2")]
    assert "no item was asked" in told
    replay = ("--backend", "replay", "--model", asked(dataset, tmp_path, LoggingBackend(tmp_path / "log")).folder)
    replayed = runs_of(evaluators(*command, *replay, "--config", "type2", "--format", "json"))
    assert [(one["n_to_ask"], one["n_prompt_tokens"]) for one in replayed] == [(60, 0)]
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_an_endpoint_is_not_asked_and_the_price_is_that_of_the_tokens(
    dataset: Path, folder: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    pytest.importorskip("openai", reason="the extra openai is not installed")
    (tmp_path / "prices.toml").write_text('["made-*"]\ninput = 2.0\noutput = 8.0\n')
    with FakeEndpoint(tokenizer) as endpoint:
        asked = ("run", "--dataset", dataset, "--backend", "openai", "--model", "made-model")
        command = (*asked, "--base-url", endpoint.url, "--out", tmp_path / "none", "--dry-run")
        for one in runs_of(evaluators(*command, "--format", "json")):
            assert (one["model"], one["n_items"], one["n_to_ask"]) == ("made-model", 60, 60)
            assert (one["n_answered"], one["n_prompt_tokens"], one["cost_usd"]) == (None, None, None)
        said = evaluators(*command).stdout
        assert "price unknown; give --prices FILE" in said
        # A sum of what nobody knows is unknown too: the columns of tokens and prices have nothing to tell.
        (in_all,) = (line.split()[2:] for line in said.splitlines() if line.startswith("in all"))
        assert in_all[:3] == ["120", "120", "120"]
        assert "0" not in in_all
        priced = (*command, "--config", "type2", "--tokenizer", folder, "--prices", tmp_path / "prices.toml")
        (one,) = runs_of(evaluators(*priced, "--format", "json"))
        tokens = TokenCount(one["n_prompt_tokens"], one["n_completion_tokens"])
        assert tokens.n_prompt > 60 * 10
        assert one["cost_usd"] == pytest.approx((2.0 * tokens.n_prompt + 8.0 * tokens.n_completion) / 1e6)
        assert f"at most US$ {one['cost_usd']:.4f} in all" in evaluators(*priced).stdout
        assert endpoint.n_received == 0
    assert not (tmp_path / "none").exists()
