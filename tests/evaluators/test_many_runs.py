"""Several datasets and prompts in one call, and what a program reads of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from evaluators.task import Asked, load_task, prompt_of
from tests.evaluators import word_problems
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "one", {"type1": made_items(4, ambiguous=True), "type2": made_items(4)}, name="one")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "two", {"type2": made_items(6)}, name="two")


def run(out: Path, *arguments: str | Path) -> Result:
    return evaluators(
        "run", "--backend", "baseline", "--model", "uniform", "--out", out, *arguments, "--format", "json"
    )


def told(done: Result, *fields: str, status: int = 0) -> list[Any]:
    assert done.exit_code == status, done.stderr
    return [tuple(one[field] for field in fields) for one in json.loads(done.stdout)["runs"]]


ASKED = ("dataset", "config", "prompt")


@pytest.mark.slow
def test_every_config_of_every_dataset_is_asked_with_every_prompt(one: Path, two: Path, tmp_path: Path) -> None:
    prompts = ("--prompt", "mcq2-v1", "--prompt", "mcq3-v1")
    done = run(tmp_path / "runs", "--dataset", one, "--dataset", two, "--dataset", one, *prompts)
    places = [("one", "type1"), ("one", "type2"), ("two", "type2")]
    assert told(done, *ASKED) == [(*place, prompt) for place in places for prompt in ("mcq2-v1", "mcq3-v1")]
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 6


@pytest.mark.slow
def test_a_prompt_may_be_for_one_config_alone(one: Path, tmp_path: Path) -> None:
    for others, of_type2 in ((("--prompt", "mcq2-v1"), "mcq2-v1"), ((), "intrinsic-v1")):
        done = run(tmp_path / "runs", "--dataset", one, *others, "--prompt", "type1=mcq3-v1")
        assert told(done, *ASKED) == [("one", "type1", "mcq3-v1"), ("one", "type2", of_type2)]
    for wrong, said in (
        ("type3=mcq2-v1", "--prompt type3=mcq2-v1 is not used; the run would ask type1 with "),
        ("type1=cot", "prompt 'cot' does not exist for task 'coreference'"),
    ):
        refused = run(tmp_path / "runs", "--dataset", one, "--prompt", wrong)
        assert (refused.exit_code, said in refused.stderr) == (1, True), refused.stderr


@pytest.mark.slow
def test_a_prompt_that_only_one_task_has_leaves_the_others_with_their_own(one: Path, tmp_path: Path) -> None:
    datasets = ("--dataset", one, "--dataset", word_problems.build(tmp_path / "texts"))
    unsent = ("--backend", "openai", "--model", "made/model", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    done = evaluators("run", *datasets, *unsent, "--format", "json", "--prompt", "mcq2-generate-v1")
    prompts: dict[str, str] = dict(told(done, "config", "prompt"))
    assert {prompts.pop(config) for config in ("type1", "type2")} == {"mcq2-generate-v1"}
    assert prompts == {
        name: prompt_of(load_task("word_problem" if name == "math" else name), None).id
        for name in ("recognition", "continuation", "assignment", "math")
    }
    refused = evaluators("run", *datasets, *unsent, "--prompt", "cot")
    assert (refused.exit_code, "prompt 'cot' does not exist" in refused.stderr) == (1, True), refused.stderr


def test_json_of_a_failure_holds_the_runs_before_it(one: Path, two: Path, tmp_path: Path) -> None:
    # The answers to the first dataset alone: the second has other items too.
    asked = Asked(load_task("coreference").prompts["intrinsic-v1"])
    requests = [request for item in made_items(4) for request in load_task("coreference").requests(item, asked)]
    lines = [json.dumps({"request_sha256": request.sha256, "option_logprobs": [-1.0, -2.0]}) for request in requests]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")
    replay = ("--backend", "replay", "--model", tmp_path / "answers.jsonl", "--name", "lab/x", "--config", "type2")
    done = evaluators(
        "run", "--dataset", one, "--dataset", two, *replay, "--out", tmp_path / "runs", "--format", "json"
    )
    assert told(done, "dataset", status=3) == [("one",)]
    assert "requests failed" in done.stderr
