"""The same requests through every way of computing them: log-probabilities agree, decisions are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pytest

from evaluators.backend import ChoiceRequest, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai import openai_backend as openai
from evaluators.backends.transformers import transformers_backend as transformers
from evaluators.backends.vllm.vllm_backend import VllmBackend
from tests.evaluators.asking import all_answers_of
from tests.vllm.conftest import SERVED, choices

N_REQUESTS = 500
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def requests() -> list[ChoiceRequest]:
    return choices(N_REQUESTS)


@pytest.fixture(scope="module")
def answered(
    requests: list[ChoiceRequest], made_llama: Path, server: str, engine: VllmBackend
) -> dict[str, list[Response]]:
    """Answers by the way of computing them."""
    found = {}
    for scoring in ("plain", "packed"):
        options = BackendOptions(device="cpu", dtype="float32", scoring=scoring)
        found[f"transformers, {scoring}"] = all_answers_of(
            transformers.open_backend(str(made_llama), options), requests
        )
    found["vllm, in process"] = all_answers_of(engine, requests)
    endpoint = openai.open_backend(SERVED, BackendOptions(base_url=server, tokenizer=str(made_llama)))
    found["vllm's server, through openai"] = all_answers_of(endpoint, requests)
    return found


def test_all_ways_agree(answered: Mapping[str, list[Response]]) -> None:
    for way, responses in answered.items():
        assert {response.status for response in responses} == {"answered"}, way
    for one, other in combinations(answered, 2):
        largest, n_other_decisions = compare(answered[one], answered[other])
        assert (largest < TOLERANCE, n_other_decisions) == (True, 0), (one, other, largest)
    counts = [[response.option_token_counts for response in responses] for responses in answered.values()]
    assert all(count == counts[0] for count in counts)


def compare(ones: Sequence[Response], others: Sequence[Response]) -> tuple[float, int]:
    """The largest difference, and the number of decisions that differ."""
    largest, n_other = -1.0, 0
    for first, second in zip(ones, others, strict=True):
        pairs = list(zip(known(first.option_logprobs), known(second.option_logprobs), strict=True))
        largest = max(largest, *(abs(a - b) for a, b in pairs))
        best = [max(range(len(pairs)), key=lambda index: pairs[index][side]) for side in (0, 1)]
        n_other += best[0] != best[1]
    return largest, n_other


def known(logprobs: Sequence[float | None]) -> list[float]:
    values = [value for value in logprobs if value is not None]
    assert len(values) == len(logprobs)
    return values
