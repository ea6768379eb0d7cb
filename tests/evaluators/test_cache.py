"""The store that runs share: nothing is asked twice, and it can be looked into.

Beginnings that many prompts share are stored once, and every request is read back as it was asked.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import BiasboardError, ConfigError, RunError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.runs.plan.estimate import _store_bytes
from evaluators.stores.store import (
    LEAST_HEAD,
    Heads,
    ResponseStore,
    answered_keys,
    check_cache,
    open_store,
    read_answers,
    store_key,
)
from evaluators.task import load_task
from schemas.documents.result import Model
from schemas.folders.run_folder import Run, read_run
from tests.evaluators.invoking import evaluators
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset

N_PAIRS = 12
N_REQUESTS = 2 * N_PAIRS * 2  # two sides, two orders


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(N_PAIRS)})


def scored(dataset: Path, out: Path, cache: Path | None, backend: LoggingBackend, **how: Any) -> Run:
    return read_run(ask(dataset, out, backend, cache=cache, **how))


def asked(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def model_named(name: str) -> Model:
    return LoggingBackend(Path("unused"), name=name).model


def counts(path: Path) -> dict[str, int]:
    """The number of answers of each model in a store."""
    with open_store(path) as connection:
        rows = connection.execute(
            "SELECT model, COUNT(key) FROM models LEFT JOIN responses ON models.id = model_id GROUP BY models.id"
        )
        return {json.loads(model)["id"]: n for model, n in rows}


def choice(prompt: str) -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=(" a", " b"), outcomes=("a", "b"))


SOUND = Response(status="answered", option_logprobs=(-0.5, -1.5), option_end_logprobs=(None, None))


@pytest.mark.slow
def test_other_normalisations_and_limits_ask_nothing_twice(dataset: Path, tmp_path: Path) -> None:
    cache, log = tmp_path / "cache.sqlite", tmp_path / "log"
    small = scored(dataset, tmp_path / "runs", cache, LoggingBackend(log), limit=8)
    assert small.result.usage.n_attempts == len(asked(log)) == 16
    whole = scored(dataset, tmp_path / "runs", cache, LoggingBackend(log))
    assert whole.result.usage.n_attempts == N_REQUESTS - 16
    assert len(asked(log)) == len(set(asked(log))) == N_REQUESTS
    other = scored(dataset, tmp_path / "runs", cache, LoggingBackend(log), normalisation="token_mean")
    elsewhere = scored(dataset, tmp_path / "elsewhere", cache, LoggingBackend(log))
    assert (other.result.usage.n_attempts, elsewhere.result.usage.n_attempts) == (0, 0)
    assert len(asked(log)) == N_REQUESTS
    assert elsewhere.records == whole.records
    assert scored(dataset, tmp_path / "alone", None, LoggingBackend(tmp_path / "new")).records == whole.records


@pytest.mark.slow
def test_the_command_line_takes_the_cache_as_option_and_from_the_environment(dataset: Path, tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache.sqlite"
    command = ("run", "--dataset", dataset, "--backend", "baseline", "--model", "stereotype")
    for out, more, variable in (
        ("first", ("--cache", cache), None),
        ("second", ("--normalisation", "token_mean"), cache),
    ):
        environment = {"BIASBOARD_CACHE": str(variable) if variable else None}
        done = evaluators(*command, "--out", tmp_path / out, *more, env=environment)
        assert done.exit_code == 0, done.stderr
        (result,) = (tmp_path / out).rglob("result.json")
        n_attempts = json.loads(result.read_text())["usage"]["n_attempts"]
        assert (n_attempts > 0) == (out == "first")
        assert "cache" not in json.loads(result.read_text())["command"]


def test_a_store_that_another_process_is_making_is_waited_for_and_both_may_answer_the_same(tmp_path: Path) -> None:
    path, model, request = tmp_path / "cache.sqlite", model_named("tests/one"), choice("one")
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        # Switching the log on fails at once while another process is about to write, whatever the time-out.
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.1, other.rollback).start()
        with ResponseStore(path, model):
            pass
    assert counts(path) == {"tests/one": 0}
    with ResponseStore(path, model) as one, ResponseStore(path, model) as another:
        for store in (one, another):
            store.add({store_key(model, request, with_facts=False): (request, SOUND)})
    assert counts(path) == {"tests/one": 1}


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("text.sqlite", RunError, "not a usable response store .file is not a database"),
        ("old.sqlite", RunError, "written in format 1, this version reads"),
        ("data", ConfigError, "is a folder; name a file, such as"),
        ("pipe", ConfigError, "is not a regular file; name one"),
    ],
)
def test_what_is_no_cache_is_refused(name: str, kind: type[BiasboardError], message: str, tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("no database at all, but long enough to look like one" * 9)
    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE responses (key TEXT)")
        connection.execute("PRAGMA user_version=1")
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(kind, match=message):
        check_cache(tmp_path / name)


def test_a_cache_is_looked_at_before_a_model_is_opened(dataset: Path, tmp_path: Path) -> None:
    command = ("run", "--dataset", dataset, "--backend", "transformers", "--model", tmp_path / "none")
    done = evaluators(*command, "--cache", tmp_path)
    assert done.exit_code == 1
    assert "is a folder; name a file" in done.stderr


def test_a_store_is_read_while_a_run_writes_it_and_leaves_no_file_behind(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    requests = [choice("one"), choice("two")]
    model = model_named("tests/one")
    keys = [store_key(model, one, with_facts=False) for one in requests]
    assert answered_keys(path, keys) == set()
    with ResponseStore(path, model) as store:
        store.add({keys[0]: (requests[0], SOUND)})
        assert store.responses(keys).keys() == {keys[0]}
        assert answered_keys(path, keys) == {keys[0]}
        assert counts(path) == {"tests/one": 1}
        # A refusal is an answer, and what failed is asked again.
        store.add({keys[1]: (requests[1], Response(status="failed", error="no"))})
        assert store.responses(keys).keys() == {keys[0]}
        store.add({keys[1]: (requests[1], Response(status="refused", error="no"))})
        assert store.responses(keys)[keys[1]].status == "refused"
    assert answered_keys(path, keys) == {*keys}
    assert [file.name for file in tmp_path.iterdir()] == ["cache.sqlite"]


def text_of(rng: random.Random, n_words: int) -> str:
    return " ".join("".join(rng.choices("abcdefghij", k=6)) for _ in range(n_words))


def shown(n_parts: int, n_items: int, seed: int = 1) -> list[Request]:
    """Requests of several tasks, each with an instruction and examples of its own of about 1.8 kB."""
    rng = random.Random(seed)
    heads = [
        f"{text_of(rng, 40)}\n\n" + "".join(f"Text: {text_of(rng, 30)}\nLabel: A\n\n" for _ in range(6))
        for _ in range(n_parts)
    ]
    return [choice(f"{head}Text: {text_of(rng, 20)} \N{SNOWMAN}\nLabel:") for head in heads for _ in range(n_items)]


def stored(path: Path, requests: Sequence[Request], of: Model, at_a_time: int = 64) -> None:
    with ResponseStore(path, of) as store:
        for start in range(0, len(requests), at_a_time):
            part = requests[start : start + at_a_time]
            store.add({store_key(of, one, with_facts=False): (one, SOUND) for one in part})


@pytest.mark.parametrize(("at_a_time", "is_mixed"), [(64, False), (7, True)])
def test_requests_come_back_as_they_were_asked_whatever_their_order(
    tmp_path: Path, at_a_time: int, is_mixed: bool
) -> None:
    requests = [*shown(4, 25), *(choice(f"short {n}") for n in range(9))]
    if is_mixed:
        random.Random(3).shuffle(requests)
    stored(tmp_path / "a.sqlite", requests, model_named("tests/one"), at_a_time)
    assert set(read_answers(tmp_path / "a.sqlite")) == {request.sha256 for request in requests}
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        heads = [text for (text,) in connection.execute("SELECT text FROM heads")]
        n_whole = connection.execute("SELECT COUNT(*) FROM responses WHERE head_id IS NULL").fetchone()[0]
    assert all(len(head) >= LEAST_HEAD for head in heads)
    # The first prompt of each task is stored as a whole, and those of no task are.
    assert n_whole <= 9 + 2 * 4
    assert len(heads) <= 8


def test_a_store_with_shared_beginnings_is_a_fraction_of_one_without(tmp_path: Path) -> None:
    requests = shown(3, 100)
    stored(tmp_path / "a.sqlite", requests, model_named("tests/one"))
    n_whole = sum(len(request.prompt.encode()) for request in requests)
    n_bytes = (tmp_path / "a.sqlite").stat().st_size
    assert n_bytes < 0.45 * n_whole
    prompt = next(iter(load_task("coreference").prompts.values()))
    assert _store_bytes(prompt, requests, ()) == pytest.approx(n_bytes, rel=0.25)


def test_heads_are_shared_beginnings_and_end_with_a_line_where_they_can() -> None:
    instruction = "Say what it is.\n" * 20
    heads = Heads()
    prompts = [f"{instruction}Text: the same words first, then {word}" for word in ("one", "two", "three")]
    assert [heads.head_of(prompt) for prompt in prompts] == ["", instruction, instruction]
    assert heads.head_of("x" * 1000) == ""
    assert heads.head_of("x" * 999 + "y") == "x" * 999
    resumed = Heads([instruction])
    assert resumed.head_of(prompts[2]) == instruction


def test_every_answer_survives_the_store(tmp_path: Path) -> None:
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
            Response(status="answered", text=odd, thinking="Well.", text_logprob=-1.5, finish_reason="length"),
        ),
        (GenerateRequest(prompt="empty", max_tokens=1), Response(status="answered", text="")),
    ]
    with ResponseStore(tmp_path / "cache.sqlite", model) as store:
        store.add({store_key(model, one, with_facts=False): (one, answer) for one, answer in answers})
    assert read_answers(tmp_path / "cache.sqlite") == {one.sha256: answer for one, answer in answers}
