"""How many texts are generated side by side, with how many threads, and which token ids are never generated."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.backend import GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.transformers_backend import TransformersBackend, open_backend
from tests.commands import run
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import save_flat_llama
from tests.evaluators.plain_generation import ENDS, made_requests, plain

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(params=["made", "flat", "tinystories-656k"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A model that the test makes, one that prefers no token, and a real one where it is at hand."""
    if request.param == "made":
        made: Path = request.getfixturevalue("tiny_llama")
        return made
    if request.param == "flat":
        return save_flat_llama(tmp_path / "flat", hidden_size=64)
    data: Path = request.getfixturevalue("shared_data")
    return data / "models" / str(request.param)


def opened(folder: Path, batch_tokens: int | None = None) -> TransformersBackend:
    return open_backend(str(folder), BackendOptions(device="cpu", batch_tokens=batch_tokens))


def widest_pass(backend: TransformersBackend, requests: list[GenerateRequest]) -> int:
    """The largest number of texts that were given their next token in one pass."""
    widest = 0

    def note(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        nonlocal widest
        rows, columns = named["input_ids"].shape
        widest = max(widest, rows if columns == 1 else 0)

    handle = backend.network.register_forward_pre_hook(note, with_kwargs=True)
    all_answers_of(backend, requests)
    handle.remove()
    return widest


@pytest.mark.slow
def test_answers_are_equal_whatever_runs_side_by_side(model: Path) -> None:
    requests = [
        replace(request, stop=(" the",) if index % 5 == 0 else ()) for index, request in enumerate(made_requests(60))
    ]
    alone = all_answers_of(opened(model, 1), requests)
    assert {answer.status for answer in alone} == {"answered"}
    assert len({answer.n_completion_tokens for answer in alone}) > 5, "answers of one length try nothing"
    for batch_tokens in (100, 333, None):
        backend = opened(model, batch_tokens)
        assert all_answers_of(backend, requests) == alone
        assert "tokens_left_to_rounding" not in backend.runtime.settings


@pytest.mark.slow
def test_what_rounding_may_have_decided_is_counted(tiny_llama: Path) -> None:
    requests = [request for request in made_requests(60) if request.temperature > 0]
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu", dtype="bfloat16"))
    answers = all_answers_of(backend, requests)
    n_tokens = sum(answer.n_completion_tokens or 0 for answer in answers)
    assert 0 < int(backend.runtime.settings["tokens_left_to_rounding"]) <= n_tokens


@pytest.mark.slow
def test_without_a_choice_memory_decides_and_not_the_budget_of_scoring(tiny_llama: Path) -> None:
    base = GenerateRequest(prompt="The guard waited for the", max_tokens=100, temperature=1.0)
    requests = [replace(base, sample=index) for index in range(40)]
    backend = opened(tiny_llama)
    backend.network.generation_config.eos_token_id = None
    backend.tokenizer.pretrained.eos_token = None
    assert backend.batch_tokens == 1024
    assert widest_pass(backend, requests) == 40
    backend.wanted_tokens = 330
    assert widest_pass(backend, requests) == 3


@pytest.mark.slow
@pytest.mark.parametrize("n_more", [7, 5000])
def test_ids_without_a_token_are_never_generated(
    tiny_llama: Path, tmp_path: Path, n_more: int, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_llama)
    network: Any = transformers.AutoModelForCausalLM.from_pretrained(tiny_llama)
    network.resize_token_embeddings(len(tokenizer) + n_more)
    with torch.no_grad():
        # Larger weights than those of tokens: without a mask, nearly every token would be one of these.
        network.get_output_embeddings().weight[len(tokenizer) :].normal_(std=3.0)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backend = opened(tmp_path)
    backend.network.generation_config.eos_token_id = list(ENDS)
    requests = made_requests()
    with caplog.at_level(logging.WARNING, "evaluators"):
        answers = all_answers_of(backend, requests)
    assert backend.runtime.settings["ids_without_token"] == str(n_more)
    assert ("name that one with --tokenizer" in caplog.text) == (n_more == 5000)
    for request, answer in zip(requests, answers, strict=True):
        expected = plain(backend, request)
        assert max(expected.ids) < len(tokenizer)
        assert (answer.n_completion_tokens, answer.finish_reason) == (len(expected.ids), expected.finish_reason)
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}


def test_a_vocabulary_that_fits_is_not_mentioned(tiny_llama: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend = opened(tiny_llama)
    with caplog.at_level(logging.WARNING, "evaluators"):
        all_answers_of(backend, made_requests(6))
    assert "ids_without_token" not in backend.runtime.settings
    assert "--tokenizer" not in caplog.text


def test_the_prompts_of_a_wrong_tokenizer_fail_with_the_remedy(tiny_llama: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_llama)
    network: Any = transformers.AutoModelForCausalLM.from_pretrained(tiny_llama)
    network.resize_token_embeddings(50)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (answer,) = all_answers_of(opened(tmp_path), [GenerateRequest(prompt="The guard waited", max_tokens=4)])
    assert answer.status == "failed"
    assert "is not among the model's 50; name the tokenizer that it was trained with" in str(answer.error)


_THREADS = """
import os
from evaluators.backends.transformers import load
torch = load.import_torch()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
print(load.set_threads(torch), os.environ.get("OMP_WAIT_POLICY"))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity of processes")
@pytest.mark.parametrize("variables", [{}, {"OMP_NUM_THREADS": "2"}])
def test_threads_are_those_of_the_user_or_the_usable_cores(variables: dict[str, str]) -> None:
    left_out: dict[str, Any] = dict.fromkeys(name for name in os.environ if name.startswith(("OMP_", "MKL_")))
    found = run("-c", _THREADS, status=0, fresh=True, **left_out | variables)
    number, policy = found.stdout.split()
    assert policy == "None", "programs that are started later inherit the setting"
    chosen = 1 if not variables else min(2, len(os.sched_getaffinity(0)))
    assert int(number) == chosen
    assert ("threads that outnumber cores" in found.stderr) == (chosen > 1)
