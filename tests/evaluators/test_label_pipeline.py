"""The task *classification* from a dataset to results: what a real command asks."""

from __future__ import annotations

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
def test_the_model_is_asked_each_request_of_the_grid_once(tmp_path: Path) -> None:
    dataset = made_dataset(tmp_path / "tasks", CONFIGS)
    ask(dataset, tmp_path / "runs", "--limit", "0", PLANTED_LOG=tmp_path / "log")
    asked = Counter((tmp_path / "log").read_text(encoding="utf-8").split())
    expected = {prompt: set(requests_of(prompt)) for prompt in PROMPTS}
    assert asked == sum(map(Counter, expected.values()), Counter())
    results = [told(path) for path in (tmp_path / "runs").rglob("result.json")]
    found = {result["signature"]["prompt"]: result["usage"]["n_requests"] for result in results}
    assert found == {prompt: len(wanted) for prompt, wanted in expected.items()}
