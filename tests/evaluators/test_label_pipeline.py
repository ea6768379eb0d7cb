"""The task *classification* from a dataset to results: requests and results of real commands, and models."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_prompts import filled
from schemas.documents.record import choice_sha256
from tests.evaluators.label_data import SPLITS, made_dataset, made_items
from tests.suites.commands import ask, told

CONFIGS = ("two", "letters")
PROMPTS = ("release-4096b-k0-v1", *(f"release-4096b-k8-set{number}-v1" for number in range(3)))
ALL = ("--limit", "0")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("tasks") / "tasks", CONFIGS)


@pytest.fixture(scope="module")
def runs(dataset: Path) -> Path:
    """The default grid, asked once; the hashes of the requests are in ``log`` beside the runs."""
    ask(dataset, dataset.parent / "runs", *ALL, PLANTED_LOG=dataset.parent / "log")
    return dataset.parent / "runs"


def results(root: Path) -> dict[str, Path]:
    """The folder of each prompt's run."""
    return {told(path)["signature"]["prompt"]: path.parent for path in root.rglob("result.json")}


def requests_of(prompt_id: str) -> Iterator[str]:
    """The hashes of the requests about all items with a prompt."""
    prompt = TASK.prompts[prompt_id]
    k = prompt.n_examples or 0
    first = k * (prompt.example_set or 0)
    for config in CONFIGS:
        shown = made_items(config, "pool")[first : first + k]
        for split in SPLITS:
            for item in made_items(config, split):
                text = filled(item, prompt, [one for one in shown if one is not item]).text
                yield choice_sha256(text, tuple(f" {label}" for label in item.labels))


@pytest.mark.slow
def test_the_model_is_asked_each_request_of_the_grid_once(dataset: Path, runs: Path, tmp_path: Path) -> None:
    asked = Counter((dataset.parent / "log").read_text(encoding="utf-8").split())
    expected = [set(requests_of(prompt)) for prompt in PROMPTS]
    assert asked == sum((Counter(one) for one in expected), Counter())
    assert results(runs).keys() == {*PROMPTS}
    for prompt, wanted in zip(PROMPTS, expected, strict=True):
        assert told(results(runs)[prompt] / "result.json")["usage"]["n_requests"] == len(wanted)
    said = ask(dataset, tmp_path / "runs", *ALL, "--dry-run", "--format", "json")
    document, _ = json.JSONDecoder().raw_decode(said)
    assert [(one["prompt"], one["n_to_ask"]) for one in document["runs"]] == [
        (prompt, len(wanted)) for prompt, wanted in zip(PROMPTS, expected, strict=True)
    ]
    assert not (tmp_path / "runs").exists()
