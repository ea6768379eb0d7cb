"""How fast texts are generated, against plain batched ``generate``: ``make bench ARGS='-k bench_generation'``.

Prompts are those of gifi recognition, sampled as in the paper, up to 200 tokens each. Both ways take turns in one
process, with the same threads. The ratios of each pair are printed: above 1, ours is faster. ``GENERATION_ITEMS`` sets
how many prompts are asked, ``GENERATION_ROUNDS`` how often.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evaluators.backend import GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.task import Asked
from evaluators.tasks.pronouns.recognition_task import TASK
from schemas.files import row_files
from schemas.items.pronoun_text import PronounTextItem
from tests.bench.checkouts import taken
from tests.commands import REPOSITORY
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import save_flat_llama

PROMPT = TASK.prompts["sampled-v1"]
PLAIN_ROWS = (16, 64, 256)
"""Rows of a plain batch that are tried; the fastest is compared with."""
ROUNDS = int(os.environ.get("GENERATION_ROUNDS", "5"))


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[PronounTextItem]:
    folder = tmp_path_factory.mktemp("datasets") / "gifi"
    taken(REPOSITORY, "-m", "builders.gifi", "--out", folder)
    return list(row_files.read_rows(next((folder / "data" / "recognition").glob("*.parquet")), PronounTextItem))


@pytest.fixture(params=["tinystories-656k", "random-30m"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "random-30m":
        return save_flat_llama(tmp_path / "random-30m")
    data: Path = request.getfixturevalue("shared_data")
    return data / "models" / str(request.param)


def plain_tokens(network: Any, tokenizer: Any, requests: list[GenerateRequest], rows: int) -> int:
    """Generate a text for each request as a script that somebody writes in five minutes, and count the tokens in all.

    Prompts are sorted by length, so that little is padded.
    """
    import torch

    prompts, asked = sorted((request.prompt for request in requests), key=len), requests[0]
    sampling: dict[str, Any] = {"do_sample": False}
    if asked.temperature > 0:
        sampling = {"do_sample": True, "temperature": asked.temperature, "top_p": asked.top_p, "top_k": 0}
    tokenizer.padding_side = "left"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    torch.manual_seed(0)
    n_tokens = 0
    for start in range(0, len(prompts), rows):
        given = tokenizer(prompts[start : start + rows], return_tensors="pt", padding=True)
        with torch.inference_mode():
            found = network.generate(
                input_ids=given["input_ids"],
                attention_mask=given["attention_mask"],
                max_new_tokens=asked.max_tokens,
                pad_token_id=tokenizer.pad_token_id,
                **sampling,
            )
        new = found[:, given["input_ids"].shape[1] :]
        tokenizer.batch_decode(new, skip_special_tokens=True)
        ended = (new == tokenizer.eos_token_id).int()
        n_tokens += int(torch.where(ended.any(dim=1), ended.argmax(dim=1) + 1, new.shape[1]).sum())
    return n_tokens


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def bench_generation(model: Path, items: list[PronounTextItem]) -> None:
    """Time both with models that are open."""
    transformers = pytest.importorskip("evaluators.backends.transformers.transformers_backend")
    # Fewer of the larger model, which is slow.
    n = int(os.environ.get("GENERATION_ITEMS", "44" if model.name == "random-30m" else "242"))
    asked = [request for item in items[:n] for request in TASK.requests(item, Asked(PROMPT))]
    requests = [request for request in asked if isinstance(request, GenerateRequest)]
    backend = transformers.open_backend(str(model), BackendOptions(device="cpu"))
    plain = partial(plain_tokens, backend.network, backend.tokenizer.pretrained, requests)
    n_ours = sum(answer.n_completion_tokens or 0 for answer in all_answers_of(backend, requests))
    tried = {rows: seconds(partial(plain, rows)) for rows in sorted({min(rows, len(requests)) for rows in PLAIN_ROWS})}
    rows = min(tried, key=lambda rows: tried[rows])
    times = [(seconds(lambda: all_answers_of(backend, requests)), seconds(lambda: plain(rows))) for _ in range(ROUNDS)]
    ratios = sorted(theirs / ours for ours, theirs in times)
    rate, plain_rate = (len(requests) / statistics.median(each) for each in zip(*times, strict=True))
    print(f"\n{model.name}, {len(requests)} texts: {rate:.1f} texts/s, plain {plain_rate:.1f}", end="; ")
    print(f"ratio {ratios[0]:.2f} to {ratios[-1]:.2f}, median {statistics.median(ratios):.2f} of {ROUNDS} pairs")
    print(f"tokens {n_ours:,}, plain {plain(rows):,} in batches of {rows}; {backend.runtime.settings}")
