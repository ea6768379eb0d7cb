"""What a run over an endpoint takes, beside a bare loop with the library ``openai``: ``make bench ARGS='-k endpoint'``.

Both ask the same prompts of the same server on loopback, with the same concurrency, as whole processes in turns. The
CPU seconds of the client count, since machines are shared: the ratio is that of ours to the bare loop. With
``BEFORE=DIR``, another checkout of the repository runs in turns with this one. ``ENDPOINT_REQUESTS`` sets how many
requests are sent, ``ENDPOINT_ROUNDS`` how often.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluators.task import Asked
from evaluators.tasks.coreference.coreference_task import TASK
from tests.bench.bench_records import folders
from tests.evaluators.made_data import made_items, write_dataset

N_REQUESTS = int(os.environ.get("ENDPOINT_REQUESTS", "20000"))
ROUNDS = int(os.environ.get("ENDPOINT_ROUNDS", "3"))
PROMPT = TASK.prompts["mcq2-generate-v1"]
BENCH = Path(__file__).parent


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen([sys.executable, BENCH / "chat_server.py"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.kill()


def taken(folder: Path, *command: object) -> tuple[float, list[int]]:
    """Run Python in a checkout, and return its CPU seconds, and its resident megabytes four times a second."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "BIASBOARD_MEMORY": "off"}
    words = [sys.executable, *map(str, command)]
    process = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    curve: list[int] = []
    while True:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            return usage.ru_utime + usage.ru_stime, curve
        curve.append(pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000)
        time.sleep(0.25)


def told(curve: list[int]) -> str:
    """Resident megabytes at twenty points in time, and the most."""
    return f"{curve[:: max(1, len(curve) // 20)]}, at most {max(curve)} MB"


def run(folder: Path, url: str, out: Path, *datasets: Path) -> tuple[float, list[int]]:
    """Ask about datasets through the command line."""
    named = [word for dataset in datasets for word in ("--dataset", dataset)]
    model = ("--backend", "openai", "--model", "made/model", "--base-url", url, "--api", "chat")
    return taken(folder, "-m", "evaluators", "run", *named, *model, "--prompt", PROMPT.id, "--out", out)


def bench_endpoint_cpu(url: str, tmp_path: Path) -> None:
    items = made_items(N_REQUESTS // 4)
    dataset, prompts = write_dataset(tmp_path / "made", {"type2": items}), tmp_path / "prompts.json"
    prompts.write_text(json.dumps([request.prompt for item in items for request in TASK.requests(item, Asked(PROMPT))]))
    ratios: dict[Path, list[float]] = {folder: [] for folder in folders()}
    for number in range(ROUNDS):
        bare, _ = taken(folders()[-1], BENCH / "bare_client.py", url, prompts, 64)
        for folder in folders():
            ours, curve = run(folder, url, tmp_path / f"{number}-{folder.name}", dataset)
            ratios[folder].append(ours / bare)
            print(f"\n{folder.name}: {ours:.1f} s, bare loop {bare:.1f} s of CPU; {told(curve)}", end="")
    for folder, values in ratios.items():
        print(f"\n{folder.name}: {statistics.median(values):.2f} times the bare loop (median of {ROUNDS})")


def bench_endpoint_memory(url: str, tmp_path: Path) -> None:
    """Resident megabytes over a run on four datasets, a quarter as many requests in all."""
    n = N_REQUESTS // 16
    items = made_items(4 * n)
    datasets = [
        write_dataset(tmp_path / f"made{k}", {"type2": items[2 * k * n : 2 * (k + 1) * n]}, name=f"made{k}")
        for k in range(4)
    ]
    for folder in folders():
        _, curve = run(folder, url, tmp_path / f"runs-{folder.name}", *datasets)
        print(f"\n{folder.name}: {told(curve)}")
