"""What scoring costs, as ratios of two ways measured in turn in one run: ``make bench``.

The machines that this runs on are shared and noisy: the median ratio counts, single times do not, and nothing here is a
test of speed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluators.backend import Request, Response, Sent
from evaluators.backend_options import BackendOptions
from evaluators.stores.store import ResponseStore, store_key
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.documents.result import Model
from tests.evaluators.made_data import made_items, save_tiny_llama

N_ROUNDS = 5
RATE = 10_000


def compare(label: str, unit: str, n: int, ours: Callable[[], object], other: Callable[[], object], names: str) -> None:
    """Time two ways in turn and print the median rate of ours and the median ratio."""
    ours(), other()
    pairs = [(_seconds(ours), _seconds(other)) for _ in range(N_ROUNDS)]
    ratio = statistics.median(second / first for first, second in pairs)
    rate = n / statistics.median(first for first, _ in pairs)
    print(f"\n{label}: {rate:,.0f} {unit}/s; {names}: {ratio:.2f} x (median of {N_ROUNDS} pairs)")


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _requests(n: int) -> list[Request]:
    prompt = prompt_of(TASK, "intrinsic-v1")
    return [request for item in made_items(n // 2) for request in TASK.requests(item, Asked(prompt))]


def bench_batches(tmp_path: Path) -> None:
    """Length-sorted batches against one request at a time."""
    transformers = pytest.importorskip("evaluators.backends.transformers.transformers_backend")
    pytest.importorskip("torch")
    folder = save_tiny_llama(tmp_path / "model")
    backend = transformers.open_backend(str(folder), BackendOptions(device="cpu"))
    requests = _requests(400)
    plain = transformers.open_backend(str(folder), BackendOptions(device="cpu", scoring="plain"))
    everything = frozenset(range(len(requests)))
    compare(
        "transformers, 400 requests of 2 options",
        "requests",
        len(requests),
        lambda: list(backend.ask(requests, everything)),
        lambda: [list(plain.ask([request], frozenset([0]))) for request in requests],
        "time of single requests over that of batches",
    )


def bench_store(tmp_path: Path) -> None:
    """What storing adds to the time of a backend of 10,000 requests per second."""
    model = Model(
        id="bench/model",
        revision=None,
        backend="bench",
        precision=None,
        chat_template_sha256=None,
        endpoint="local",
        identity_sha256="0" * 64,
    )
    requests = _requests(20_000)
    answer = Response(status="answered", option_logprobs=(-1.5, -2.5), option_end_logprobs=(None, None))
    fresh = _numbers()
    n = 256

    def run(store: ResponseStore | None) -> None:
        for start in range(0, len(requests), n):
            batch = requests[start : start + n]
            if store is not None:
                store.sent(Sent(len(batch)))
            time.sleep(len(batch) / RATE)
            if store is not None:
                keys = [store_key(model, request, with_facts=False) for request in batch]
                store.add({key: (request, answer) for key, request in zip(keys, batch, strict=True)}, n / RATE)

    def stored() -> None:
        with ResponseStore(tmp_path / f"{next(fresh)}.sqlite", model) as store:
            run(store)

    # The hash of a request is part of its record, stored or not.
    assert len({request.sha256 for request in requests}) == len(requests)
    compare(
        f"a backend of {RATE:,} requests/s that stores its answers in groups of {n}",
        "requests",
        len(requests),
        stored,
        lambda: run(None),
        "time without the store over that with it",
    )


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1
