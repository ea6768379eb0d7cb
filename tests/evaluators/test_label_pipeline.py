"""The task *classification* from a dataset to results: requests and results of real commands, and models."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evaluators.backend import ChoiceRequest
from evaluators.backend_options import BackendOptions
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import Asked
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_prompts import filled
from schemas.documents.record import choice_sha256
from schemas.documents.result import Normalisation
from schemas.items.label import LabelItem
from tests.evaluators.asking import all_answers_of
from tests.evaluators.label_data import SPLITS, made_dataset, made_items
from tests.evaluators.single_passes import ROUNDING
from tests.suites.commands import ask, run, told

CONFIGS = ("two", "letters")
PROMPTS = ("release-4096b-k0-v1", *(f"release-4096b-k8-set{number}-v1" for number in range(3)))
ALL = ("--limit", "0")
NORMALISATIONS: tuple[Normalisation, ...] = ("token_mean_if_unequal", "token_mean_with_end")


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


def metrics(folder: Path) -> dict[str, float | None]:
    return {one["name"]: one["value"] for one in told(folder / "result.json")["metrics"] if not one["group"]}


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


@pytest.mark.slow
def test_rescoring_asks_nothing_and_gives_the_same_bytes(dataset: Path, runs: Path) -> None:
    names = ("result.json", "records.parquet")
    before = {folder: [(folder / name).read_bytes() for name in names] for folder in results(runs).values()}
    log = dataset.parent / "log"
    n_asked = len(log.read_text(encoding="utf-8"))
    run("-m", "evaluators", "rescore", runs, PLANTED_LOG=log)
    ask(dataset, runs, *ALL, PLANTED_LOG=log)
    assert len(log.read_text(encoding="utf-8")) == n_asked
    assert {folder: (folder / names[1]).read_bytes() for folder in before} == {
        one: two[1] for one, two in before.items()
    }
    run("-m", "evaluators", "rescore", runs)
    for folder, (_, records) in before.items():
        assert (folder / names[1]).read_bytes() == records
    assert "no problems" in run("-m", "schemas.validate", runs)


@pytest.mark.slow
def test_a_run_ends_with_the_commands_that_go_on_and_few_names_of_what_has_no_value(
    dataset: Path, tmp_path: Path
) -> None:
    said = ask(dataset, tmp_path, *ALL, "--config", "two", "--contexts", "0", "--verbose")
    lines = [line for line in said.splitlines() if line.startswith("without a value: ")]
    assert (
        "without a value: macro_f1_looc, bias_score_looc, accuracy_looc and 15 more (the prompt shows no examples)"
        in (lines)
    )
    assert len({line.partition("(")[2] for line in lines}) == len(lines)
    assert all(len(line.partition("(")[0].split(", ")) <= 4 for line in lines)
    assert f"next: biasboard board --runs {tmp_path}" in said


def short_requests(configs: Sequence[str]) -> list[ChoiceRequest]:
    """Requests with prompts that fit into a small model."""
    found: list[ChoiceRequest] = []
    for config in configs:
        prompt = TASK.prompts["release-1024b-k2-set0-v1"]
        short = [one for one in made_items(config, "pool") if len(one.text) < 40]
        for item in short[2:5]:
            short_item = LabelItem(**{name: getattr(item, name) for name in item.__slots__} | {"instruction": "Label"})
            for request in TASK.requests(short_item, Asked(prompt, short[:1])):
                assert isinstance(request, ChoiceRequest)
                found.append(request)
    return found


class Scored(NamedTuple):
    """A label, scored in one pass."""

    logprob: float
    end: float
    n_tokens: int


def plain_scores(backend: Any, request: ChoiceRequest) -> list[Scored]:
    """The log-probability of each label, that of the end after it, and its number of tokens: one pass for each."""
    import torch

    tokenizer = backend.tokenizer.pretrained
    encoded = [tokenizer(request.prompt + option)["input_ids"] for option in request.options]
    prompt = tokenizer(request.prompt)["input_ids"]
    context = list(prompt)
    # Tokens at the end of the prompt that merge with a label are scored with each of them.
    while any(ids[: len(context)] != context for ids in encoded):
        context.pop()
    found = []
    for ids in encoded:
        with torch.no_grad():
            logits = backend.network(torch.tensor([[*ids, tokenizer.eos_token_id]])).logits[0]
        logprobs = torch.log_softmax(logits.double(), dim=-1)
        each = [float(logprobs[place - 1, ids[place]]) for place in range(len(ids)) if place]
        end = float(logprobs[len(ids) - 1, tokenizer.eos_token_id])
        found.append(Scored(sum(each[len(context) - 1 :]), end, len(ids) - len(context)))
    return found


def plain_shares(scores: Sequence[Scored], normalisation: Normalisation) -> list[float]:
    """The distribution over labels; a token that merges with the prompt counts as one of each label."""
    is_sum = normalisation == "token_mean_if_unequal" and len({one.n_tokens for one in scores}) == 1
    if normalisation == "token_mean_with_end":
        values = [(one.logprob + one.end) / (one.n_tokens + 1) for one in scores]
    else:
        values = [one.logprob if is_sum else one.logprob / one.n_tokens for one in scores]
    odds = [math.exp(value - max(values)) for value in values]
    return [value / sum(odds) for value in odds]


def test_scores_of_a_real_model_are_those_of_single_passes_where_tokens_merge(shared_data: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    from evaluators.backends.transformers.transformers_backend import open_backend

    folder = shared_data / "models" / "tinystories-656k"
    backend = open_backend(str(folder), BackendOptions(device="cpu"))
    requests = short_requests(("letters", "two", "six"))
    for request, response in zip(requests, all_answers_of(backend, requests), strict=True):
        assert response.status == "answered", response.error
        expected = plain_scores(backend, request)
        assert response.n_moved_tokens
        assert response.option_token_counts == tuple(one.n_tokens for one in expected)
        assert response.option_logprobs == pytest.approx([one.logprob for one in expected], abs=ROUNDING)
        assert response.option_end_logprobs == pytest.approx([one.end for one in expected], abs=ROUNDING)
        exchange = exchange_of(request, response, show_prompt=True, chat=False)
        # A share moves by at most a quarter of what a difference of two log-probabilities does.
        for normalisation in NORMALISATIONS:
            reading = TASK.read([exchange], normalisation).reading
            assert reading is not None
            assert reading.probabilities == pytest.approx(plain_shares(expected, normalisation), abs=ROUNDING / 2)
