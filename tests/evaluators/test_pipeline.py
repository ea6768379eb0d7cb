"""Runs: killed and resumed, failing, refused, limited, and never sharing answers between models."""

from __future__ import annotations

import itertools
import math
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import OF_LANGUAGE_MODELS, Capability, ChoiceRequest, Events, Request, Response, Sent
from evaluators.runs.plan.plan import select
from evaluators.stores import store as store_module
from evaluators.stores.store import ResponseStore, read_answers
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.documents.record import ExchangeStatus
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from tests.commands import run
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset

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
@pytest.mark.parametrize(("prompt", "kill_at"), [("mcq2-v1", 1), ("mcq2-v1", 12), ("cot-logprob-v1", 26)])
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


@pytest.mark.parametrize("prompt", ["mcq2-v1", "cot-logprob-v1"])
def test_requests_that_fail_and_items_that_are_failed_by_their_answers_end_the_run(
    small: Path, tmp_path: Path, prompt: str
) -> None:
    # A failed request of two makes a failed item: 4 of 40 requests may be 4 of 20 items.
    bad = {TASK.requests(item, Asked(prompt_of(TASK, prompt)))[1].sha256 for item in made_items(10)[:4]}
    model = logging(tmp_path / "log", status=lambda request: "failed" if request.sha256 in bad else "answered")
    with pytest.raises(RunError, match=r"4 of 20 items failed, more than the share of 0\.15 .*: made to be"):
        ask(small, tmp_path / "items", model, prompt=prompt, rate=0.15)
    # Failures of both rounds count against the limit.
    n_requests = 40 * TASK.prompts[prompt].n_rounds
    model = logging(
        tmp_path / "log", status=lambda request: "failed" if isinstance(request, ChoiceRequest) else "answered"
    )
    message = (
        rf"of {n_requests} requests failed, more than the {n_requests // 20} .* made to be failed\. Answers are kept"
    )
    with pytest.raises(RunError, match=message):
        ask(small, tmp_path / "runs", model, prompt=prompt)
    assert not list(tmp_path.rglob("result.json"))
    ask(small, tmp_path / "runs", logging(tmp_path / "again"), prompt=prompt)
    assert len(sent(tmp_path / "again")) == 40, "texts were asked again"


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


NO_RESPONSES: dict[str, dict[str, Any]] = {
    "NaN": {"option_logprobs": (math.nan, -1.0)},
    "more than certain": {"option_logprobs": (0.5, -1.0)},
    "too many options": {"option_logprobs": (-1.0, -2.0, -3.0)},
    "words": {"option_logprobs": ("low", "high")},
    "NaN at the end": {"option_end_logprobs": (math.nan, None)},
    "fewer tokens than none": {"option_token_counts": (-5, 2)},
    "tokens without number": {"n_prompt_tokens": 10**30},
    "no such status": {"status": "odd\x1b[31m"},
    "bytes as text": {"text": b"x"},
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


def test_a_store_that_another_process_holds_is_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, model = tmp_path / "s.sqlite", LoggingBackend(tmp_path / "log").model
    with ResponseStore(path, model) as store:
        store.sent(Sent(1, 0.5))
        assert store.totals().cost_usd == 0.5
        store.sent(Sent(1, None))
        assert store.totals().cost_usd is None
    monkeypatch.setattr(store_module, "_BUSY_SECONDS", 0.1)
    with ResponseStore(path, model) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.sent(Sent(1))
        with pytest.raises(RunError, match="another process has been writing to it"):
            store.totals()
        other.rollback()


@pytest.mark.slow
def test_a_limit_keeps_pairs_whole_and_is_the_same_everywhere(dataset: Path, tmp_path: Path) -> None:
    orphans = [item for number, item in enumerate(made_items(20)) if number % 4]
    mixed = write_dataset(tmp_path / "mixed", {"type2": orphans})

    def taken(folder: Path, limit: int) -> list[str]:
        return [item.item_id for _, item in select(folder, read_manifest(folder), "type2", limit=limit).items]

    limited = [{*taken(mixed, limit)} for limit in range(2, 31, 4)]
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


@pytest.mark.slow
def test_a_folder_that_another_holds_or_a_store_that_is_none_is_a_clear_error(small: Path, tmp_path: Path) -> None:
    def again() -> Path:
        return ask(small, tmp_path / "runs", LoggingBackend(tmp_path / "log"))

    folder = again()
    before, n_sent = (folder / "result.json").read_bytes(), len(sent(tmp_path / "log"))
    again()
    assert ((folder / "result.json").read_bytes(), len(sent(tmp_path / "log"))) == (before, n_sent), "asked once more"
    with FileLock(folder / ".lock"), pytest.raises(RunError, match="another process holds this run"):
        again()
    with closing(sqlite3.connect(folder / "responses.sqlite")) as connection, connection:
        connection.execute("UPDATE responses SET response = '{}'")
    with pytest.raises(RunError, match="not a usable response store"):
        again()
    (folder / "responses.sqlite").write_bytes(b"no database at all, but long enough to look like one" * 9)
    with pytest.raises(RunError, match=r"not a usable response store .* move it away to start over"):
        again()


@pytest.mark.slow
def test_what_cannot_be_read_is_found_out_before_all_is_asked_or_leaves_no_result(
    dataset: Path, tmp_path: Path
) -> None:
    def merged(responses: Mapping[int, Response]) -> Mapping[int, Response]:
        return {index: replace(one, n_moved_tokens=1) for index, one in responses.items()}

    def partly_merged(responses: Mapping[int, Response]) -> Mapping[int, Response]:
        # Half of the items cannot be read, and of the first twenty some can.
        return {index: replace(one, n_moved_tokens=index % 4 // 2) for index, one in responses.items()}

    backend = Changing(tmp_path / "log", rule=merged)
    with pytest.raises(RunError, match=r"first 20 answered items .* use the normalisation sum; the rest was not asked"):
        ask(dataset, tmp_path / "runs", backend, normalisation="token_mean")
    assert len(sent(tmp_path / "log")) < N_REQUESTS
    folder = ask(dataset, tmp_path / "runs", Changing(tmp_path / "log", rule=merged))
    assert read_run(folder).result.counts.failed == 0
    backend, late = Changing(tmp_path / "log", batch=200, rule=partly_merged), tmp_path / "late"
    with pytest.raises(RunError, match=r"of 200 items failed, more than the share of 0\.05 .*: the tokenizer"):
        ask(dataset, late, backend, prompt="intrinsic-v1", normalisation="token_mean")
    assert not list(late.rglob("result.json"))
    assert len(read_answers(only(late, "responses.sqlite"))) == 200
