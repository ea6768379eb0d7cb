"""Who is compared with whom, and the measuring.

Engines of a group take turns, so that a noisy machine hits all alike.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evaluators.backend import ChoiceRequest
from tests.bench.choice.engines import Precision, Scores, SplitIds
from tests.bench.choice.worker import EngineError, Measured, Worker
from tests.bench.choice.workload import TaskName

_START = time.monotonic()


class Lane(NamedTuple):
    """An engine in a precision."""

    engine: str
    precision: Precision
    share: float = 1.0
    """Of a round's items that it scores, the first ones. Slow ways need not see all to be measured, and fast ones need
    many: what a backend does once per run, such as comparing two ways of scoring, is part of its time."""


GROUPS: Mapping[str, tuple[Lane, ...]] = {
    "float32": (
        Lane("lm-eval hf", "float32", 0.06),
        Lane("transformers packed", "float32"),
        Lane("transformers plain", "float32", 0.02),
        Lane("plain loop", "float32", 0.02),
    ),
    "bfloat16": (
        Lane("lm-eval hf", "bfloat16", 0.06),
        Lane("transformers packed", "bfloat16"),
        Lane("transformers plain", "bfloat16", 0.02),
    ),
    "vllm": (Lane("lm-eval vllm", "float32", 0.06), Lane("vllm", "float32", 0.25)),
    "vllm-bfloat16": (Lane("lm-eval vllm", "bfloat16", 0.06), Lane("vllm", "bfloat16", 0.25)),
}
"""The first lane of a group is what the others are compared with."""


class Plan(NamedTuple):
    """Items of a task: first those to warm up with, then those of each round. No item is scored twice by an engine, so
    that nothing kept from one round helps in the next."""

    requests: Sequence[ChoiceRequest]
    n_warm_up: int
    n_items: int
    n_rounds: int
    whole: bool
    """Whether every lane scores every item."""

    def warm_up(self) -> Sequence[ChoiceRequest]:
        return self.requests[: self.n_warm_up]

    def items(self, number: int, share: float = 1.0) -> Sequence[ChoiceRequest]:
        """Of a round, counted from 0."""
        first = self.n_warm_up + number * self.n_items
        n_items = self.n_items if self.whole else max(1, round(share * self.n_items))
        return self.requests[first : first + n_items]


@dataclass
class Timed:
    """What a lane did with a task."""

    n_threads: int
    loading_peak_mib: float
    rounds: list[Measured] = field(default_factory=list)

    @property
    def scores(self) -> list[list[Scores]]:
        """Per round and item."""
        return [measured.scores for measured in self.rounds]

    @property
    def rates(self) -> list[float]:
        """Requests per second and round; a request is an option of an item."""
        return [sum(map(len, measured.scores)) / measured.seconds for measured in self.rounds]

    @property
    def peak_mib(self) -> float:
        """Of memory, loading included."""
        return max(self.loading_peak_mib, *(measured.peak_mib for measured in self.rounds))

    @property
    def peak_above_model_mib(self) -> float:
        """Of memory while scoring, less what was in use before it."""
        return max(measured.peak_mib - measured.start_mib for measured in self.rounds)


@dataclass
class Results:
    """Of all groups."""

    timed: dict[tuple[Lane, TaskName], Timed] = field(default_factory=dict)
    ids: dict[TaskName, list[list[SplitIds]]] = field(default_factory=dict)
    """What the first lm-eval made of the items that all engines were asked about."""
    reference: dict[TaskName, list[Scores]] = field(default_factory=dict)
    """Plain passes in float64 over the first items of the first round."""
    absent: dict[Lane, str] = field(default_factory=dict)
    """Lanes that did not run, and why."""
    other_ids: list[Lane] = field(default_factory=list)
    """Lanes that scored other token ids than the first one."""


def say(text: str) -> None:
    """Show progress."""
    print(f"[{time.monotonic() - _START:5.0f} s] {text}", file=sys.stderr, flush=True)


def score_reference(plans: Mapping[TaskName, Plan], n_items: int, folder: Path, results: Results) -> None:
    """Fill in the reference.

    Raises:
        EngineError: it could not be computed.
    """
    worker = Worker("plain loop", "float64", folder)
    try:
        for task, plan in plans.items():
            measured = worker.scores(plan.items(0)[:n_items])
            results.reference[task] = measured.scores
            say(f"reference in float64: {len(measured.scores)} items, {task}, {measured.seconds:.0f} s")
    finally:
        worker.close()


def run_group(name: str, plans: Mapping[TaskName, Plan], folder: Path, results: Results) -> None:
    """Measure one group of lanes."""
    workers: dict[Lane, Worker] = {}
    loading_peaks: dict[Lane, float] = {}
    with ExitStack() as stack:
        # All load at the same time, which two processors do faster than one after the other.
        for lane in GROUPS[name]:
            workers[lane] = Worker(lane.engine, lane.precision, folder)
            stack.callback(workers[lane].close)
        for lane, worker in list(workers.items()):
            try:
                say(f"{name}: {lane.engine} opened in {worker.opened.seconds:.0f} s")
                # Some engines load their model only now.
                first = worker.scores(plans["one-token"].warm_up()[:1])
                loading_peaks[lane] = max(worker.opened.peak_mib, first.peak_mib)
                for plan in plans.values():
                    worker.scores(plan.warm_up())
                _compare_ids(lane, worker, plans, results)
            except EngineError as error:
                results.absent[lane] = str(error)
                del workers[lane]
                say(f"{name}: {lane.engine} does not run: {error}")
        n_rounds = max(plan.n_rounds for plan in plans.values())
        for number in range(n_rounds):
            for task, plan in plans.items():
                # Who is first in one round is last in the next.
                lanes = list(workers) if number % 2 == 0 else list(reversed(workers))
                for lane in lanes:
                    start = Timed(workers[lane].opened.n_threads, loading_peaks[lane])
                    timed = results.timed.setdefault((lane, task), start)
                    timed.rounds.append(workers[lane].scores(plan.items(number, lane.share)))
                    rate = timed.rates[-1]
                    say(f"{name}, round {number + 1} of {n_rounds}, {task}: {lane.engine} {rate:,.1f} req/s")


def _compare_ids(lane: Lane, worker: Worker, plans: Mapping[TaskName, Plan], results: Results) -> None:
    """Engines that score other tokens would be compared on other work."""
    for task, plan in plans.items():
        ids = worker.token_ids(plan.requests)
        if results.ids.setdefault(task, ids) != ids and lane not in results.other_ids:
            results.other_ids.append(lane)
