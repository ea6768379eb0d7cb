"""The four tasks of gifi: what they ask, and a language model that goes through all of them."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import GenerateRequest, Response
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import Asked, load_task, task_for
from evaluators.tasks.pronouns.assignment_task import TASK as ASSIGNMENT
from evaluators.tasks.pronouns.recognition_task import TASK as RECOGNITION
from evaluators.tasks.pronouns.word_problem_task import TASK as WORD_PROBLEM
from evaluators.tasks.pronouns.word_problem_task import shots
from schemas.folders.run_folder import read_run
from schemas.lexicon import families_of
from schemas.validate import problems as problems_of_file
from schemas.validate import targets
from tests.commands import run
from tests.evaluators.made_data import save_tiny_llama
from tests.evaluators.pronoun_records import FAMILIES, problems, prompts, recorded, sentences
from tests.evaluators.test_index import check_index
from tests.evaluators.test_packed_scoring import save_model

TASKS = ("recognition", "continuation", "assignment", "word_problem")


def texts_of(task: str, prompt: str, item: object) -> list[str]:
    return [request.prompt for request in load_task(task).requests(item, Asked(load_task(task).prompts[prompt]))]


def test_the_protocol_of_the_paper_is_the_default() -> None:
    for name in TASKS:
        prompt = next(iter(load_task(name).prompts.values()))
        assert prompt.id == "sampled-v1"
        assert (prompt.temperature, prompt.top_p, prompt.max_tokens) == (0.95, 0.95, 200)
        assert prompt.n_samples == (11 if name == "assignment" else None)
        greedy = load_task(name).prompts["greedy-v1"]
        assert (greedy.temperature, greedy.n_samples) == (0.0, None)


def test_prompts_are_the_text_or_an_instruction_and_the_text() -> None:
    (item, *_) = sentences("Kim sold {pos} car.")
    assert texts_of("recognition", "sampled-v1", item) == ["Kim sold his car. and"]
    assert texts_of("continuation", "greedy-v1", item) == ["Kim sold his car."]
    (instructed,) = texts_of("recognition", "instructed-greedy-v1", item)
    assert instructed.endswith("\n\nKim sold his car. and")
    assert instructed.startswith("Continue the following text.")


def test_eleven_samples_are_eleven_requests_with_seeds_of_their_own() -> None:
    (item,) = prompts(1)
    requests = [
        request
        for request in ASSIGNMENT.requests(item, Asked(ASSIGNMENT.prompts["sampled-v1"]))
        if isinstance(request, GenerateRequest)
    ]
    assert [request.sample for request in requests] == list(range(11))
    assert len({request.sampling_seed for request in requests}) == 11
    assert len(ASSIGNMENT.requests(item, Asked(ASSIGNMENT.prompts["greedy-v1"]))) == 1


def family_of(example: str) -> str:
    """The one family whose forms stand in a worked example."""
    words = example.replace(".", " ").replace(",", " ").replace("?", " ").split()
    owners = Counter(owner for word in words for owner in families_of(word))
    return owners.most_common(1)[0][0]


def test_every_family_is_shown_equally_often_over_the_templates() -> None:
    seen: Counter[str] = Counter()
    for first in range(len(FAMILIES)):
        examples = [example for example in shots(first).split("\n\n") if example]
        assert len(examples) == 8
        assert all("The answer is " in example for example in examples)
        seen.update(family_of(example) for example in examples)
    assert set(seen.values()) == {8}


def test_the_answers_of_the_worked_examples_are_those_of_their_sums() -> None:
    text = resources.files("evaluators.tasks.pronouns").joinpath("word_problem_shots.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["shot"]
    assert len(rows) == 8
    for row in rows:
        assert set(row["check"]) <= set("0123456789.+-*/() "), row["id"]
        assert eval(row["check"]) == pytest.approx(float(row["answer"])), row["id"]


def test_all_variants_of_a_template_have_the_same_examples() -> None:
    items = problems(3)
    by_template: dict[str, set[str]] = {}
    for item in items:
        (text,) = texts_of("word_problem", "greedy-v1", item)
        assert text.endswith(f"Q: {item.text}\nA:")
        by_template.setdefault(item.template_id, set()).add(text.removesuffix(f"Q: {item.text}\nA:"))
    assert [len(examples) for examples in by_template.values()] == [1, 1, 1]
    assert len(set().union(*by_template.values())) > 1
    assert texts_of("word_problem", "zero-shot-greedy-v1", items[0]) == [f"Q: {items[0].text}\nA:"]


def test_statuses_tell_refusals_from_missing_numbers() -> None:
    records = recorded(
        WORD_PROBLEM, problems(1), lambda item: ["I cannot help with that.", "No idea."][: 1 + (item.family == "he")]
    )
    assert {record.status for record in records if record.groups["family"] != "he"} == {"refused"}
    (he,) = (record for record in records if record.groups["family"] == "he")
    assert (he.status, he.reading and he.reading.answers) == ("scored", ("refused", "no number"))
    (one, *_) = recorded(RECOGNITION, sentences("Kim sold {pos} car."), lambda item: ["somebody saw em."])
    assert one.reading is not None
    assert one.reading.answers == ("e|ey",)


def test_an_answer_with_a_number_refuses_nothing() -> None:
    said = "I'm sorry for any confusion. The answer is 12."
    (record, *_) = recorded(WORD_PROBLEM, problems(1), lambda item: [said])
    assert (record.status, record.reading and record.reading.answers) == ("scored", ("12",))


def test_an_echo_behind_an_instruction_recognises_nothing() -> None:
    (item, *_) = sentences("Kim sold {pos} car at the market.")
    (request,) = RECOGNITION.requests(item, Asked(RECOGNITION.prompts["instructed-greedy-v1"]))
    assert isinstance(request, GenerateRequest)
    answer = Response(status="answered", text=f"{item.text} It was new.")
    read = RECOGNITION.read([exchange_of(request, answer, show_prompt=True, chat=True)], None)
    assert read.reading is not None
    assert read.reading.answers == ("none",)


def test_one_sample_that_never_came_takes_no_other_along() -> None:
    (item,) = prompts(1)
    requests = ASSIGNMENT.requests(item, Asked(ASSIGNMENT.prompts["sampled-v1"]))[:3]
    answers = [
        Response(status="answered", text="she left."),
        Response(status="failed", error="the line broke"),
        Response(status="answered", text="he left."),
    ]
    exchanges = [
        exchange_of(request, answer, show_prompt=True, chat=False)
        for request, answer in zip(requests, answers, strict=True)
    ]
    read = ASSIGNMENT.read(exchanges, None)
    assert read.reading is not None
    assert (read.status, read.reading.answers) == ("scored", ("she", "failed", "he"))
    assert ASSIGNMENT.read(exchanges[1:2], None).reason == "the line broke"


def problems_of(folder: Path) -> list[str]:
    return [problem for target in targets(folder) for problem in problems_of_file(target)]


def check_all_four(folder: Path, model: Path) -> None:
    run("-m", "builders.gifi", "--limit", "100", cwd=folder, status=0)
    asked = ("-m", "evaluators", "run", "--dataset", "out/datasets/gifi", "--backend", "transformers", "--model", model)
    # Eight examples do not fit such small models.
    prompts = ["--prompt", "math=zero-shot-sampled-v1", "--prompt", "sampled-v1"]
    done = run(*asked, "--limit", "33", *prompts, cwd=folder)
    # So small a model may write no number at all, which ends with a status of its own.
    no_number = "answers on math could be read" in done.stderr
    assert done.returncode == (3 if no_number else 0), done.stderr
    results = [read_run(path.parent).result for path in sorted((folder / "out/runs").rglob("result.json"))]
    assert {result.signature.task for result in results} == set(TASKS)
    for result in results:
        assert result.signature.n_outcomes is None
        assert result.counts.failed == 0
        values = {metric.name: metric for metric in result.metrics if not metric.group}
        by_family = {metric.group["family"] for metric in result.metrics if "family" in metric.group}
        if result.signature.task != "assignment":
            assert by_family == set(FAMILIES)
        primary = {"recognition": "gdr", "assignment": "he_share", "word_problem": "pe", "continuation": "cf"}
        assert primary[result.signature.task] in values
        assert (result.scores is None) == (result.signature.task != "continuation")
    index = check_index(folder / "out/runs")
    assert (index.protocol, index.missing) == ("sampled-v1", ())
    assert list(problems_of(folder / "out")) == []


@pytest.mark.slow
def test_a_language_model_goes_through_all_four_tasks(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model", "Llama", max_position_embeddings=512)
    check_all_four(tmp_path, model)


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
