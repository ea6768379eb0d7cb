"""The task *classification* answered in words: by a chat server whose every answer is known, and by baselines."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import DataError
from biasboard.ground.memory import Memory
from evaluators.backend import open_backend
from evaluators.backend_options import BackendOptions
from evaluators.runs.ask.pipeline import run
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.task import Asked
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_tables import IN_WORDS
from leaderboard.verify.keys import KeyCheck, open_book
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_complete_result
from schemas.items.label import LabelItem
from tests.commands import output_of
from tests.evaluators import label_oracle
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received, save_tokenizer
from tests.evaluators.label_data import made_dataset, made_items
from tests.suites.commands import told

pytestmark = pytest.mark.slow

PROTOCOL = "words-1024b"
PROMPTS = (f"{PROTOCOL}-k0-v1", f"{PROTOCOL}-k8-set1-v1")
CONFIGS = ("two", "three", "six")
RIGHT = ("{}", "Label: {}", "**{}**", '"{}".', "{}\n\nThe text says so.", "The answer is {}.")


def test_a_prompt_names_the_labels_of_the_item_and_asks_for_one_of_them() -> None:
    prompt = TASK.prompts["words-4096b-k8-set0-v1"]
    item, shown = made_items("three", "test")[0], made_items("three", "pool")[:2]
    labels = "".join(f"- {label}\n" for label in ("positive", "neutral", "negative"))
    examples = "".join(f"Input: {one.text.strip()}\nLabel: {one.target}\n\n" for one in shown)
    (request,) = TASK.requests(item, Asked(prompt, shown))
    assert request.prompt == (
        f"Label the text of three: positive, neutral, negative.\n\n{examples}Input: {item.text.strip()}\n\n"
        f"Labels:\n{labels}Answer with one label only.\nLabel:"
    )
    assert request.outcomes == item.labels
    assert (prompt.scoring, prompt.requires, prompt.temperature, prompt.chat) == ("generation", "generation", 0, True)


class Said(NamedTuple):
    """What the server did with an item."""

    status: str
    label: str | None


def behaviour(prompt: str, item: LabelItem) -> tuple[str, Said]:
    """The answer to a prompt, and what must be read from it: right in half of the cases."""
    draw = zlib.crc32(prompt.encode())
    wrong = next(label for label in reversed(item.labels) if label != item.target)
    kind, shape = draw % 20, RIGHT[draw // 20 % len(RIGHT)]
    if kind < 10 and item.target is not None:
        return shape.format(item.target), Said("scored", item.target)
    if kind < 14:
        return shape.format(wrong), Said("scored", wrong)
    if kind < 17:
        return "I'm sorry, but I can't help with that.", Said("refused", None)
    if kind < 18:
        return "It depends on who reads it.", Said("unparsed", None)
    if kind < 19:
        return f"{item.labels[0]} or {item.labels[1]}", Said("unparsed", None)
    return f"{item.labels[0]}? No, rather {wrong}", Said("unparsed", None)


class World(NamedTuple):
    """A dataset, the runs of the server on it, and what it said about each item under each prompt."""

    dataset: Path
    runs: Path
    said: dict[str, dict[tuple[str, str], tuple[LabelItem, Said]]]
    received: list[str]
    """The texts of all requests."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    pytest.importorskip("openai", reason="the extra openai is not installed")
    folder = tmp_path_factory.mktemp("words")
    dataset = made_dataset(folder / "datasets" / "tasks", CONFIGS)
    answers: dict[str, str] = {}
    texts: list[str] = []
    said: dict[str, dict[tuple[str, str], tuple[LabelItem, Said]]] = {}
    for prompt in PROMPTS:
        selection = select(dataset, read_manifest(dataset), "tasks", splits=("test", "bias"))
        plan = Plan(selection, TASK, TASK.prompts[prompt])
        said[prompt] = {}
        for part in plan.parts:
            for (split, item), (request,) in zip(part.items, part.requests, strict=True):
                assert isinstance(item, LabelItem)
                answers[request.prompt], one = behaviour(request.prompt, item)
                said[prompt][split, item.item_id] = (item, one)

    def alter(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        # What is not among them is a request that finds out what the server can do.
        texts.append(received.body["messages"][0]["content"])
        text = answers.get(texts[-1], "Good day")
        answer["choices"][0]["message"]["content"] = text
        return answer

    tokenizer = Tokenizer.from_file(str(save_tokenizer(folder / "tokenizer") / "tokenizer.json"))
    with FakeEndpoint(tokenizer, serves=frozenset({"chat", "models"}), alter=alter) as endpoint:
        output_of(
            *("-m", "evaluators", "run", "--dataset", dataset, "--out", folder / "runs", "--limit", "0"),
            *("--backend", "openai", "--model", MODEL, "--base-url", endpoint.url),
            *(word for prompt in PROMPTS for word in ("--prompt", prompt)),
        )
    return World(dataset, folder / "runs", said, texts)


def results(root: Path) -> dict[str, Path]:
    return {told(path)["signature"]["prompt"]: path.parent for path in root.rglob("result.json")}


def metrics(folder: Path) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in told(folder / "result.json")["metrics"] if not one["group"]}


def test_every_answer_is_read_as_it_was_meant_or_counted_as_none(world: World) -> None:
    assert results(world.runs).keys() == {*PROMPTS}
    for prompt, folder in results(world.runs).items():
        said = world.said[prompt].values()
        counts = told(folder / "result.json")["counts"]
        expected = Counter(one.status for _, one in said)
        assert {name: counts[name] for name in ("scored", "refused", "unparsed")} == expected
        assert counts["failed"] == 0
        rows = [row for of_config in label_oracle.rows_of(folder / "records.parquet").values() for row in of_config]
        read = [None if row.p is None else max(row.p, key=lambda label, p=row.p: p[label]) for row in rows]  # type: ignore[misc]
        assert sorted(map(str, read)) == sorted(str(one.label) for _, one in said)


def test_metrics_are_those_that_plain_loops_find_and_the_others_say_why_not(world: World) -> None:
    for folder in results(world.runs).values():
        parts = [label_oracle.measures(own) for own in label_oracle.rows_of(folder / "records.parquet").values()]
        assert len(parts) == len(CONFIGS)
        expected = label_oracle.shown({name: label_oracle.mean_over(parts, name) for name in parts[0]})
        expected["f1_rsd_correlation"] = label_oracle.correlation(parts, "f1_rsd_correlation")
        found = metrics(folder)
        assert {name: found[name]["value"] for name in expected} == pytest.approx(expected, abs=1e-9)
        nulls = {name for name, value in expected.items() if value is None}
        assert {"bias_score", "bias_score_floor", "macro_f1_cc", "gini_gini", "f1_bias_score_correlation"} <= nulls
        assert not nulls & {"accuracy", "macro_f1", "rsd", "rsd_paper", "gini", "squared_cv", "bias_score_answers"}
        assert {found[name]["reason"] for name in nulls} == {IN_WORDS}
        assert not (folder / "corrections.json").exists()


def of_all_splits(dataset: Path, root: Path, prompt: str) -> Path:
    """A result that also has the items that only calibrations read, as results in words had before."""
    plan = Plan(select(dataset, read_manifest(dataset), "tasks"), TASK, TASK.prompts[prompt])
    backend = open_backend("baseline", "uniform", BackendOptions())
    return run(plan, backend, RunOptions(root=root, command="tests")).folder


def test_items_that_only_calibrations_read_are_not_asked_and_change_no_value(world: World, tmp_path: Path) -> None:
    for folder in results(world.runs).values():
        assert told(folder / "result.json")["signature"]["splits"] == ["test", "bias"]
    known = {item.text for said in world.said.values() for item, _ in said.values()}
    inputs = [text.split("Input: ")[-1].partition("\n\nLabels:")[0] for text in world.received if "Labels:" in text]
    assert {*inputs} <= {text.strip() for text in known}
    asked = ("-m", "evaluators", "run", "--dataset", world.dataset, "--limit", "0", "--backend", "baseline")
    uniform = ("--model", "uniform", "--prompt", PROMPTS[1])
    output_of(*asked, *uniform, "--out", tmp_path / "now")
    (folder,) = results(tmp_path / "now").values()
    assert metrics(folder) == metrics(of_all_splits(world.dataset, tmp_path / "before", PROMPTS[1]))
    told_why = output_of(*asked, *uniform, "--out", tmp_path, "--split", "pool", status=1)
    assert f"--split pool: no measure reads it with prompt '{PROMPTS[1]}'; leave it out" in told_why


def test_a_result_that_has_them_is_refused_in_one_line(world: World, tmp_path: Path) -> None:
    folder = of_all_splits(world.dataset, tmp_path / "runs", PROMPTS[0])
    signature = read_complete_result(folder).signature
    known = open_book(tmp_path, world.dataset.parent).find(signature, Memory(None))
    with pytest.raises(DataError, match="items of split pool and content_free, which are not asked under prompt"):
        KeyCheck(str(folder), signature, known)
