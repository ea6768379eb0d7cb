"""How much faster classification after k examples is scored than by lm-eval's hf model, on the same prompts and labels.

Run it with ``python -m tests.bench.choice.examples`` where the extra ``bench`` is installed. The prompts are those of
the embedded tasks of superni; the model is made here, with random weights. Both engines are warm, tokenise inside the
time that is taken, and take turns. Their log-probabilities must agree.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from evaluators.backend import ChoiceRequest
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.selection import select
from evaluators.task import load_task, prompt_of
from schemas.folders.dataset_folder import read_manifest
from tests.bench.choice.engines import ENGINES, Engine
from tests.bench.choice.workload import save_model

_CONTEXT = 4096
_TOLERANCE = 1e-3
_TASK = "classification"
TASKS = ("product_reviews", "sentence_pairs")
"""Tasks with 2 and 3 labels, about as many as those of the published suite have on average."""


def main() -> int:
    """Print the seconds of both engines and their ratio for each number of examples; 1 if the engines disagree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--items", type=int, default=100, help="items per task (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds (default: %(default)s)")
    parser.add_argument("--tasks", nargs="+", default=TASKS, help="tasks (default: %(default)s)")
    parser.add_argument("--contexts", nargs="+", default=("k0", "k8-set0"), help="contexts (default: %(default)s)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-examples-") as name:
        folder = Path(name)
        save_model(folder / "model")
        _lengthen(folder / "model" / "config.json")
        engines = {name: ENGINES[name](folder / "model", "float32") for name in ("transformers packed", "lm-eval hf")}
        for context in chosen.contexts:
            requests = _requests(folder / "data", f"release-4096b-{context}-v1", chosen.items, chosen.tasks)
            if not _compared(context, requests, engines, chosen.rounds):
                return 1
    return 0


def _lengthen(config: Path) -> None:
    """Give the model a longer context; its positions are rotary and have no weights."""
    told = json.loads(config.read_text(encoding="utf-8")) | {"max_position_embeddings": _CONTEXT}
    config.write_text(json.dumps(told), encoding="utf-8")


def _requests(data: Path, prompt_id: str, n_items: int, tasks: Sequence[str]) -> list[ChoiceRequest]:
    task = load_task(_TASK)
    command = (sys.executable, "-m", "builders.superni", "--limit", str(n_items), "--out", str(data), "--overwrite")
    subprocess.run(command, check=True, capture_output=True)
    manifest = read_manifest(data)
    selection = select(data, manifest, manifest.suites[0].name, splits=("test",), parts=tasks)
    plan = Plan(selection, task, prompt_of(task, prompt_id))
    found = [request for part in plan.parts for of_item in part.requests for request in of_item]
    return [request for request in found if isinstance(request, ChoiceRequest)]


def _compared(context: str, requests: list[ChoiceRequest], engines: dict[str, Engine], rounds: int) -> bool:
    for engine in engines.values():
        engine.scores(requests[:8])
    taken: dict[str, list[float]] = {name: [] for name in engines}
    scores = {}
    for _ in range(rounds):
        for name, engine in engines.items():
            start = time.perf_counter()
            scores[name] = engine.scores(requests)
            taken[name].append(time.perf_counter() - start)
    ours, theirs = scores.values()
    off = max(abs(a - b) for x, y in zip(ours, theirs, strict=True) for a, b in zip(x, y, strict=True))
    ratio = statistics.median(b / a for a, b in zip(*taken.values(), strict=True))
    seconds = ", ".join(f"{name} {statistics.median(times):.1f} s" for name, times in taken.items())
    print(f"{context}: {len(requests)} requests, {seconds}, ratio {ratio:.1f}, largest difference {off:.1e} nats")
    if off > _TOLERANCE:
        print(f"FAIL: the engines differ by {off:.3g} nats", file=sys.stderr)
    return off <= _TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
