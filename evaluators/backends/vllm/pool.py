"""Runs vLLM engines, one in this process or several in processes of their own, and gives each its devices.

Both kinds of pool take a sequence of :class:`Work` and yield the answers to each. What is computed together is fixed
beforehand, so answers do not depend on which engine was free. If a process dies, another one repeats its work.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeAlias

from biasboard.ground.errors import BiasboardError, ConfigError, RunError
from evaluators.backend import Runtime
from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.engine import Done, Engine, EngineSettings, ModelSpecs, Work

MOST_DEATHS = 2
"""Number of processes that must die of one :class:`Work` before it counts as the cause."""


Event: TypeAlias = tuple[Any, Done | None]
"""The key of a :class:`Work`, and None when an engine is about to compute it, or what the engine has computed."""


class InProcess:
    """One engine in this process."""

    def __init__(self, settings: EngineSettings) -> None:
        self._engine = Engine(settings)
        self.runtime = self._engine.runtime

    def run(self, works: Iterable[tuple[Any, Work]]) -> Iterator[Event]:
        """Compute work in order, each with its key; it is taken from the iterable when the engine is free."""
        for key, work in works:
            yield key, None
            yield key, self._engine.compute(work)


class _Task(NamedTuple):
    ticket: int
    """Number of the task across all runs, so that a late answer to an abandoned run is not taken for one to this run.
    """
    key: Any
    work: Work
    n_deaths: int


class Workers:
    """Several engines, each in a process of its own with its own devices."""

    def __init__(self, settings: EngineSettings, environments: Sequence[dict[str, str]]) -> None:
        """Start the processes, and wait until all of them have loaded the model.

        Raises:
            ConfigError: an engine refuses the model, or a process dies while it loads the model.
        """
        # A forked copy of a process that uses a GPU cannot use that GPU.
        context = multiprocessing.get_context("spawn")
        self._workers: dict[Connection, BaseProcess] = {}
        stop = weakref.finalize(self, _stop, self._workers)
        for environment in environments:
            our_end, worker_end = context.Pipe()
            process = context.Process(target=serve, args=(worker_end, replace(settings, environment=environment)))
            process.start()
            worker_end.close()
            self._workers[our_end] = process
        try:
            runtimes = [_started(connection, process) for connection, process in self._workers.items()]
        except BaseException:
            stop()
            raise
        first: Runtime = runtimes[0]
        self.runtime = replace(first, settings={**first.settings, "data_parallel": str(len(runtimes))})
        self._n_tickets = 0
        self._busy: dict[Connection, int] = {}

    def run(self, works: Iterable[tuple[Any, Work]]) -> Iterator[Event]:
        """Compute the work, one at a time per worker.

        Raises:
            RunError: an engine failed, no worker is left, or several workers died of the same work.
        """
        ahead = iter(works)
        again: deque[_Task] = deque()
        running: dict[int, _Task] = {}
        exhausted = False
        while True:
            for connection in [connection for connection in self._workers if connection not in self._busy]:
                task = again.popleft() if again else None
                if task is None and not exhausted:
                    key, work = next(ahead, (None, None))
                    exhausted = work is None
                    if work is not None:
                        self._n_tickets += 1
                        task = _Task(self._n_tickets, key, work, 0)
                if task is None:
                    break
                # If the caller stops the iteration here, nothing has been sent yet.
                yield task.key, None
                running[task.ticket] = task
                self._busy[connection] = task.ticket
                # A worker that died while idle is noticed below, like one that died at work.
                with contextlib.suppress(OSError):
                    connection.send((task.ticket, task.work))
            if not running and not again and exhausted:
                return
            # They may have died of the work of an abandoned run.
            if not self._workers:
                raise RunError("no vLLM process is left, all have died; what was answered is kept, run it again")
            yield from self._collect(running, again)

    def _collect(self, running: dict[int, _Task], again: deque[_Task]) -> Iterator[Event]:
        """Wait until a worker has finished or died, and yield what has finished."""
        ready = wait(list(self._busy))
        for connection in [connection for connection in self._workers if connection in ready]:
            ticket = self._busy.pop(connection)
            try:
                _, outcome = connection.recv()
            except (EOFError, OSError):
                connection.close()
                self._workers.pop(connection).join()
                if ticket in running:
                    again.append(self._after_death(running.pop(ticket)))
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            if ticket in running:
                yield running.pop(ticket).key, outcome

    def _after_death(self, task: _Task) -> _Task:
        task = task._replace(n_deaths=task.n_deaths + 1)
        if self._workers and task.n_deaths >= MOST_DEATHS:
            raise RunError(
                f"{task.n_deaths} vLLM processes died of the same requests; what was answered is kept. If memory "
                "ran out, give a smaller --max-model-len or --gpu-memory"
            )
        return task


def _started(connection: Connection, process: BaseProcess) -> Runtime:
    try:
        message = connection.recv()
    except EOFError:
        process.join()
        raise ConfigError(
            f"a vLLM process died while it loaded the model (exit code {process.exitcode}); if the memory is not "
            "enough for all copies, give a smaller --data-parallel"
        ) from None
    if isinstance(message, BaseException):
        raise message
    assert isinstance(message, Runtime)
    return message


def _stop(workers: dict[Connection, BaseProcess]) -> None:
    for connection, process in workers.items():
        connection.close()
        process.terminate()
    for process in workers.values():
        process.join(timeout=5)
        if process.is_alive():
            # Some threads of the engine ignore the signal.
            process.kill()
            process.join()
    workers.clear()


def serve(connection: Connection, settings: EngineSettings) -> None:
    """Run a worker process until the parent closes the connection."""
    # Ctrl-C reaches every process of the group, and the parent decides when workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(settings.environment)
    with contextlib.suppress(EOFError, OSError):
        try:
            engine = Engine(settings)
        except BiasboardError as error:
            connection.send(type(error)(*error.args))
            return
        connection.send(engine.runtime)
        while True:
            ticket, work = connection.recv()
            try:
                connection.send((ticket, engine.compute(work)))
            except BiasboardError as error:
                connection.send((ticket, type(error)(*error.args)))


def environments_of(specs: ModelSpecs, options: BackendOptions) -> list[dict[str, str]]:
    """Return the environment variables that assign devices to each worker process.

    Returns:
        One entry per process; empty if a single engine in this process is enough.

    Raises:
        ConfigError: there are not enough devices.
    """
    n_copies, n_each = options.data_parallel or 1, options.tensor_parallel or 1
    if specs.device_type == "cpu":
        if n_each > 1:
            raise ConfigError("--tensor-parallel needs a GPU for every part; leave it out on a CPU")
        return _cores(n_copies) if n_copies > 1 else []
    if n_copies * n_each > specs.n_devices:
        raise ConfigError(
            f"--data-parallel {n_copies} times --tensor-parallel {n_each} needs {n_copies * n_each} GPUs, "
            f"{specs.n_devices} are available; give smaller numbers"
        )
    if n_copies == 1:
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    devices = visible if visible != [""] else [str(number) for number in range(specs.n_devices)]
    return [
        {"CUDA_VISIBLE_DEVICES": ",".join(devices[start : start + n_each])}
        for start in range(0, n_copies * n_each, n_each)
    ]


def _cores(n_copies: int) -> list[dict[str, str]]:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    if n_copies > len(cores):
        raise ConfigError(
            f"--data-parallel {n_copies} needs as many cores, {len(cores)} are available; give a smaller number"
        )
    return [{"VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores[copy::n_copies]))} for copy in range(n_copies)]
