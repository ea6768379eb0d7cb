"""Logs of inspect_ai that answer other questions, or were changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
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


def _call(change: Callable[[Any], None]) -> Callable[[Log], None]:
    """A change of the third sample's only call of the model."""
    return lambda log: change(log["samples"][2]["events"][1])


def _settings(**others: Any) -> Callable[[Log], None]:
    return _call(lambda call: call.update(config={**call["config"], **others}))


def _messages(*messages: dict[str, Any]) -> Callable[[Log], None]:
    return _call(lambda call: call.update(input_refs=None, input=list(messages)))


def _facts(**others: Any) -> Callable[[Log], None]:
    return lambda log: log["eval"]["metadata"]["biasboard"].update(others)


def _signature(**others: Any) -> Callable[[Log], None]:
    return lambda log: log["eval"]["metadata"]["biasboard"]["signature"].update(others)


def _sample(**fields: Any) -> Callable[[Log], None]:
    return lambda log: log["samples"][2].update(fields)


def _edited(text: str) -> Callable[[Log], None]:
    """An answer that was edited in the sample alone."""

    def change(log: Log) -> None:
        output = copy.deepcopy(log["samples"][2]["output"])
        output["choices"][0]["message"]["content"] = f"{text} {output['choices'][0]['message']['content']}"
        log["samples"][2]["output"] = output

    return change


def _called(change: Callable[[Any], None]) -> Callable[[Log], None]:
    """A change of what the call returned, while the sample keeps its own copy."""

    def separate(call: Any) -> None:
        call["output"] = copy.deepcopy(call["output"])
        change(call["output"])

    return _call(separate)


def _many_messages(log: Log) -> None:
    """Half a megabyte that names one message a billion times."""
    log["samples"][2]["events_data"]["messages"] = [{"role": "user", "content": "x"}] * 20_000
    log["samples"][2]["events"][1]["input_refs"] = [[0, 20_000]] * 50_000


def _hint(log: Log) -> None:
    log["samples"][2]["messages"].insert(0, {"role": "system", "content": "It is A."})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_facts(format="9"), "its task was exported in format '9'"),
        (_facts(requests_sha256="0" * 64), "asks type2 in other words than were exported"),
        (_facts(epochs=2), "asked in 1 epochs, and exported for 2; ask again without --epochs"),
        (_signature(items_sha256="0" * 64), "the log answers items with items_sha256 0000"),
        (_signature(prompt="mcq2-v1"), "the log answers items with prompt_sha256"),
        (lambda log: log["eval"].update(metadata=None), "is the log of a task that biasboard did not export"),
        (lambda log: log.update(version=3), "is a log of version 3, and 2 is read"),
        (lambda log: log.update(status="cancelled"), "has the status 'cancelled', so that answers are missing"),
        (lambda log: log.update(samples=None), "holds no samples"),
        (lambda log: log["samples"].append(log["samples"][2]), "question made-0-she#0 was answered before, at "),
        (_sample(epoch=2), "the question was exported for 1 epochs"),
        (_sample(metadata={"questions": ["nobody#0"]}), "1 questions belong to no item of made type2, such as nobody"),
        (_sample(events=[]), "the model was called 0 times"),
        (_messages({"role": "system", "content": "x"}, {"role": "user", "content": "y"}), "--system-message"),
        (_call(lambda call: call.update(input_refs=[[0, 9]])), "messages 0 to 9 of 1 are missing"),
        (_edited("B"), "the sample has another answer than the call of the model"),
        (_call(lambda call: call.update(model="other")), "'other' answered, and the log is of"),
        (_call(lambda call: call.update(tools=[{"name": "search"}])), "asked with tools, or another model took part"),
        (_sample(model_usage={MODEL: {}, "openai/other": {}}), "asked with tools, or another model took part"),
        (_sample(model_fallbacks=[{"model": "other"}]), "asked with tools, or another model took part"),
        (_call(lambda call: call.update(error="refused")), "the sample has another answer than the call of the model"),
        (_called(lambda said: said.update(model="other")), "the sample has another answer than the call"),
        (_called(lambda said: said["usage"].update(output_tokens=999)), "the sample has another answer than the call"),
        (_called(lambda said: said["choices"][0].update(stop_reason="max_tokens")), "has another answer than the call"),
        (_messages({"role": "user", "content": [{"type": "image", "image": "x"}]}), "sent with an image or a file"),
        (_many_messages, "sent as messages of ['user', 'user'], and the task sends one of the user"),
        (_hint, "the sample has other messages than the call of the model"),
        (lambda log: log.update(invalidated=True), "the log is marked as invalid or has an error"),
        (lambda log: log["plan"].update(finish={"solver": "critique"}), "with the solvers ['generate', 'critique']"),
        (_settings(temperature=0.7), "was asked with temperature 0.7 instead of 0.0"),
        (_settings(max_tokens=None), "asked without max_tokens"),
        (_settings(seed=3, extra_body={"k": "sk-secret"}), "asked with extra_body, seed, which the task does not set"),
    ],
)
def test_a_hostile_log_is_one_line_and_leaves_nothing(
    dataset: Path, exported: Path, tmp_path: Path, change: Callable[[Log], None], message: str
) -> None:
    log = made_log(exported, right)
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
