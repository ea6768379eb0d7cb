"""How fast texts are generated, against plain batched ``generate``: ``make bench ARGS='-k bench_generation'``.

Prompts are those of gifi recognition, sampled as in the paper, up to 200 tokens each. Both ways take turns in one run,
in one process and as whole processes, with the same threads. The ratios of each pair are printed: above 1, ours is
faster. ``GENERATION_ITEMS`` sets how many prompts are asked, ``GENERATION_ROUNDS`` how often.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from pyarrow import parquet

from evaluators.backend import GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.task import Asked
from evaluators.tasks.pronouns.recognition_task import TASK
from schemas.files import row_files
from schemas.items.pronoun_text import PronounTextItem
from tests.bench.plain_generation import Settings, plain_texts
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import save_flat_llama

PROMPT = TASK.prompts["sampled-v1"]
PLAIN_ROWS = (16, 64, 256)
"""Rows of a plain batch that are tried; the fastest is compared with."""
ROUNDS = int(os.environ.get("GENERATION_ROUNDS", "5"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    folder = tmp_path_factory.mktemp("datasets") / "gifi"
    subprocess.run([sys.executable, "-m", "builders.gifi", "--out", folder], cwd=repository, check=True, text=True)
    return folder


@pytest.fixture(params=["tinystories-656k", "random-30m"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "random-30m":
        return save_flat_llama(tmp_path / "random-30m")
    data: Path = request.getfixturevalue("shared_data")
    return data / "models" / str(request.param)


def n_items(model: Path) -> int:
    """Number of prompts to ask; fewer of the larger model, which is slow."""
    return int(os.environ.get("GENERATION_ITEMS", "44" if model.name == "random-30m" else "242"))


def prompts_of(records: Path) -> list[str]:
    """The prompts that a run asked."""
    return [str(exchange["prompt"]) for row in parquet.read_table(records).to_pylist() for exchange in row["exchanges"]]


def sizes(n: int) -> list[int]:
    """The sizes of plain batches to try for a number of prompts."""
    return sorted({min(rows, n) for rows in PLAIN_ROWS})


def made_requests(dataset: Path, n: int) -> list[GenerateRequest]:
    """The first requests of gifi recognition."""
    items = row_files.read_rows(next((dataset / "data" / "recognition").glob("*.parquet")), PronounTextItem)
    asked = [request for item in list(items)[:n] for request in TASK.requests(item, Asked(PROMPT))]
    return [request for request in asked if isinstance(request, GenerateRequest)]


def settings_of(request: GenerateRequest) -> Settings:
    return Settings(request.max_tokens, request.temperature, request.top_p)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def report(label: str, n: int, ours: Sequence[float], plain: Sequence[float]) -> None:
    ratios = sorted(other / own for own, other in zip(ours, plain, strict=True))
    print(
        f"\n{label}: {n / statistics.median(ours):.1f} texts/s, plain {n / statistics.median(plain):.1f}; ratio "
        f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {statistics.median(ratios):.2f} of {len(ratios)} pairs"
    )


def bench_generation(model: Path, dataset: Path) -> None:
    """In one process, models opened beforehand."""
    transformers = pytest.importorskip("evaluators.backends.transformers.transformers_backend")
    requests = made_requests(dataset, n_items(model))
    backend = transformers.open_backend(str(model), BackendOptions(device="cpu"))
    network, tokenizer = backend.network, backend.tokenizer.pretrained
    prompts, settings = [request.prompt for request in requests], settings_of(requests[0])
    n_ours = sum(answer.n_completion_tokens or 0 for answer in all_answers_of(backend, requests))
    n_plain = 0

    def plain(rows: int) -> None:
        nonlocal n_plain
        _, n_plain = plain_texts(network, tokenizer, prompts, settings, rows)

    tried = {rows: seconds(partial(plain, rows)) for rows in sizes(len(prompts))}
    rows = min(tried, key=lambda rows: tried[rows])
    times = [(seconds(lambda: all_answers_of(backend, requests)), seconds(lambda: plain(rows))) for _ in range(ROUNDS)]
    report(f"{model.name}, in process, {len(prompts)} texts", len(prompts), *zip(*times, strict=True))
    print(f"tokens {n_ours:,}, plain {n_plain:,} in batches of {rows}; {backend.runtime.settings}")


def bench_generation_command(model: Path, dataset: Path, tmp_path: Path, repository: Path) -> None:
    """As whole processes: ``run`` with its store, records and metrics, and a script that calls ``generate``."""
    settings = settings_of(made_requests(dataset, 1)[0])
    numbers = iter(range(1000))

    def process(*arguments: object) -> None:
        command = [sys.executable, "-m", *map(str, arguments)]
        # A plain script that spins on a busy machine would be many times slower.
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
        subprocess.run(command, cwd=repository, env=environment, capture_output=True, check=True)

    def ours() -> None:
        where = ("--dataset", dataset, "--config", "recognition", "--out", tmp_path / f"runs-{next(numbers)}")
        how = ("--backend", "transformers", "--model", model, "--device", "cpu", "--limit", n_items(model))
        process("evaluators", "run", *where, *how)

    ours()
    prompts = prompts_of(next(tmp_path.glob("runs-0/**/records.parquet")))
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"prompts": prompts, "settings": settings}))

    def plain(rows: int) -> None:
        process("tests.bench.plain_generation", model, path, rows)

    tried = {rows: seconds(partial(plain, rows)) for rows in sizes(len(prompts))[1:] or [len(prompts)]}
    rows = min(tried, key=lambda rows: tried[rows])
    times = [(seconds(ours), seconds(lambda: plain(rows))) for _ in range(ROUNDS)]
    report(f"{model.name}, whole process, {len(prompts)} texts", len(prompts), *zip(*times, strict=True))
