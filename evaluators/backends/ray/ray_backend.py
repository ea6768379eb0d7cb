"""Runs another backend on the machines of a Ray cluster.

Each worker opens the other backend, the engine, and answers blocks of requests. Planning, store, records and result
stay in the driver process, as in a run without a cluster. Identity and answers of the model are those of the engine
alone, because blocks are planned as the engine plans them: a run can begin on one machine and continue on many. The
settings of the result name the cluster.

Each worker computes one block while another waits, so that it never idles and little is lost if it dies. After any
failure in a block, its worker is replaced: the engine may be broken, and a new worker may run on another machine.
"""

from __future__ import annotations

import importlib.metadata
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from biasboard.ground.errors import BiasboardError, ConfigError, MissingExtraError, RunError
from evaluators.adapter_set import is_adapter_set
from evaluators.backend import (
    Answers,
    Backend,
    BlockLimits,
    Capability,
    Events,
    Request,
    Response,
    Runtime,
    Sent,
    in_run,
    plan_blocks,
)
from evaluators.backend import open_backend as open_engine
from evaluators.backend_options import BackendOptions
from evaluators.backends.ray.cluster import Cluster, LostError, Needs, join
from evaluators.backends.ray.worker import Message, Opened, Progress, environment, versions
from schemas.documents.result import Model

logger = logging.getLogger(__name__)

# Ray actors, not Ray Data, which drops the rows of a failed block and resumes a job by row ids alone, whatever the
# model or the prompt. Nor ray[llm], which pins an old vLLM.
MOST_TRIES = 3
"""Number of tries of a block before its requests fail, and of lost workers in a row before their seat is given up."""


@dataclass(eq=False)
class _Block:
    indices: list[int]
    """Indices of the requests among all requests of the run."""
    left: set[int]
    """Indices of the requests that still need an answer."""
    n_failures: int = 0


@dataclass(eq=False)
class _Seat:
    """A seat for one worker, which may be replaced."""

    worker: Any = None
    opening: Any = None
    """Call that opens the model, while it is under way."""
    machine: str = ""
    in_hand: deque[tuple[Any, _Block]] = field(default_factory=deque)
    """Calls that answer blocks, in their order."""
    n_failures: int = 0
    """Number of workers in a row that were lost before they had opened the model."""

    @property
    def call(self) -> Any:
        """The call that the worker is busy with, as it handles one at a time; None if it is idle."""
        return self.opening or (self.in_hand[0][0] if self.in_hand else None)


class RayBackend(Backend):
    """A model that workers have opened. The first worker starts at once, the others at the first request.

    Model, arguments and capabilities are those of the engine, because requests are asked as the engine alone would ask
    them. The runtime is that of the worker that answered last.
    """

    model: Model
    runtime: Runtime
    arguments: tuple[str, ...]
    capabilities: frozenset[Capability]
    reads_facts: bool
    block_limits: BlockLimits
    _opened: Opened | None = None
    """The first worker's description of the model."""

    def __init__(self, cluster: Cluster, opener: Callable[[], Backend], needs: Needs, n_workers: int) -> None:
        """Start the first worker, and wait until it has opened its backend.

        Raises:
            ConfigError: the worker refuses the model or an option.
            MissingExtraError: a library is missing on the worker's machine.
            RunError: each of several workers in a row dies.
        """
        self._cluster, self._opener, self._needs = cluster, opener, needs
        self._seats = [_Seat() for _ in range(n_workers)]
        self._n_failures = 0
        """Number of consecutive failed tries, of any blocks."""
        self._packages: dict[str, str] = {}
        self._waiting: deque[_Block] = deque()
        """Blocks that no worker has in hand."""
        try:
            while self._opened is None:
                self._start(self._seats[:1])
                for _ in self._events():
                    pass
        except BaseException:
            self.close()
            raise
        self.model = self._opened.model
        self.arguments = self._opened.arguments
        self.capabilities = self._opened.capabilities
        self.reads_facts = self._opened.reads_facts
        self.block_limits = self._opened.limits
        self._record_runtime(self._seats[0], self._opened.runtime)

    def close(self) -> None:
        """End all workers."""
        for seat in self._seats:
            self._dismiss(seat)

    def _dismiss(self, seat: _Seat) -> None:
        """End a worker, whatever it is doing."""
        if seat.worker is not None:
            self._cluster.stop(seat.worker)
        seat.worker, seat.opening, seat.machine = None, None, ""
        seat.in_hand.clear()

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests; see ``Backend.ask``.

        Raises:
            ConfigError: a worker refuses what is asked.
            MissingExtraError: a library is missing on a worker's machine.
            RunError: no worker is left, too many tries in a row failed, or the workers differ in versions or model.
        """
        planned = plan_blocks(requests, self.block_limits)
        blocks = [_Block(indices, set(missing.intersection(indices))) for indices in planned]
        self._waiting = deque(block for block in blocks if block.left)
        since = time.perf_counter()
        try:
            while n_left := len(self._waiting) + sum(len(seat.in_hand) for seat in self._seats):
                self._start(self._seats[:n_left])
                self._hand_out(requests)
                for event in self._events():
                    if isinstance(event, Answers):
                        now = time.perf_counter()
                        event, since = event._replace(seconds=now - since), now
                    yield event
        finally:
            # A worker that is still busy would keep the next requests waiting.
            for seat in self._seats:
                if seat.in_hand:
                    self._dismiss(seat)

    def _start(self, seats: Sequence[_Seat]) -> None:
        for seat in seats:
            if seat.worker is None and seat.n_failures < MOST_TRIES:
                seat.worker = self._cluster.start(self._needs)
                seat.opening = self._cluster.call(seat.worker, "open", self._opener, environment())
        if not any(seat.worker for seat in self._seats):
            raise RunError(
                f"no worker is left: {MOST_TRIES} in a row died while they opened the model; if memory ran "
                "out, give fewer --workers or more --worker-cpus. What was answered is kept"
            )

    def _hand_out(self, requests: Sequence[Request]) -> None:
        for n_before in range(2):
            # Every worker gets a first block before any worker gets a second.
            for seat in self._seats:
                if self._waiting and seat.worker and not seat.opening and len(seat.in_hand) == n_before:
                    block = self._waiting.popleft()
                    asked = [requests[index] for index in block.indices]
                    missing = frozenset(position for position, index in enumerate(block.indices) if index in block.left)
                    seat.in_hand.append((self._cluster.call(seat.worker, "answer", asked, missing), block))

    def _events(self) -> Events:
        """Wait until workers send messages, and yield the events in them."""
        seats = {call: seat for seat in self._seats if (call := seat.call) is not None}
        ready = self._cluster.wait(list(seats), seconds=60.0)
        if not ready and not any(seat.machine for seat in self._seats):
            logger.warning(
                "waiting for a worker: each needs %s, and the cluster has room for %d; if that will not change, stop, "
                "and give other --worker-cpus or --worker-gpus",
                self._needs,
                self._cluster.capacity(self._needs),
            )
        # Yield a worker's events before reading the next worker's message, whose failure would lose them.
        for call in ready:
            seat, message = seats[call], self._cluster.next(call)
            if seat.opening is not None:
                self._handle_opening(seat, message)
            else:
                yield from self._handle_answer(seat, message)

    def _handle_opening(self, seat: _Seat, message: Message | None) -> None:
        if isinstance(message, str):
            seat.machine = message
        elif isinstance(message, Opened):
            seat.opening, seat.n_failures = None, 0
            self._opened = self._opened or message
            self._refuse_difference(seat, versions(), message.versions)
            identities = [opened.model.identity_sha256 for opened in (self._opened, message)]
            self._refuse_difference(seat, *({"model identity": identity} for identity in identities))
        elif isinstance(message, BiasboardError) and not isinstance(message, LostError):
            where = "" if self._cluster.is_local else f"worker on {seat.machine}: "
            raise type(message)(f"{where}{message}")
        else:
            logger.warning("while it opened the model, %s", message or "a worker ended")
            seat.n_failures += 1
            self._dismiss(seat)

    def _handle_answer(self, seat: _Seat, message: Message | None) -> Iterator[Sent | Answers]:
        block = seat.in_hand[0][1]
        if isinstance(message, Progress):
            self._record_runtime(seat, message.runtime)
            for event in message.events:
                in_block = in_run(event, block.indices)
                block.left.difference_update(in_block.responses if isinstance(in_block, Answers) else ())
                yield in_block
        elif message is None and not block.left:
            seat.in_hand.popleft()
            self._n_failures = 0
        elif isinstance(message, ConfigError | MissingExtraError):
            raise message
        elif isinstance(message, BiasboardError):
            yield from self._failed(seat, str(message))
        else:
            yield from self._failed(seat, "a worker left requests without an answer")

    def _failed(self, seat: _Seat, reason: str) -> Iterator[Answers]:
        """End the worker and hand its blocks to others.

        After ``MOST_TRIES`` tries of the block in which it failed, the requests of that block fail; after too many
        tries in a row, whatever was asked, the run does.
        """
        _, block = seat.in_hand.popleft()
        self._waiting.extendleft(other for _, other in reversed(seat.in_hand))
        self._dismiss(seat)
        block.n_failures += 1
        self._n_failures += 1
        if self._n_failures > MOST_TRIES * len(self._seats):
            raise RunError(
                f"{self._n_failures} tries in a row failed, whatever was asked; the last: {reason}. What was answered "
                "is kept: mend the cause and run the same command again"
            )
        if block.n_failures < MOST_TRIES:
            logger.warning("%s; %d requests are asked again", reason, len(block.left))
            self._waiting.appendleft(block)
        else:
            failed = Response(status="failed", error=f"failed on {MOST_TRIES} workers one after the other: {reason}")
            yield Answers(dict.fromkeys(sorted(block.left), failed), 0.0)

    def _record_runtime(self, seat: _Seat, runtime: Runtime) -> None:
        """Take the runtime of the last answers, and refuse a worker whose package versions differ."""
        packages = dict(runtime.packages)
        self._packages = self._packages or packages
        if packages:
            self._refuse_difference(seat, self._packages, packages)
        settings = {**runtime.settings, "cluster": "ray", "workers": str(len(self._seats))}
        self.runtime = replace(
            runtime, packages={**packages, "ray": importlib.metadata.version("ray")}, settings=settings
        )

    def _refuse_difference(self, seat: _Seat, expected: Mapping[str, str], given: Mapping[str, str]) -> None:
        for name in sorted({*expected, *given}):
            if expected.get(name) != given.get(name):
                raise RunError(
                    f"the worker on {seat.machine} has {name} {given.get(name)}, others {expected.get(name)}: their "
                    "answers may differ; install the same on every machine. What was answered is kept"
                )


ENGINES = ("transformers", "vllm")


def open_backend(model: str, options: BackendOptions) -> RayBackend:
    """Join a cluster, and open the model on a first worker.

    Args:
        model: Model as the engine takes it. A local folder must have the same path on every machine.
        options: Engine, address, number of workers, and the options of the engine.

    Raises:
        ConfigError: there is no such engine or cluster, no machine has room for a worker, or a worker refuses the model
            or an option.
        MissingExtraError: ray is not installed here, or a worker lacks the engine's library.
    """
    if options.engine not in ENGINES:
        given = (
            "--backend ray needs --engine" if options.engine is None else f"--engine {options.engine} does not exist"
        )
        raise ConfigError(f"{given}; have: {', '.join(ENGINES)}")
    if options.lora is not None and is_adapter_set(options.lora):
        raise ConfigError(f"--lora {options.lora} is for one machine; take --backend transformers or vllm")
    if options.data_parallel is not None:
        raise ConfigError("--data-parallel is for one machine; give --workers, each has a copy of the model")
    on_worker = replace(
        options,
        tokenizer=None if options.tokenizer is None else _absolute(options.tokenizer),
        lora=None if options.lora is None else _absolute(options.lora),
        engine=None,
        address=None,
        workers=None,
        worker_cpus=None,
        worker_gpus=None,
    )
    cluster = join(options.address)
    n_gpus = options.worker_gpus
    if n_gpus is None:
        on_cpu = options.device == "cpu" or (cluster.is_local and not cluster.n_gpus)
        n_gpus = 0 if on_cpu else options.tensor_parallel or 1
    needs = Needs(options.worker_cpus or 1, n_gpus)
    n_fitting = cluster.capacity(needs)
    if cluster.is_local and n_fitting < (options.workers or 1):
        raise ConfigError(
            f"this machine has room for {n_fitting} workers of {needs}; give fewer --workers, smaller --worker-cpus or "
            "--worker-gpus, or the --address of a cluster"
        )
    n_workers = options.workers or (max(n_fitting, 1) if needs.gpus else 1)
    return RayBackend(cluster, partial(open_engine, options.engine, _absolute(model), on_worker), needs, n_workers)


def _absolute(name: str) -> str:
    folder = Path(name)
    return str(folder.resolve()) if folder.is_dir() else name
