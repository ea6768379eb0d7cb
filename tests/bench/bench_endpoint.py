"""What a run over an endpoint takes, beside a bare loop with the library ``openai``: ``make bench ARGS='-k endpoint'``.

Both ask the same prompts of the same server on loopback, with the same concurrency, as whole processes in turns. The
ratio is that of our CPU seconds to the bare loop's. ``ENDPOINT_REQUESTS`` sets how many requests are sent.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluators.task import Asked
from evaluators.tasks.coreference.coreference_task import TASK
from tests.bench.checkouts import CHECKOUTS, ROUNDS, taken
from tests.evaluators.made_data import made_items, write_dataset

N_REQUESTS = int(os.environ.get("ENDPOINT_REQUESTS", "20000"))
PROMPT = TASK.prompts["mcq2-generate-v1"]
BENCH = Path(__file__).parent


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen([sys.executable, BENCH / "chat_server.py"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.kill()


def bench_endpoint(url: str, tmp_path: Path) -> None:
    items = made_items(N_REQUESTS // 4)
    dataset, prompts = write_dataset(tmp_path / "made", {"type2": items}), tmp_path / "prompts.json"
    prompts.write_text(json.dumps([request.prompt for item in items for request in TASK.requests(item, Asked(PROMPT))]))
    model = ("--backend", "openai", "--model", "made/model", "--base-url", url, "--api", "chat", "--prompt", PROMPT.id)
    ratios: dict[Path, list[float]] = {checkout: [] for checkout in CHECKOUTS}
    for number in range(ROUNDS):
        bare = taken(CHECKOUTS[-1], BENCH / "bare_client.py", url, prompts, 64).cpu
        for place, checkout in enumerate(CHECKOUTS):
            out = tmp_path / f"runs-{number}-{place}"
            ours = taken(checkout, "-m", "evaluators", "run", "--dataset", dataset, *model, "--out", out)
            ratios[checkout].append(ours.cpu / bare)
            print(f"\n{checkout.name}: {ours.cpu:.1f} s, bare loop {bare:.1f} s of CPU; {ours.peak:.0f} MB", end="")
    for checkout, values in ratios.items():
        print(f"\n{checkout.name}: {statistics.median(values):.2f} times the bare loop (median of {ROUNDS})")
