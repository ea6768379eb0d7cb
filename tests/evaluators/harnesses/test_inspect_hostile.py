"""Logs of inspect_ai that answer other questions, or were changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.evaluators.harnesses.importing import export, import_log, refused
from tests.evaluators.harnesses.inspect_logs import (
    HARNESS,
    MODEL,
    NAME,
    PROMPT,
    STARTED,
    Answered,
    Log,
    made_log,
    right,
    write_json,
)


def _at(*path: str | int, **values: Any) -> Callable[[Log], None]:
    """A change of fields of what lies on a path in a log."""

    def change(log: Log) -> None:
        found: Any = log
        for key in path:
            found = found[key]
        found.update(values)

    return change


_facts = partial(_at, "eval", "metadata", "biasboard")
_sample = partial(_at, "samples", 2)
_call = partial(_sample, "events", 1)
_output = partial(_call, "output")


def _messages(*messages: dict[str, Any]) -> Callable[[Log], None]:
    return _call(input_refs=None, input=list(messages))


def _many_messages(log: Log) -> None:
    """Half a megabyte that names one message a billion times."""
    log["samples"][2]["events_data"]["messages"] = [{"role": "user", "content": "x"}] * 20_000
    log["samples"][2]["events"][1]["input_refs"] = [[0, 20_000]] * 50_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_facts(format="9"), "its task was exported in format '9'"),
        (_facts(requests_sha256="0" * 64), "asks type2 in other words than were exported"),
        (_facts(epochs=2), "asked in 1 epochs, and exported for 2; ask again without --epochs"),
        (_facts("signature", items_sha256="0" * 64), "the log answers items with items_sha256 0000"),
        (_facts("signature", prompt="mcq2-v1"), "the log answers items with prompt_sha256"),
        (_at("eval", metadata=None), "is the log of a task that biasboard did not export"),
        (_at(version=3), "is a log of version 3, and 2 is read"),
        (_at(status="cancelled"), "has the status 'cancelled', so that answers are missing"),
        (_at(samples=None), "holds no samples"),
        (_at(invalidated=True), "the log is marked as invalid or has an error"),
        (_at(error={"message": "E"}), "the log is marked as invalid or has an error"),
        (_at("plan", finish={"solver": "critique"}), "with the solvers ['generate', 'critique']"),
        (lambda log: log["samples"].append(log["samples"][2]), "question made-0-she#0 was answered before, at "),
        (_sample(epoch=2), "the question was exported for 1 epochs"),
        (_sample("metadata", questions=["nobody#0"]), "1 questions belong to no item of made type2, such as nobody"),
        (_sample(events=[]), "the model was called 0 times"),
        (_sample(error={"message": "E"}, input="Other."), "was asked in other words: from character 1 on it has 'Ot"),
        (_messages({"role": "user", "content": "Other."}), "was asked in other words: from character 1 on it has 'Ot"),
        (_messages({"role": "system", "content": "x"}, {"role": "user", "content": "y"}), "--system-message"),
        (_messages({"role": "user", "content": [{"type": "image", "image": "x"}]}), "sent with an image or a file"),
        (_many_messages, "sent as messages of ['user', 'user'], and the task sends one of the user"),
        (_sample("messages", 0, role="system"), "the sample has other messages than the call of the model"),
        (_call(input_refs=[[0, 9]]), "messages 0 to 9 of 1 are missing"),
        (_call(model="other"), "'other' answered, and the log is of"),
        (_call(tools=[{"name": "search"}]), "asked with tools, or another model took part"),
        (_sample(model_usage={MODEL: {}, "openai/other": {}}), "asked with tools, or another model took part"),
        (_sample(model_fallbacks=[{"model": "other"}]), "asked with tools, or another model took part"),
        (_call(error="refused"), "the sample has another answer than the call of the model"),
        (_output(model="other"), "the sample has another answer than the call"),
        (_output("usage", output_tokens=999), "the sample has another answer than the call"),
        (_output("choices", 0, stop_reason="max_tokens"), "the sample has another answer than the call"),
        (_output("choices", 0, "message", content="B A"), "the sample has another answer than the call"),
        (_call("config", temperature=0.7), "was asked with temperature 0.7 instead of 0.0"),
        (_call("config", stop_seqs=None), "was asked with stop () instead of ("),
        (_call("config", max_tokens=None), "asked without max_tokens"),
        (_call("config", seed=3, extra_body={"k": "sk-secret"}), "asked with extra_body, seed, which the task"),
    ],
)
def test_a_hostile_log_is_one_line_and_leaves_nothing(
    dataset: Path, exported: Path, tmp_path: Path, change: Callable[[Log], None], message: str
) -> None:
    # What stands twice in a log is one object of the made one, and a forger changes it in one place.
    log = json.loads(json.dumps(made_log(exported, right)))
    change(log)
    refused(import_log(HARNESS, dataset, write_json(log, tmp_path), tmp_path / "runs"), message, tmp_path / "runs")


@pytest.mark.slow
def test_logs_of_one_task_or_of_two_models_are_not_mixed(dataset: Path, exported: Path, tmp_path: Path) -> None:
    log = made_log(exported, right)
    (tmp_path / "log").mkdir()
    for copied in ("1", "2"):
        write_json(log, tmp_path / "log").rename(tmp_path / "log" / f"{STARTED}_{copied}.json")
    done = import_log(HARNESS, dataset, tmp_path / "log", tmp_path / "runs")
    refused(done, f"several logs of task {NAME}: {STARTED}", tmp_path / "runs")
    export(HARNESS, dataset, tmp_path / "other", "--config", "type1", *PROMPT)
    second = made_log(tmp_path / "other", lambda row, epoch: Answered("A"))
    write_json({**second, "eval": {**second["eval"], "run_id": "another"}}, tmp_path / "two")
    write_json(log, tmp_path / "two")
    refused(
        import_log(HARNESS, dataset, tmp_path / "two", tmp_path / "runs"), "need not be of one model", tmp_path / "runs"
    )
    write_json(second, tmp_path / "two")
    (tmp_path / "two" / "logs.json").write_text("{}", encoding="utf-8")
    done = import_log(HARNESS, dataset, tmp_path / "two", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2
