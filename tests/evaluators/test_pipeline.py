"""Runs: killed and resumed, failing, refused, limited, and never sharing answers between models."""

from __future__ import annotations

import itertools
import math
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from biasboard.ground.errors import ConfigError, DataError, RunError
from evaluators.backend import (
    OF_LANGUAGE_MODELS,
    Answers,
    Capability,
    ChoiceRequest,
    Events,
    Request,
    Response,
    Sent,
)
from evaluators.runs.ask import pipeline
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.stores.read_only import read_answers
from evaluators.stores.store import ResponseStore
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.documents.record import ExchangeStatus
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from tests.commands import Command, run, started
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset

N_PAIRS = 100
N_REQUESTS = 2 * N_PAIRS * 2  # two sides, two orders
N_BATCHES = N_REQUESTS // 16


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(N_PAIRS)})


LOGGING = ("-m", "tests.evaluators.logging_backend")


def killed_run(dataset: Path, out: Path, log: Path, kill_at: int | None, **variables: Any) -> int:
    return run(*LOGGING, dataset, out, log, *([] if kill_at is None else [kill_at]), **variables).returncode


def only(folder: Path, name: str) -> Path:
    (found,) = folder.rglob(name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [1, N_BATCHES // 2, N_BATCHES])
def test_kill_9_loses_nothing_that_was_answered(dataset: Path, tmp_path: Path, kill_at: int) -> None:
    whole = ask(dataset, tmp_path / "whole", LoggingBackend(tmp_path / "whole.log"))
    log, out = tmp_path / "killed.log", tmp_path / "killed"
    assert killed_run(dataset, out, log, kill_at) == -signal.SIGKILL
    assert not list(out.rglob("result.json"))
    assert not list(out.rglob("records.parquet"))
    answered = set(read_answers(only(out, "responses.sqlite")))
    n_lost = (kill_at - 1) * 16 - len(answered)
    assert n_lost in (0, 16)[:kill_at], "no more than the group that was being written"
    sent_before = log.read_text().split()
    assert killed_run(dataset, out, log, None) == 0
    sent_after = log.read_text().split()[len(sent_before) :]
    assert not answered & set(sent_after), "an answered request was asked again"
    counts = Counter(sent_before + sent_after)
    assert len(counts) == N_REQUESTS
    assert sum(counts.values()) == N_REQUESTS + 16 + n_lost, "only what was under way is sent twice"
    assert only(out, "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()
    usage = read_run(only(out, "result.json").parent).result.usage
    assert usage.n_requests == N_REQUESTS
    assert N_REQUESTS <= usage.n_attempts <= sum(counts.values())


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [2, N_BATCHES, N_BATCHES + 1, N_BATCHES + 9])
def test_kill_9_in_either_round_asks_nothing_twice(dataset: Path, tmp_path: Path, kill_at: int) -> None:
    model = LoggingBackend(tmp_path / "whole.log", capabilities=OF_LANGUAGE_MODELS)
    whole = ask(dataset, tmp_path / "whole", model, prompt="cot-logprob-v1")
    log, out = tmp_path / "killed.log", tmp_path / "killed"
    assert killed_run(dataset, out, log, kill_at, PROMPT="cot-logprob-v1") == -signal.SIGKILL
    answered = set(read_answers(only(out, "responses.sqlite")))
    sent_before = log.read_text().split()
    assert killed_run(dataset, out, log, None, PROMPT="cot-logprob-v1") == 0
    counts = Counter(log.read_text().split())
    assert not answered & set(log.read_text().split()[len(sent_before) :]), "an answered request was asked again"
    assert len(counts) == 2 * N_REQUESTS
    assert counts.keys() == set((tmp_path / "whole.log").read_text().split())
    assert only(out, "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()
    assert read_run(only(out, "result.json").parent).result.usage.n_requests == 2 * N_REQUESTS


def test_options_are_scored_after_what_the_model_wrote(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(10)})
    model = LoggingBackend(tmp_path / "log", capabilities=OF_LANGUAGE_MODELS)
    folder = ask(dataset, tmp_path / "runs", model, prompt="cot-logprob-v1")
    records = read_run(folder).records
    assert {record.status for record in records} == {"scored"}
    for record in records:
        texts, choices = record.exchanges[:2], record.exchanges[2:]
        assert [exchange.kind for exchange in record.exchanges] == ["generate", "generate", "choice", "choice"]
        for text, choice in zip(texts, choices, strict=True):
            assert choice.prompt == f"{text.prompt}{text.text}\nAnswer:"
            assert (choice.options, choice.outcomes) == ((" A", " B"), text.outcomes)
        assert record.truncated == any(exchange.finish_reason == "length" for exchange in texts)
    assert len({record.truncated for record in records}) == 2
    assert any(exchange.text == "" for record in records for exchange in record.exchanges)


@pytest.mark.parametrize("status", ["refused", "failed"])
def test_after_an_answer_that_is_none_nothing_more_is_asked_about_the_item(
    tmp_path: Path, status: ExchangeStatus
) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(10)})
    bad = TASK.requests(made_items(10)[3], Asked(prompt_of(TASK, "cot-logprob-v1")))[1].sha256

    def status_of(request: Request) -> ExchangeStatus:
        return status if request.sha256 == bad else "answered"

    model = LoggingBackend(tmp_path / "log", status=status_of, capabilities=OF_LANGUAGE_MODELS)
    folder = ask(dataset, tmp_path / "runs", model, prompt="cot-logprob-v1")
    records = read_run(folder).records
    (record,) = (record for record in records if record.status != "scored")
    assert (record.status, record.reason, len(record.exchanges)) == (status, f"made to be {status}", 2)
    assert len((tmp_path / "log").read_text().split()) == 40 + 38


def test_failures_of_both_rounds_count_against_the_limit(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(10)})

    def status_of(request: Request) -> ExchangeStatus:
        return "failed" if isinstance(request, ChoiceRequest) else "answered"

    model = LoggingBackend(tmp_path / "log", status=status_of, capabilities=OF_LANGUAGE_MODELS)
    with pytest.raises(RunError, match="of 80 requests failed, more than the 4 that"):
        ask(dataset, tmp_path / "runs", model, prompt="cot-logprob-v1")
    model.status = lambda request: "answered"
    (tmp_path / "log").unlink()
    ask(dataset, tmp_path / "runs", model, prompt="cot-logprob-v1")
    assert len((tmp_path / "log").read_text().split()) == 40, "texts were asked again"


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_no_record(tmp_path: Path) -> None:
    n_pairs = int(os.environ.get("BIASBOARD_KILL_TEST_PAIRS", "400"))
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(n_pairs)})
    whole = ask(dataset, tmp_path / "whole", LoggingBackend(tmp_path / "whole.log"), prompt="intrinsic-v1")
    log, out = tmp_path / "killed.log", tmp_path / "killed"
    rng = np.random.default_rng(0)
    known = 0
    # A pause per batch, or the machine would be too fast to be killed in the middle.
    variables: dict[str, Any] = {"BATCH_PAUSE": "0.002", "PROMPT": "intrinsic-v1"}
    for n_more in rng.integers(1, 2 * n_pairs // 12, size=10):
        with started(*LOGGING, dataset, out, log, **variables) as command:
            known = wait_for_answers(out, command, at_least=known + int(n_more))
            command.kill()
        assert not list(out.rglob("result.json")), "it was over before it could be killed"
    run(*LOGGING, dataset, out, log, status=0, **variables)
    assert only(out, "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()
    counts = Counter(log.read_text().split())
    assert len(counts) == 2 * n_pairs
    # Of each life at most the batch that was under way, and the one that was being written.
    assert sum(counts.values()) <= 2 * n_pairs + 10 * 32


@pytest.mark.slow
def test_ctrl_c_and_kill_9_of_a_language_model_run_change_no_byte(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    model = save_tiny_llama(tmp_path / "model")
    # One request per batch, so that the run is in its middle for seconds.
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(300)})
    opened = ("--backend", "transformers", "--model", model, "--device", "cpu", "--batch-tokens", "64")
    words = ("-m", "evaluators", "run", "--dataset", dataset, *opened)
    run(*words, "--out", tmp_path / "whole", status=0)
    with started(*words, "--out", tmp_path / "killed") as interrupted:
        n_interrupted = wait_for_answers(tmp_path / "killed", interrupted, at_least=20)
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait() == 130
        told = "stopped; the answers so far are kept, and the same command continues from there"
        assert told in interrupted.stderr
    with started(*words, "--out", tmp_path / "killed") as killed:
        n_killed = wait_for_answers(tmp_path / "killed", killed, at_least=n_interrupted + 20)
        killed.kill()
    assert 20 <= n_interrupted < n_killed < 600, "the run was not in its middle"
    assert not list((tmp_path / "killed").rglob("result.json"))
    run(*words, "--out", tmp_path / "killed", status=0)
    whole, resumed = (only(tmp_path / name, "records.parquet").read_bytes() for name in ("whole", "killed"))
    assert whole == resumed


def wait_for_answers(out: Path, command: Command, *, at_least: int) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert command.poll() is None, f"ended before it could be killed: {command.stderr}"
        for path in out.rglob("responses.sqlite"):
            try:
                with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                    (n,) = connection.execute("SELECT COUNT(*) FROM responses").fetchone()
            except sqlite3.OperationalError:
                continue  # Its tables are not there yet.
            if n >= at_least:
                return int(n)
        time.sleep(0.002)
    raise AssertionError("no answers within two minutes")


@pytest.mark.slow
def test_ctrl_c_keeps_the_answers_and_says_so(dataset: Path, tmp_path: Path) -> None:
    class Interrupted(LoggingBackend):
        def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
            if self.n_batches == 3:
                raise KeyboardInterrupt
            return super().answer(requests)

    with pytest.raises(KeyboardInterrupt):
        ask(dataset, tmp_path / "runs", Interrupted(tmp_path / "log"))
    assert len(read_answers(only(tmp_path / "runs", "responses.sqlite"))) == 48
    again = LoggingBackend(tmp_path / "again.log")
    ask(dataset, tmp_path / "runs", again)
    assert len((tmp_path / "again.log").read_text().split()) == N_REQUESTS - 48


@pytest.mark.slow
def test_a_finished_run_asks_nothing_and_writes_the_same(dataset: Path, tmp_path: Path) -> None:
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    before = {name: (folder / name).read_bytes() for name in ("result.json", "records.parquet")}
    (tmp_path / "log").unlink()
    assert ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log")) == folder
    assert not (tmp_path / "log").exists()
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.slow
def test_two_models_never_share_an_answer(dataset: Path, tmp_path: Path) -> None:
    one = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", name="tests/one"))
    other = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", name="tests/other"))
    assert one != other
    assert len((tmp_path / "log").read_text().split()) == 2 * N_REQUESTS
    # A foreign store copied into the folder of a run is no use to it.
    for name in ("result.json", "records.parquet", "responses.sqlite"):
        (other / name).unlink()
    (other / "responses.sqlite").write_bytes((one / "responses.sqlite").read_bytes())
    ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", name="tests/other"))
    assert len((tmp_path / "log").read_text().split()) == 3 * N_REQUESTS


@pytest.mark.slow
def test_too_many_failures_end_the_run_without_a_result(dataset: Path, tmp_path: Path) -> None:
    def mostly_failed(request: Request) -> ExchangeStatus:
        return "failed" if request.sha256[-1] in "0123" else "answered"

    with pytest.raises(RunError, match=r"requests failed, more than the 20 .* made to be failed\. Answers are kept"):
        ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", status=mostly_failed))
    assert not list((tmp_path / "runs").rglob("result.json"))
    # What was answered is kept; the failed ones are asked again.
    kept = len(read_answers(only(tmp_path / "runs", "responses.sqlite")))
    assert kept > 0
    ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "again"))
    assert len((tmp_path / "again").read_text().split()) == N_REQUESTS - kept


@pytest.mark.slow
def test_few_failures_and_refusals_are_statuses_and_never_wrong_answers(dataset: Path, tmp_path: Path) -> None:
    def status(request: Request) -> ExchangeStatus:
        first = request.sha256[:2]
        return "failed" if first < "04" else "refused" if first < "20" else "answered"

    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", status=status), rate=0.2)
    result, records = read_run(folder)
    by_status = Counter(record.status for record in records)
    assert by_status["refused"] > 0
    assert by_status["failed"] > 0
    assert (result.counts.refused, result.counts.failed) == (by_status["refused"], by_status["failed"])
    accuracy = next(metric for metric in result.metrics if metric.name == "accuracy" and not metric.group)
    assert (accuracy.n, accuracy.n_excluded) == (by_status["scored"], 2 * N_PAIRS - by_status["scored"])
    pairs: dict[str | None, int] = {}
    for record in records:
        pairs[record.pair_id] = pairs.get(record.pair_id, 0) + (record.status == "scored")
    ucerf = next(metric for metric in result.metrics if metric.name == "ucerf" and not metric.group)
    assert ucerf.n == sum(n == 2 for n in pairs.values())
    assert ucerf.n_excluded == sum(n < 2 for n in pairs.values())


def test_half_a_character_of_an_endpoint_is_stored_as_an_unknown_one(dataset: Path, tmp_path: Path) -> None:
    class CutApart(LoggingBackend):
        def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
            return [replace(answer, finish_reason="B \ud83d") for answer in super().answer(requests)]

    _, records = read_run(ask(dataset, tmp_path / "runs", CutApart(tmp_path / "log")))
    assert {exchange.finish_reason for record in records for exchange in record.exchanges} == {"B \ufffd"}


NO_RESPONSES: dict[str, dict[str, Any]] = {
    "NaN": {"option_logprobs": (math.nan, -1.0)},
    "more than certain": {"option_logprobs": (0.5, -1.0)},
    "an infinity": {"option_logprobs": (math.inf, -1.0)},
    "too few options": {"option_logprobs": (-1.0,)},
    "too many options": {"option_logprobs": (-1.0, -2.0, -3.0)},
    "words": {"option_logprobs": ("low", "high")},
    "a complex number": {"option_logprobs": (1j, -1.0)},
    "NaN at the end": {"option_end_logprobs": (math.nan, None)},
    "fewer tokens than none": {"option_token_counts": (-5, 2)},
    "half a token": {"option_token_counts": (1.5, 2)},
    "moved back": {"n_moved_tokens": -3},
    "tokens without number": {"n_prompt_tokens": 10**30},
    "no such status": {"status": "odd\x1b[31m"},
    "bytes as text": {"text": b"x"},
    "a number as reason": {"error": 5},
}


class Changing(LoggingBackend):
    """A backend whose events are changed by a rule."""

    rule: Callable[[Answers], Any]

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """With other answers."""
        for event in super().ask(requests, missing):
            yield event if isinstance(event, Sent) else self.rule(event)


def changing(log: Path, rule: Callable[[Answers], Any]) -> Changing:
    backend = Changing(log)
    backend.rule = rule
    return backend


@pytest.mark.parametrize("name", NO_RESPONSES)
def test_what_no_record_can_hold_is_refused_before_it_is_stored(name: str, dataset: Path, tmp_path: Path) -> None:
    def rule(event: Answers) -> Answers:
        return event._replace(
            responses={index: replace(one, **NO_RESPONSES[name]) for index, one in event.responses.items()}
        )

    with pytest.raises(ConfigError, match="gives a response that no record can hold: ") as told:
        ask(dataset, tmp_path / "runs", changing(tmp_path / "log", rule))
    assert str(told.value).isprintable()
    # The mended backend goes on as if nothing had been answered.
    assert ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log")).is_dir()


@pytest.mark.parametrize("index", [-1, 10**6, "0"])
def test_answers_to_what_was_not_asked_are_refused(index: Any, dataset: Path, tmp_path: Path) -> None:
    backend = changing(
        tmp_path / "log", lambda event: event._replace(responses={index: next(iter(event.responses.values()))})
    )
    with pytest.raises(ConfigError, match="answers a request that it was not asked; correct the backend"):
        ask(dataset, tmp_path / "runs", backend)


def test_numbers_of_other_types_are_floats(dataset: Path, tmp_path: Path) -> None:
    def rule(event: Answers) -> Answers:
        return event._replace(
            responses={
                index: replace(one, option_logprobs=tuple(Decimal(str(value)) for value in one.option_logprobs))  # type: ignore[misc]
                for index, one in event.responses.items()
            }
        )

    folders = [
        ask(dataset, tmp_path / name, backend)
        for name, backend in (
            ("decimal", changing(tmp_path / "log", rule)),
            ("plain", LoggingBackend(tmp_path / "log")),
        )
    ]
    assert len({(folder / "records.parquet").read_bytes() for folder in folders}) == 1


@pytest.mark.slow
def test_a_shared_store_is_asked_first_and_costs_nothing_known(dataset: Path, tmp_path: Path) -> None:
    manifest = read_manifest(dataset)
    selection = select(dataset, manifest, "type2")
    prompt = prompt_of(TASK, "mcq2-v1")
    cache = tmp_path / "cache.sqlite"
    folders = [
        pipeline.run(
            Plan(selection, TASK, prompt, normalisation),
            LoggingBackend(tmp_path / "log"),
            RunOptions(root=tmp_path / "runs", cache=cache, command="tests"),
        ).folder
        for normalisation in ("sum", "token_mean")
    ]
    first, second = (read_run(folder).result for folder in folders)
    assert len((tmp_path / "log").read_text().split()) == N_REQUESTS
    assert (first.usage.n_attempts, second.usage.n_attempts) == (N_REQUESTS, 0)
    assert second.usage.cost_usd is None
    assert (first.counts.scored, second.counts.scored) == (2 * N_PAIRS, 2 * N_PAIRS)


def test_a_store_that_another_process_holds_is_not_called_broken(tmp_path: Path) -> None:
    path, model = tmp_path / "s.sqlite", LoggingBackend(tmp_path / "log").model
    with ResponseStore(path, model) as store:
        store.sent(Sent(1, 0.5))
        assert store.totals().cost_usd == 0.5
        store.sent(Sent(1, None))
        assert store.totals().cost_usd is None
    with ResponseStore(path, model, busy_seconds=0.1) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.sent(Sent(1))
        with pytest.raises(RunError, match="another process has been writing to it"):
            store.totals()
        other.rollback()


def test_a_limit_keeps_pairs_whole_and_is_the_same_everywhere(dataset: Path, tmp_path: Path) -> None:
    orphans = [item for number, item in enumerate(made_items(20)) if number % 4]
    mixed = write_dataset(tmp_path / "mixed", {"type2": orphans})
    limited = [select(mixed, read_manifest(mixed), "type2", limit=limit).items for limit in range(2, 31)]
    taken = [{item.item_id for _, item in items} for items in limited]
    assert all(smaller <= larger for smaller, larger in itertools.pairwise(taken))
    manifest = read_manifest(dataset)
    chosen = select(dataset, manifest, "type2", limit=51)
    again = select(dataset, manifest, "type2", limit=51)
    sizes = Counter(item.unit for _, item in chosen.items)
    assert set(sizes.values()) == {2}
    assert len(chosen.items) == 50
    assert chosen == again
    larger = {item.item_id for _, item in select(dataset, manifest, "type2", limit=80).items}
    assert {item.item_id for _, item in chosen.items} < larger
    with pytest.raises(ConfigError, match="raise it to 2 or more"):
        select(dataset, manifest, "type2", limit=1)


def test_unknown_configs_and_splits_name_those_that_exist(dataset: Path) -> None:
    manifest = read_manifest(dataset)
    with pytest.raises(ConfigError, match="config 'type9' is not in dataset 'made'; have: type2"):
        select(dataset, manifest, "type9")
    with pytest.raises(ConfigError, match="split 'train' is not in config 'type2'; have: test"):
        select(dataset, manifest, "type2", splits=["train"])


def test_a_slice_has_another_signature(dataset: Path, tmp_path: Path) -> None:
    manifest = read_manifest(dataset)
    folders = set()
    for limit in (None, 50):
        selection = select(dataset, manifest, "type2", limit=limit)
        backend = LoggingBackend(tmp_path / "log")
        finished = pipeline.run(
            Plan(selection, TASK, prompt_of(TASK, None)), backend, RunOptions(root=tmp_path / "runs", command="tests")
        )
        folders.add((finished.folder, finished.result.signature_sha256))
    assert len({folder for folder, _ in folders}) == len({signature for _, signature in folders}) == 2


@pytest.mark.parametrize(
    ("can", "lacks", "instead"),
    [("generation", "option_logprobs", ("cot-v1",)), ("option_logprobs", "generation", ("mcq2-v1",))],
)
def test_a_backend_that_can_do_one_half_is_refused(
    dataset: Path, tmp_path: Path, can: Capability, lacks: str, instead: tuple[str, ...]
) -> None:
    model = LoggingBackend(tmp_path / "log", capabilities=frozenset({can}))
    with pytest.raises(ConfigError, match=f"cannot do {lacks}, which prompt 'cot-logprob-v1' needs") as refused:
        ask(dataset, tmp_path / "runs", model, prompt="cot-logprob-v1")
    told = str(refused.value).partition("prompts for that: ")[2].partition(";")[0].split(", ")
    assert {*instead} <= {*told}
    assert "cot-logprob-v1" not in told
    able = str(refused.value).partition("backends that can: ")[2].split(", ")
    assert {"transformers", "vllm", "replay"} <= {*able}
    assert "clip" not in able
    assert not (tmp_path / "log").exists()


def test_a_backend_that_cannot_is_refused_before_the_first_request(dataset: Path, tmp_path: Path) -> None:
    backend = LoggingBackend(tmp_path / "log", capabilities=frozenset())
    with pytest.raises(ConfigError, match="'transformers' cannot do option_logprobs, which prompt 'mcq2-v1' needs"):
        ask(dataset, tmp_path / "runs", backend)
    assert not (tmp_path / "log").exists()
    assert not (tmp_path / "runs").exists()


def test_two_processes_do_not_share_a_run(dataset: Path, tmp_path: Path) -> None:
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    with FileLock(folder / ".lock"), pytest.raises(RunError, match="another process holds this run"):
        ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))


def test_prompts_of_data_that_may_not_be_shared_are_not_in_the_records(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(4)}, redistributable=False)
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    _, records = read_run(folder)
    assert {exchange.prompt for record in records for exchange in record.exchanges} == {None}
    assert b"waited for" not in (folder / "records.parquet").read_bytes()
    assert b"waited for" not in (folder / "result.json").read_bytes()


def test_a_store_that_is_none_is_a_clear_error(dataset: Path, tmp_path: Path) -> None:
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    (folder / "responses.sqlite").write_bytes(b"no database at all, but long enough to look like one" * 9)
    with pytest.raises(RunError, match=r"not a usable response store .* move it away to start over"):
        ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))


def test_a_store_that_breaks_later_is_a_clear_error_too(dataset: Path, tmp_path: Path) -> None:
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    with closing(sqlite3.connect(folder / "responses.sqlite")) as connection, connection:
        connection.execute("UPDATE responses SET response = '{}'")
    with pytest.raises(RunError, match="not a usable response store"):
        ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))


def test_changed_records_are_noticed(dataset: Path, tmp_path: Path) -> None:
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    path = folder / "records.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(DataError):
        read_run(folder)
