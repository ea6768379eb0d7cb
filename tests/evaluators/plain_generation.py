"""A loop that generates one text at a time without a cache, for tests to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from evaluators.backend import GenerateRequest, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.transformers_backend import TransformersBackend, open_backend
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import made_items

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
ENDS = (2, *range(40, 70))
"""End tokens that the tests give to models, so that random ones end their texts now and then."""


def opened(folder: Path, *, batch_tokens: int = 160, **changes: Any) -> TransformersBackend:
    backend = open_backend(str(folder), BackendOptions(device="cpu", batch_tokens=batch_tokens, **changes))
    backend.network.generation_config.eos_token_id = list(ENDS)
    return backend


def decoded(backend: TransformersBackend, ids: Sequence[int]) -> str:
    """A text, without the tokens that stand for no text."""
    return str(backend.tokenizer.pretrained.decode(list(ids), skip_special_tokens=True))


def made_requests(n: int = 30) -> list[GenerateRequest]:
    """Prompts and answers of many lengths; greedy, sampled, and from the most probable tokens only."""
    requests = []
    for index, item in enumerate(made_items(n // 2)):
        temperature, top_p = ((0.0, 1.0), (1.0, 1.0), (0.7, 0.8))[index % 3]
        requests.append(
            GenerateRequest(
                prompt=item.sentence[: 8 + index * 7 % 50],
                max_tokens=1 + index * 5 % 23,
                temperature=temperature,
                top_p=top_p,
                sample=index,
                seed=7,
            )
        )
    return requests


class Plain(NamedTuple):
    """What the loop gives."""

    ids: list[int]
    finish_reason: str

    @property
    def shown(self) -> list[int]:
        """Without the end token."""
        return self.ids[:-1] if self.finish_reason == "stop" else self.ids


def plain(backend: TransformersBackend, request: GenerateRequest) -> Plain:
    """Token after token, the whole text in every pass."""
    prompt = backend.tokenizer.pretrained(request.prompt)["input_ids"]
    generator = np.random.default_rng(request.sampling_seed)
    known = {*backend.tokenizer.pretrained.get_vocab().values(), *ENDS}
    ids: list[int] = []
    while len(ids) < request.max_tokens:
        with torch.no_grad():
            logits = backend.network(torch.tensor([prompt + ids]), use_cache=False).logits[0, -1].float()
        logits = torch.tensor([value if token in known else -torch.inf for token, value in enumerate(logits.tolist())])
        ids.append(plain_token(logits, request, generator))
        if ids[-1] in ENDS:
            return Plain(ids, "stop")
    return Plain(ids, "length")


def plain_token(logits: Any, request: GenerateRequest, generator: np.random.Generator) -> int:
    if request.temperature == 0:
        return int(logits.argmax())
    masses = plain_distribution(logits, request)
    numbers = generator.random((len(masses) - 1).bit_length())
    first, size = 0, 2 ** len(numbers)
    for number in numbers:
        size //= 2
        left, right = masses[first : first + size], masses[first + size : first + 2 * size]
        first += size if number * sum(left + right) >= sum(left) else 0
    return first


def plain_distribution(logits: Any, request: GenerateRequest) -> list[float]:
    """Probabilities by token id, zero for those that top_p leaves out; not normalised again."""
    probabilities = [float(p) for p in torch.log_softmax(logits / request.temperature, dim=-1).double().exp()]
    kept: set[int] = set()
    mass = 0.0
    for token in sorted(range(len(probabilities)), key=lambda token: (-probabilities[token], token)):
        if mass >= request.top_p:
            break
        kept.add(token)
        mass += probabilities[token]
    return [p if token in kept else 0.0 for token, p in enumerate(probabilities)]


def assert_equals_plain_loop(
    backend: TransformersBackend, requests: Sequence[GenerateRequest], *, generation: str = "continuous"
) -> list[Response]:
    answers = all_answers_of(backend, requests)
    assert backend.runtime.settings["generation"] == generation
    for request, answer in zip(requests, answers, strict=True):
        expected = plain(backend, request)
        assert answer.status == "answered", answer.error
        text = decoded(backend, expected.shown)
        assert answer.text == text
        assert (answer.finish_reason, answer.n_completion_tokens) == (expected.finish_reason, len(expected.ids))
        assert answer.n_prompt_tokens == len(backend.tokenizer.context_ids(request.prompt))
        assert backend.needed_tokens([request]) == [answer.n_prompt_tokens + 1]
    return answers
