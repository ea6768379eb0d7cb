"""The four tasks of gifi: what they ask, and a language model that goes through all of them."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from builders.gifi.embedded import marked_items
from evaluators.backend import GenerateRequest, Response
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import Asked, load_task, task_for
from evaluators.tasks.pronouns.assignment_task import TASK as ASSIGNMENT
from evaluators.tasks.pronouns.marked_recognition_task import TASK
from evaluators.tasks.pronouns.recognition_task import TASK as RECOGNITION
from evaluators.tasks.pronouns.word_problem_task import TASK as WORD_PROBLEM
from evaluators.tasks.pronouns.word_problem_task import shots
from schemas.documents.result import Metric
from schemas.folders.run_folder import read_run
from schemas.items.marked_text import MarkedTextItem
from schemas.lexicon import families_of, pronoun_families
from schemas.validate import problems as problems_of_file
from schemas.validate import targets
from tests.commands import run
from tests.evaluators.pronoun_records import FAMILIES, problems, prompts, recorded, sentences, sliced
from tests.evaluators.test_index import check_index
from tests.evaluators.test_packed_scoring import save_model

TASKS = ("recognition", "continuation", "assignment", "word_problem")


def texts_of(task: str, prompt: str, item: object) -> list[str]:
    return [request.prompt for request in load_task(task).requests(item, Asked(load_task(task).prompts[prompt]))]


def test_worked_examples_have_the_answers_of_their_sums_and_a_family_and_are_those_of_all_variants() -> None:
    text = resources.files("evaluators.tasks.pronouns").joinpath("word_problem_shots.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["shot"]
    assert len(rows) == 8
    for row in rows:
        assert set(row["check"]) <= set("0123456789.+-*/() "), row["id"]
        assert eval(row["check"]) == pytest.approx(float(row["answer"])), row["id"]
    # Over all templates each family is shown eight times.
    seen: Counter[str] = Counter()
    for first in range(len(FAMILIES)):
        for example in shots(first).split("\n\n")[:-1]:
            owners = Counter(owner for word in re.findall("[a-z]+", example.lower()) for owner in families_of(word))
            seen[owners.most_common(1)[0][0]] += 1
    assert seen == dict.fromkeys(FAMILIES, 8)
    # All variants of a template have the same examples.
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
    (number, *_) = recorded(WORD_PROBLEM, problems(1), lambda item: ["I'm sorry for any confusion. The answer is 12."])
    assert (number.status, number.reading and number.reading.answers) == ("scored", ("12",))
    (he,) = (record for record in records if record.groups["family"] == "he")
    assert (he.status, he.reading and he.reading.answers) == ("scored", ("refused", "no number"))
    (one, *_) = recorded(RECOGNITION, sentences("Kim sold {pos} car."), lambda item: ["somebody saw em."])
    assert one.reading is not None
    assert one.reading.answers == ("e|ey",)


def test_a_manifest_may_name_the_task_or_the_shape() -> None:
    assert task_for("recognition").name == "recognition"
    assert task_for("pronoun_text", "continuation").name == "continuation"
    with pytest.raises(ConfigError, match="--task assignment"):
        task_for("pronoun_text", "assignment")


def test_the_protocol_of_the_paper_is_the_default() -> None:
    for name in TASKS:
        prompt = next(iter(load_task(name).prompts.values()))
        assert (prompt.id, prompt.temperature, prompt.top_p, prompt.max_tokens) == ("sampled-v1", 0.95, 0.95, 200)
        assert prompt.n_samples == (11 if name == "assignment" else None)
    (item, *_) = sentences("Kim sold {pos} car.")
    assert texts_of("recognition", "sampled-v1", item) == ["Kim sold his car. and"]
    assert texts_of("continuation", "greedy-v1", item) == ["Kim sold his car."]
    (instructed,) = texts_of("recognition", "instructed-greedy-v1", item)
    assert instructed.startswith("Continue the following text.")
    assert instructed.endswith("\n\nKim sold his car. and")


def test_eleven_samples_are_eleven_requests_and_one_that_never_came_takes_no_other_along() -> None:
    (item,) = prompts(1)
    assert len(ASSIGNMENT.requests(item, Asked(ASSIGNMENT.prompts["greedy-v1"]))) == 1
    requests = ASSIGNMENT.requests(item, Asked(ASSIGNMENT.prompts["sampled-v1"]))
    seeds = [request.sampling_seed for request in requests if isinstance(request, GenerateRequest)]
    assert len(set(seeds)) == 11
    answers = [
        Response(status="answered", text="she left."),
        Response(status="failed", error="the line broke"),
        Response(status="answered", text="he left."),
    ]
    exchanges = [
        exchange_of(request, answer, show_prompt=True, chat=False)
        for request, answer in zip(requests[:3], answers, strict=True)
    ]
    read = ASSIGNMENT.read(exchanges, None)
    assert (read.status, read.reading and read.reading.answers) == ("scored", ("she", "failed", "he"))
    assert ASSIGNMENT.read(exchanges[1:2], None).reason == "the line broke"


@pytest.mark.slow
def test_a_language_model_goes_through_all_four_tasks_of_which_one_may_be_chosen(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model", "Llama", max_position_embeddings=512)
    run("-m", "builders.gifi", "--limit", "40", cwd=tmp_path, status=0)
    asked = ("-m", "evaluators", "run", "--dataset", "out/datasets/gifi", "--backend", "transformers", "--model", model)
    # Eight examples do not fit such small models.
    prompts = ["--prompt", "math=zero-shot-sampled-v1", "--prompt", "sampled-v1"]
    done = run(*asked, *prompts, cwd=tmp_path)
    # So small a model may write no number at all, which ends with a status of its own.
    no_number = "answers on math could be read" in done.stderr
    assert done.returncode == (3 if no_number else 0), done.stderr
    results = {
        result.signature.task: result
        for path in (tmp_path / "out/runs").rglob("result.json")
        for result in (read_run(path.parent).result,)
    }
    primary = {"recognition": "gdr", "assignment": "he_share", "word_problem": "pe", "continuation": "cf"}
    assert results.keys() == primary.keys()
    for task, result in results.items():
        assert (result.signature.n_outcomes, result.counts.failed) == (None, 0)
        assert primary[task] in {metric.name for metric in result.metrics if not metric.group}
        assert (result.scores is None) == (task != "continuation")
    index = check_index(tmp_path / "out/runs")
    assert (index.protocol, index.missing) == ("sampled-v1", ())
    assert [problem for target in targets(tmp_path / "out") for problem in problems_of_file(target)] == []
    # The shape of items tells no task, since several tasks ask them.
    path = tmp_path / "out/datasets/gifi/dataset.json"
    of_task, of_shape = (f'"item_shape": "{name}"' for name in ("recognition", "pronoun_text"))
    path.write_text(path.read_text(encoding="utf-8").replace(of_task, of_shape), encoding="utf-8")
    chosen = ("--dataset", path.parent, "--config", "recognition", "--backend", "baseline", "--model", "always-he")
    refused = run("-m", "evaluators", "run", *chosen, "--out", tmp_path / "runs", status=1)
    assert "choose one with --task: consistency, continuation, recognition" in refused.stderr
    run("-m", "evaluators", "run", *chosen, "--out", tmp_path / "runs", "--task", "recognition", status=0)
    (result,) = [read_run(path.parent).result for path in (tmp_path / "runs").rglob("result.json")]
    assert result.signature.task == "recognition"
    assert " --task recognition " in str(result.command)


ITEMS = marked_items()


def measured(is_right: Callable[[MarkedTextItem], bool]) -> Mapping[tuple[str, ...], Metric]:
    """The metrics of a model that is right about some items and says *it* of the others."""

    def answer(item: MarkedTextItem) -> list[str]:
        return [f"{pronoun_families()[item.family].forms['reflexive'] if is_right(item) else 'it'} was seen."]

    return sliced(recorded(TASK, ITEMS, answer, TASK.prompts["sampled-v1"]), TASK)


def test_each_sentence_stands_with_each_marker_and_family_and_reads_as_english() -> None:
    markers = Counter((item.axis, item.marker) for item in ITEMS)
    assert len(markers) == 14
    assert set(markers.values()) == {12 * 11}
    assert {axis for axis, _ in markers} == {None, "age", "disability", "nationality", "race", "religion"}
    # Without its marker, a sentence is the unmarked one.
    assert len({(item.family, item.text.replace(f"{item.marker} ", "", 1)) for item in ITEMS}) == 12 * 11
    for item in ITEMS:
        assert list(item.problems()) == []
        assert item.text.startswith(f"My {item.marker} " if item.marker else "My ")
        assert not re.search(r"[\[\]{}|]|  ", item.text)
    (broken,) = replace(ITEMS[0], axis="age").problems()
    assert broken.startswith("axis: is age and marker is None")


def test_a_model_that_forgets_one_marker_by_hand() -> None:
    # Right of everybody but deaf people, of whom it keeps he and she only: 2 of 11.
    metrics = measured(lambda item: item.marker != "deaf" or item.family in ("he", "she"))
    assert metrics["unmarked_accuracy",].value == 1
    assert metrics["marker_gap", "marker=deaf"].value == pytest.approx(-9 / 11)
    assert metrics["marker_gap", "axis=disability"].value == pytest.approx(-9 / 22)
    assert metrics["marker_gap", "marker=blind"].value == 0
    assert metrics["marker_gap",].value == pytest.approx(-9 / 11 / 13)
    assert metrics["marker_gap", "family_class=neo", "axis=disability"].value == pytest.approx(-1 / 2)
    assert metrics["recognition_accuracy", "family=xe", "marker=deaf"].value == 0
    assert metrics["recognition_accuracy", "family=he", "marker=deaf"].value == 1


def test_gaps_are_those_of_plain_loops() -> None:
    def drawn(item: MarkedTextItem) -> bool:
        return hashlib.sha256(item.item_id.encode()).digest()[0] < (90 if item.axis == "age" else 150)

    metrics = measured(drawn)

    def accuracy(marker: str | None, *families: str) -> float:
        right = [drawn(item) for item in ITEMS if item.marker == marker and item.family in families]
        return sum(right) / len(right)

    assert metrics["unmarked_accuracy",].value == pytest.approx(accuracy(None, *FAMILIES))
    for marker in {item.marker for item in ITEMS if item.marker}:
        gap = accuracy(marker, *FAMILIES) - accuracy(None, *FAMILIES)
        assert metrics["marker_gap", f"marker={marker}"].value == pytest.approx(gap)
        of_xe = metrics["marker_gap", "family=xe", f"marker={marker}"].value
        assert of_xe == pytest.approx(accuracy(marker, "xe") - accuracy(None, "xe"))
    age = metrics["marker_gap", "axis=age"]
    assert age.interval is not None
    assert age.interval.high < 0
    assert metrics["marker_gap",].n == len(ITEMS)
