"""A grid of contexts on a counting server: each distinct request once, and none for scoring again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from evaluators.backend import ChoiceRequest
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.selection import select
from evaluators.tasks.labels.classification_task import TASK
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, save_tokenizer
from tests.evaluators.label_data import made_dataset
from tests.suites.commands import run

PROMPTS = ("release-1024b-k0-v1", *(f"release-1024b-k2-set{number}-v1" for number in range(3)))
LIMIT = 4


def expected_texts(dataset: Path) -> dict[str, set[str]]:
    """The texts that each prompt sends where options are scored by echoing: every prompt with every label."""
    manifest = read_manifest(dataset)
    selection = select(dataset, manifest, "tasks", limit=LIMIT, support=TASK.support_splits)
    found = {}
    for prompt in PROMPTS:
        parts = Plan(selection, TASK, TASK.prompts[prompt]).parts
        requests = [request for part in parts for of_item in part.requests for request in of_item]
        choices = [one for one in requests if isinstance(one, ChoiceRequest)]
        found[prompt] = {one.prompt + option for one in choices for option in one.options}
    return found


@pytest.mark.slow
def test_a_server_sees_each_distinct_request_of_the_grid_once(tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="the extra openai is not installed")
    dataset, runs = made_dataset(tmp_path / "tasks", ("two",)), tmp_path / "runs"
    folder = save_tokenizer(tmp_path / "tokenizer")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    with FakeEndpoint(tokenizer, serves=frozenset({"echo", "models"})) as endpoint:
        run(
            *("-m", "evaluators", "run", "--dataset", dataset, "--out", runs, "--backend", "openai", "--model", MODEL),
            *("--base-url", endpoint.url, "--tokenizer", folder),
            *("--prompt", "release-1024b", "--contexts", "0,2", "--limit", str(LIMIT)),
        )
        wanted = Counter(
            json.dumps(tokenizer.encode(text).ids) for texts in expected_texts(dataset).values() for text in texts
        )
        sent = {prompt: n for prompt, n in endpoint.answered.items() if prompt in wanted}
        # Each of the four results has answers of its own, also where two contexts show the same examples.
        assert sent == wanted
        assert len(endpoint.answered) - len(sent) < 20, "the others find out what the endpoint can do"
        n_before = endpoint.n_received
        for result in runs.rglob("result.json"):
            run("-m", "evaluators", "rescore", result.parent)
        assert endpoint.n_received == n_before
    assert len(list(runs.rglob("result.json"))) == len(PROMPTS)
