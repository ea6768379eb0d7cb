"""The store that runs share: nothing is asked twice, and it can be looked into, taken out of and made smaller."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.runs.ask.pipeline import run
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.stores.maintenance import summarise
from evaluators.stores.read_only import answered_keys
from evaluators.stores.store import ResponseStore, store_key
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.documents.result import Model, Normalisation
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import Run, read_run
from tests.evaluators.invoking import evaluators
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import made_items, write_dataset

REPOSITORY = Path(__file__).parents[2]
N_PAIRS = 30
N_REQUESTS = 2 * N_PAIRS * 2  # two sides, two orders


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(N_PAIRS)})


def scored(
    dataset: Path,
    out: Path,
    cache: Path | None,
    backend: LoggingBackend,
    *,
    limit: int | None = None,
    normalisation: Normalisation = "sum",
) -> Run:
    selection = select(dataset, read_manifest(dataset), "type2", limit=limit)
    prompt = prompt_of(TASK, "mcq2-v1")
    finished = run(
        Plan(selection, TASK, prompt, normalisation),
        backend,
        RunOptions(root=out, cache=cache, max_failure_rate=0.5, command="tests"),
    )
    return read_run(finished.folder)


def asked(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def model_named(name: str) -> Model:
    return LoggingBackend(Path("unused"), name=name).model


def choice(prompt: str) -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=(" a", " b"), outcomes=("a", "b"))


def age(path: Path, prompt: str, days: float) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        then = int(time.time() - days * 86_400)
        connection.execute(
            "UPDATE responses SET stored_at = ? WHERE CAST(request AS TEXT) LIKE ?", (then, f'%"{prompt}"%')
        )


SOUND = Response(status="answered", option_logprobs=(-0.5, -1.5), option_end_logprobs=(None, None))


@pytest.mark.slow
def test_other_normalisations_and_limits_ask_nothing_twice(dataset: Path, tmp_path: Path) -> None:
    cache, log = tmp_path / "cache.sqlite", tmp_path / "log"
    small = scored(dataset, tmp_path / "runs", cache, LoggingBackend(log), limit=20)
    assert small.result.usage.n_attempts == len(asked(log)) == 40
    whole = scored(dataset, tmp_path / "runs", cache, LoggingBackend(log))
    assert whole.result.usage.n_attempts == N_REQUESTS - 40
    assert len(asked(log)) == len(set(asked(log))) == N_REQUESTS
    other = scored(dataset, tmp_path / "runs", cache, LoggingBackend(log), normalisation="token_mean")
    elsewhere = scored(dataset, tmp_path / "elsewhere", cache, LoggingBackend(log))
    assert (other.result.usage.n_attempts, elsewhere.result.usage.n_attempts) == (0, 0)
    assert len(asked(log)) == N_REQUESTS
    assert elsewhere.records == whole.records
    assert scored(dataset, tmp_path / "alone", None, LoggingBackend(tmp_path / "new")).records == whole.records


def test_another_model_finds_nothing_in_the_cache(dataset: Path, tmp_path: Path) -> None:
    cache, log = tmp_path / "cache.sqlite", tmp_path / "log"
    for name in ("tests/one", "tests/other"):
        assert scored(dataset, tmp_path / "runs", cache, LoggingBackend(log, name=name)).result.usage.n_attempts > 0
    assert len(asked(log)) == 2 * N_REQUESTS
    assert {stored.model.id: stored.n_choices for stored in summarise(cache).models} == {
        "tests/one": N_REQUESTS,
        "tests/other": N_REQUESTS,
    }


@pytest.mark.slow
def test_the_command_line_takes_the_cache_as_option_and_from_the_environment(dataset: Path, tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache.sqlite"
    command = ("run", "--dataset", dataset, "--backend", "baseline", "--model", "stereotype")
    for out, more, variable in (
        ("first", ("--cache", cache), None),
        ("second", ("--normalisation", "token_mean"), cache),
        ("third", ("--limit", "20"), cache),
    ):
        done = evaluators(
            *command, "--out", tmp_path / out, *more, env={"BIASBOARD_CACHE": str(variable) if variable else None}
        )
        assert done.exit_code == 0, done.stderr
        (result,) = (tmp_path / out).rglob("result.json")
        n_attempts = json.loads(result.read_text())["usage"]["n_attempts"]
        assert (n_attempts > 0) == (out == "first")
        assert "cache" not in json.loads(result.read_text())["command"]


@pytest.mark.slow
def test_runs_of_several_processes_share_a_new_cache(dataset: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    models = ("uniform", "stereotype", "stereotype-0.7", "always-wrong")
    command = [sys.executable, "-m", "evaluators", "run", "--dataset", str(dataset), "--backend", "baseline"]
    processes = [
        subprocess.Popen(
            [*command, "--model", model, "--out", str(tmp_path / model), "--cache", str(cache)],
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for model in models
    ]
    ended = [(process.communicate()[1], process.returncode) for process in processes]
    assert {status for _, status in ended} == {0}, ended
    n_each = {stored.model.id: stored.n_answers for stored in summarise(cache).models}
    assert set(n_each) == {f"baseline/{model}" for model in models}
    assert min(n_each.values()) == max(n_each.values()) > 0


OPEN_AT_ONCE = """
import sys, time
from pathlib import Path
from evaluators.stores.store import ResponseStore
from tests.evaluators.logging_backend import LoggingBackend
model = LoggingBackend(Path("unused"), name=sys.argv[2]).model
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    with ResponseStore(Path(sys.argv[1]) / f"{number}.sqlite", model):
        pass
"""


@pytest.mark.slow
def test_a_new_store_can_be_opened_by_several_processes_at_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AT_ONCE, str(tmp_path), f"tests/{number}"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in processes] == [""] * 4
    assert {len(summarise(tmp_path / f"{number}.sqlite").models) for number in range(20)} == {4}


@pytest.mark.slow
def test_two_runs_of_one_model_at_once_both_finish(dataset: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"

    class Meanwhile(LoggingBackend):
        """Another run of the same model starts and ends while this one is in its middle."""

        def answer(self, requests: list[Request]) -> list[Response]:  # type: ignore[override]
            if self.n_batches == 3:
                other = scored(dataset, tmp_path / "other", cache, LoggingBackend(tmp_path / "other.log"))
                # What this one had stored until then was not asked again.
                assert other.result.usage.n_attempts <= N_REQUESTS - 2 * 16
            return list(super().answer(requests))

    one = scored(dataset, tmp_path / "one", cache, Meanwhile(tmp_path / "one.log"))
    other = scored(dataset, tmp_path / "other", cache, LoggingBackend(tmp_path / "again.log"))
    assert one.records == other.records
    assert asked(tmp_path / "again.log") == []
    assert summarise(cache).n_answers == N_REQUESTS


def test_what_is_no_cache_is_refused_before_a_model_is_opened(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("no database at all, but long enough to look like one" * 9)
    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE responses (key TEXT)")
        connection.execute("PRAGMA user_version=1")
    os.mkfifo(tmp_path / "pipe")
    command = ("run", "--dataset", dataset, "--backend", "transformers", "--model", tmp_path / "none")
    for name, status, message in (
        ("text.sqlite", 3, "not a usable response store (file is not a database)"),
        ("old.sqlite", 3, "written in format 1, this version reads"),
        ("data", 1, "is a folder; name a file, such as"),
        ("pipe", 1, "is not a regular file; name one, or one that does not exist yet"),
    ):
        done = evaluators(*command, "--cache", tmp_path / name)
        assert (done.exit_code, done.stderr.count("\n")) == (status, 1), done.stderr
        assert message in done.stderr
    for name in ("text.sqlite", "old.sqlite"):
        done = evaluators("cache", "info", tmp_path / name)
        assert (done.exit_code, done.stderr.count("\n")) == (3, 1)


def test_info_counts_models_kinds_and_ages(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    text = GenerateRequest(prompt="Tell me.", max_tokens=5)
    answer = Response(status="answered", text="No.", n_completion_tokens=2, finish_reason="stop")
    with_text = store_key(model_named("tests/one"), text, with_facts=False)
    with ResponseStore(path, model_named("tests/one")) as store:
        requests = [choice(f"number {number}") for number in range(3)]
        keys = [store_key(model_named("tests/one"), one, with_facts=False) for one in requests]
        store.add({key: (one, SOUND) for key, one in zip(keys, requests, strict=True)})
        store.add({with_text: (text, answer)})
    with ResponseStore(path, model_named("tests/empty")):
        pass
    age(path, "number 1", 10)
    found = summarise(path)
    one, empty = found.models
    assert (one.model.id, one.n_choices, one.n_generations) == ("tests/one", 3, 1)
    assert one.oldest is not None
    assert one.newest is not None
    assert one.newest - one.oldest == pytest.approx(10 * 86_400, abs=60)
    assert (empty.n_choices, empty.n_bytes, empty.oldest) == (0, 0, None)
    assert found.n_answers == 4
    assert 0 < one.n_bytes < found.n_bytes == path.stat().st_size
    shown = evaluators("cache", "info", env={"BIASBOARD_CACHE": str(path)})
    assert "3 choices and 1 generations" in shown.stdout
    assert "4 answers of tests/one, tests/empty" in shown.stdout
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cache.sqlite"]


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
        assert summarise(path).n_answers == 1
    assert answered_keys(path, keys) == {keys[0]}
    assert [file.name for file in tmp_path.iterdir()] == ["cache.sqlite"]


@pytest.fixture
def full(tmp_path: Path) -> Path:
    path = tmp_path / "cache.sqlite"
    for name, n_answers in (("tests/one", 300), ("tests/other", 20)):
        model = model_named(name)
        requests = [choice(f"{name} {number} " + "long " * 100) for number in range(n_answers)]
        with ResponseStore(path, model) as store:
            store.add({store_key(model, one, with_facts=False): (one, SOUND) for one in requests})
    return path


def counts(path: Path) -> dict[str, int]:
    return {stored.model.id: stored.n_answers for stored in summarise(path).models}


def test_pruning_removes_what_was_named_and_frees_its_room(full: Path) -> None:
    before = full.read_bytes()
    told = evaluators("cache", "prune", full, "--model", "tests/one", "--dry-run")
    assert "would remove 300 answers" in told.stdout
    assert full.read_bytes() == before
    done = evaluators("cache", "prune", full, "--model", "tests/one")
    assert done.exit_code == 0, done.stderr
    assert "removed 300 answers, freed" in done.stdout
    assert counts(full) == {"tests/other": 20}
    assert full.stat().st_size < len(before) / 4
    assert [file.name for file in full.parent.iterdir()] == ["cache.sqlite"]


def test_pruning_by_age_keeps_what_is_younger(full: Path) -> None:
    with closing(sqlite3.connect(full)) as connection, connection:
        connection.execute("UPDATE responses SET stored_at = stored_at - 864000 WHERE rowid % 2")
    assert "removed 0 answers" in evaluators("cache", "prune", full, "--older-than", "11").stdout
    assert counts(full) == {"tests/one": 300, "tests/other": 20}
    assert (
        "removed 10 answers"
        in evaluators("cache", "prune", full, "--older-than", "9.5", "--model", "tests/other").stdout
    )
    assert counts(full) == {"tests/one": 300, "tests/other": 10}


@pytest.mark.slow
def test_a_pruned_cache_is_filled_again(dataset: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    first = scored(dataset, tmp_path / "first", cache, LoggingBackend(tmp_path / "log"))
    assert evaluators("cache", "prune", cache, "--model", "tests/logging").exit_code == 0
    assert counts(cache) == {}
    second = scored(dataset, tmp_path / "second", cache, LoggingBackend(tmp_path / "log"))
    assert second.result.usage.n_attempts == N_REQUESTS
    assert second.records == first.records
    assert counts(cache) == {"tests/logging": N_REQUESTS}


def test_pruning_refuses_a_store_in_use_one_of_a_run_and_everything(dataset: Path, full: Path, tmp_path: Path) -> None:
    with ResponseStore(full, model_named("tests/one")):
        done = evaluators("cache", "prune", full, "--model", "tests/one")
        assert (done.exit_code, done.stderr.count("\n")) == (3, 1)
        assert "another process has this store open; wait for it or stop it" in done.stderr
    assert counts(full) == {"tests/one": 300, "tests/other": 20}
    everything = evaluators("cache", "prune", full)
    assert everything.exit_code == 1
    assert "say what to remove: --model or --older-than" in everything.stderr
    scored(dataset, tmp_path / "runs", None, LoggingBackend(tmp_path / "log"))
    (store,) = (tmp_path / "runs").rglob("responses.sqlite")
    for target in (store, store.parent):
        done = evaluators("cache", "prune", target, "--model", "tests/logging")
        assert done.exit_code == 3
        assert "is the store of a run, from which its scores are traced" in done.stderr
    assert counts(store) == {"tests/logging": N_REQUESTS}
