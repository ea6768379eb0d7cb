"""Runs: killed and resumed, failing, refused, limited, and never sharing answers between models."""

from __future__ import annotations

import itertools
import math
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import OF_LANGUAGE_MODELS, Capability, ChoiceRequest, Events, Request, Response, Sent
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
N_REQUESTS = 2 * N_PAIRS * 2  # two sides, two orders, in 25 batches


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(N_PAIRS)})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(10)})


LOGGING = ("-m", "tests.evaluators.logging_backend")


def logging(log: Path, **fields: Any) -> LoggingBackend:
    """A language model that can do everything."""
    return LoggingBackend(log, capabilities=OF_LANGUAGE_MODELS, **fields)


def sent(log: Path) -> list[str]:
    return log.read_text().split()


def only(folder: Path, name: str) -> Path:
    (found,) = folder.rglob(name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompt", "kill_at"),
    [("mcq2-v1", 1), ("mcq2-v1", 12), ("mcq2-v1", 25), *(("cot-logprob-v1", at) for at in (2, 25, 26, 34))],
)
def test_kill_9_loses_nothing_that_was_answered(dataset: Path, tmp_path: Path, prompt: str, kill_at: int) -> None:
    n_requests = N_REQUESTS * TASK.prompts[prompt].n_rounds
    whole = ask(dataset, tmp_path / "whole", logging(tmp_path / "whole.log"), prompt=prompt)
    log, out = tmp_path / "killed.log", tmp_path / "killed"
    killed = run(*LOGGING, dataset, out, log, kill_at, PROMPT=prompt)
    assert killed.returncode == -signal.SIGKILL
    assert not [*out.rglob("result.json"), *out.rglob("records.parquet")]
    answered = set(read_answers(only(out, "responses.sqlite")))
    sent_before = log.read_text().split()
    n_lost = (kill_at - 1) * 16 - len(answered)
    assert n_lost in (0, 16)[:kill_at], "no more than the group that was being written"
    run(*LOGGING, dataset, out, log, status=0, PROMPT=prompt)
    sent_after = log.read_text().split()[len(sent_before) :]
    assert not answered & set(sent_after), "an answered request was asked again"
    assert {*sent_before, *sent_after} == {*(tmp_path / "whole.log").read_text().split()}
    assert len(sent_before + sent_after) == n_requests + 16 + n_lost, "only what was under way is sent twice"
    assert only(out, "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()
    usage = read_run(only(out, "result.json").parent).result.usage
    assert usage.n_requests == n_requests <= usage.n_attempts <= len(sent_before + sent_after)


@pytest.mark.parametrize("status", ["refused", "failed"])
def test_after_an_answer_that_is_none_nothing_more_is_asked_about_the_item(
    small: Path, tmp_path: Path, status: ExchangeStatus
) -> None:
    bad = TASK.requests(made_items(10)[3], Asked(prompt_of(TASK, "cot-logprob-v1")))[1].sha256
    model = logging(tmp_path / "log", status=lambda request: status if request.sha256 == bad else "answered")
    (record,) = (
        record
        for record in read_run(ask(small, tmp_path / "runs", model, prompt="cot-logprob-v1")).records
        if record.status != "scored"
    )
    assert (record.status, record.reason, len(record.exchanges)) == (status, f"made to be {status}", 2)
    assert len(sent(tmp_path / "log")) == 40 + 38


def test_failures_of_both_rounds_count_against_the_limit(small: Path, tmp_path: Path) -> None:
    model = logging(
        tmp_path / "log", status=lambda request: "failed" if isinstance(request, ChoiceRequest) else "answered"
    )
    message = r"of 80 requests failed, more than the 4 .* made to be failed\. Answers are kept"
    with pytest.raises(RunError, match=message):
        ask(small, tmp_path / "runs", model, prompt="cot-logprob-v1")
    assert not list((tmp_path / "runs").rglob("result.json"))
    ask(small, tmp_path / "runs", logging(tmp_path / "again"), prompt="cot-logprob-v1")
    assert len(sent(tmp_path / "again")) == 40, "texts were asked again"


@pytest.mark.parametrize("prompt", ["mcq2-v1", "cot-logprob-v1"])
def test_items_that_are_failed_by_their_answers_end_the_run_too(small: Path, tmp_path: Path, prompt: str) -> None:
    # A failed request of two makes a failed item: 4 of 40 requests may be 4 of 20 items.
    bad = {TASK.requests(item, Asked(prompt_of(TASK, prompt)))[1].sha256 for item in made_items(10)[:4]}
    model = logging(tmp_path / "log", status=lambda request: "failed" if request.sha256 in bad else "answered")
    with pytest.raises(RunError, match=r"4 of 20 items failed, more than the share of 0\.15 .*: made to be"):
        ask(small, tmp_path / "runs", model, prompt=prompt, rate=0.15)
    assert not list((tmp_path / "runs").rglob("result.json"))


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
def test_a_finished_run_asks_nothing_and_writes_the_same(dataset: Path, tmp_path: Path) -> None:
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    before = {name: (folder / name).read_bytes() for name in ("result.json", "records.parquet")}
    assert ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "again")) == folder
    assert not (tmp_path / "again").exists()
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.slow
def test_two_models_never_share_an_answer(dataset: Path, tmp_path: Path) -> None:
    one = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", name="tests/one"))
    other = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", name="tests/other"))
    assert one != other
    assert len(sent(tmp_path / "log")) == 2 * N_REQUESTS
    # A foreign store copied into the folder of a run is no use to it.
    for name in ("result.json", "records.parquet", "responses.sqlite"):
        (other / name).unlink()
    (other / "responses.sqlite").write_bytes((one / "responses.sqlite").read_bytes())
    ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log", name="tests/other"))
    assert len(sent(tmp_path / "log")) == 3 * N_REQUESTS


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


@dataclass
class Changing(LoggingBackend):
    """A backend whose answers are changed by a rule."""

    rule: Callable[[Mapping[int, Response]], Mapping[Any, Any]] = dict

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """With other answers."""
        for event in super().ask(requests, missing):
            yield event if isinstance(event, Sent) else event._replace(responses=self.rule(event.responses))


@pytest.mark.parametrize("name", NO_RESPONSES)
def test_what_no_record_can_hold_is_refused_before_it_is_stored(name: str, small: Path, tmp_path: Path) -> None:
    def rule(responses: Mapping[int, Response]) -> Mapping[int, Response]:
        return {index: replace(one, **NO_RESPONSES[name]) for index, one in responses.items()}

    with pytest.raises(ConfigError, match="gives a response that no record can hold: ") as told:
        ask(small, tmp_path / "runs", Changing(tmp_path / "log", rule=rule))
    assert str(told.value).isprintable()
    # The mended backend goes on as if nothing had been answered.
    assert ask(small, tmp_path / "runs", LoggingBackend(tmp_path / "log")).is_dir()


@pytest.mark.parametrize("index", [-1, 10**6, "0"])
def test_answers_to_what_was_not_asked_are_refused(index: Any, small: Path, tmp_path: Path) -> None:
    backend = Changing(tmp_path / "log", rule=lambda responses: {index: next(iter(responses.values()))})
    with pytest.raises(ConfigError, match="answers a request that it was not asked; correct the backend"):
        ask(small, tmp_path / "runs", backend)


def test_odd_values_become_those_of_records(small: Path, tmp_path: Path) -> None:
    def decimal(one: Response) -> Any:
        return replace(
            one,
            option_logprobs=tuple(Decimal(str(value)) for value in one.option_logprobs),  # type: ignore[misc]
            # Half a character, as of an endpoint that cuts in the middle of one.
            finish_reason="B \ud83d",
        )

    odd = Changing(tmp_path / "log", rule=lambda all_of: {index: decimal(one) for index, one in all_of.items()})
    records, plain = (
        read_run(ask(small, tmp_path / str(number), backend)).records
        for number, backend in enumerate((odd, LoggingBackend(tmp_path / "log")))
    )
    assert {exchange.finish_reason for record in records for exchange in record.exchanges} == {"B \ufffd"}
    assert [record.reading for record in records] == [record.reading for record in plain]


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

    def taken(folder: Path, limit: int) -> list[str]:
        return [item.item_id for _, item in select(folder, read_manifest(folder), "type2", limit=limit).items]

    limited = [{*taken(mixed, limit)} for limit in range(2, 31)]
    assert all(smaller <= larger for smaller, larger in itertools.pairwise(limited))
    assert taken(dataset, 50) == taken(dataset, 51) == taken(dataset, 50)
    assert len(taken(dataset, 50)) == 50
    assert {*Counter(name.rpartition("-")[0] for name in taken(dataset, 51)).values()} == {2}
    assert {*taken(dataset, 51)} < {*taken(dataset, 80)}
    with pytest.raises(ConfigError, match="raise it to 2 or more"):
        taken(dataset, 1)


@pytest.mark.parametrize(
    ("can", "prompt", "lacks", "instead"),
    [
        (frozenset({"generation"}), "cot-logprob-v1", "option_logprobs", {"cot-v1"}),
        (frozenset({"option_logprobs"}), "cot-logprob-v1", "generation", {"mcq2-v1"}),
        (frozenset(), "mcq2-v1", "option_logprobs", {"none"}),
    ],
)
def test_a_backend_that_cannot_is_refused_before_the_first_request(
    small: Path, tmp_path: Path, can: frozenset[Capability], prompt: str, lacks: str, instead: set[str]
) -> None:
    with pytest.raises(ConfigError, match=f"cannot do {lacks}, which prompt '{prompt}' needs") as refused:
        ask(small, tmp_path / "runs", LoggingBackend(tmp_path / "log", capabilities=can), prompt=prompt)
    told = str(refused.value).partition("prompts for that: ")[2].partition(";")[0].split(", ")
    assert instead <= {*told} - {prompt}
    able = str(refused.value).partition("backends that can: ")[2].split(", ")
    assert {"transformers", "vllm", "replay"} <= {*able} - {"clip"}
    assert not [path for path in tmp_path.iterdir() if path.name != "data"]


def test_prompts_of_data_that_may_not_be_shared_are_not_in_the_records(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(4)}, redistributable=False)
    folder = ask(dataset, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    assert {exchange.prompt for record in read_run(folder).records for exchange in record.exchanges} == {None}
    for name in ("records.parquet", "result.json"):
        assert b"waited for" not in (folder / name).read_bytes()


def test_a_folder_that_another_holds_or_a_store_that_is_none_is_a_clear_error(small: Path, tmp_path: Path) -> None:
    def again() -> Path:
        return ask(small, tmp_path / "runs", LoggingBackend(tmp_path / "log"))

    folder = again()
    with FileLock(folder / ".lock"), pytest.raises(RunError, match="another process holds this run"):
        again()
    with closing(sqlite3.connect(folder / "responses.sqlite")) as connection, connection:
        connection.execute("UPDATE responses SET response = '{}'")
    with pytest.raises(RunError, match="not a usable response store"):
        again()
    (folder / "responses.sqlite").write_bytes(b"no database at all, but long enough to look like one" * 9)
    with pytest.raises(RunError, match=r"not a usable response store .* move it away to start over"):
        again()
