"""Several tasks that ask items of one shape: the user chooses, and the command that the result keeps says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.task import task_for
from tests.commands import run
from tests.evaluators.made_data import save_tiny_llama


def test_a_manifest_may_name_the_task_or_the_shape() -> None:
    assert task_for("recognition").name == "recognition"
    assert task_for("word_problem").name == "word_problem"
    assert task_for("pronoun_text", "continuation").name == "continuation"
    with pytest.raises(ConfigError, match="choose one with --task: consistency, continuation, recognition"):
        task_for("pronoun_text")
    with pytest.raises(ConfigError, match="--task assignment"):
        task_for("pronoun_text", "assignment")


@pytest.mark.slow
def test_a_chosen_task_asks_and_stands_in_the_command_of_the_result(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    dataset = tmp_path / "gifi"
    run("-m", "builders.gifi", "--out", dataset, "--limit", "160", status=0)
    path = dataset / "dataset.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for entry in manifest["splits"]:
        if entry["config"] == "recognition":
            entry["item_shape"] = "pronoun_text"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    model = save_tiny_llama(tmp_path / "tiny-llama")
    asked = ("run", "--dataset", dataset, "--config", "recognition", "--limit", "11", "--out", tmp_path / "runs")
    command = ("-m", "evaluators", *asked, "--backend", "transformers", "--model", model, "--name", "lab/tiny")
    refused = run(*command, "--scorer", "none", status=1)
    assert "choose one with --task: consistency, continuation, recognition" in refused.stderr
    run(*command, "--task", "recognition", "--device", "cpu", status=0)
    (result,) = [json.loads(found.read_text()) for found in (tmp_path / "runs").rglob("result.json")]
    assert result["signature"]["task"] == "recognition"
    assert " --task recognition " in result["command"]
