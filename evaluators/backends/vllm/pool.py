"""Who computes: an engine in this process, or one per GPU in processes of their own.

Both take pieces of work one after the other and give back what came of each. What is computed together is fixed before
anybody takes it, so that answers do not depend on who was free, and work that a process took to its grave is done anew
by another.
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
from typing import NamedTuple, Protocol, TypeAlias

from evaluators.backend import Runtime
from evaluators.backends.vllm.engine import Done, Engine, EngineSettings, Work
from schemas.errors import BiasboardError, ConfigError, RunError

_GRACE_SECONDS = 5
MOST_DEATHS = 2
"""Processes that one piece of work may take down before it is taken for the cause."""


class Dispatched(NamedTuple):
    """Somebody is about to compute."""

    number: int


class Finished(NamedTuple):
    """Somebody has."""

    number: int
    done: Done


Event: TypeAlias = Dispatched | Finished


class Pool(Protocol):
    """Whoever computes."""

    @property
    def runtime(self) -> Runtime:
        """Where."""

    def run(self, works: Iterable[tuple[int, Work]]) -> Iterator[Event]:
        """Compute numbered pieces of work, taken one by one as there is room for them."""


class InProcess:
    """One engine, here."""

    def __init__(self, settings: EngineSettings) -> None:
        self._engine = Engine(settings)
        self.runtime = self._engine.runtime

    def run(self, works: Iterable[tuple[int, Work]]) -> Iterator[Event]:
        """Compute one after the other."""
        for number, work in works:
            yield Dispatched(number)
            yield Finished(number, self._engine.compute(work))


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection


class _Task(NamedTuple):
    ticket: int
    """Of all runs together: an answer to a run that was given up is not taken for one to this."""
    number: int
    work: Work
    n_deaths: int


class Workers:
    """Several engines, each in a process of its own with its own devices."""

    def __init__(self, settings: EngineSettings, environments: Sequence[dict[str, str]]) -> None:
        """Start them and wait until all have loaded the model.

        Args:
            settings: Of each engine.
            environments: Per process, the environment that gives it its devices.

        Raises:
            ConfigError: an engine refuses the model, or a process dies.
        """
        # A forked copy of a process that holds a GPU cannot use it.
        context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        stop = weakref.finalize(self, _stop, self._workers)
        for environment in environments:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, replace(settings, environment=environment)))
            process.start()
            there.close()
            self._workers.append(_Worker(process, here))
        try:
            runtimes = [_started(worker) for worker in self._workers]
        except BaseException:
            stop()
            raise
        first: Runtime = runtimes[0]
        self.runtime = replace(first, settings={**first.settings, "data_parallel": str(len(runtimes))})
        self._n_tickets = 0
        self._busy: dict[Connection, int] = {}

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Of those that are alive."""
        return tuple(worker.process.pid for worker in self._workers if worker.process.pid is not None)

    def run(self, works: Iterable[tuple[int, Work]]) -> Iterator[Event]:
        """Compute, each worker one piece at a time.

        Raises:
            RunError: an engine broke down, no worker is left, or one piece of work takes every worker down.
        """
        ahead = iter(works)
        again: deque[_Task] = deque()
        running: dict[int, _Task] = {}
        exhausted = False
        while True:
            for worker in [worker for worker in self._workers if worker.connection not in self._busy]:
                task = again.popleft() if again else None
                if task is None and not exhausted:
                    number, work = next(ahead, (None, None))
                    exhausted = number is None
                    if number is not None and work is not None:
                        self._n_tickets += 1
                        task = _Task(self._n_tickets, number, work, 0)
                if task is None:
                    break
                # Whoever stops listening here has sent nothing.
                yield Dispatched(task.number)
                running[task.ticket] = task
                self._busy[worker.connection] = task.ticket
                # Who died while idle is noticed below, as one who died at work.
                with contextlib.suppress(OSError):
                    worker.connection.send((task.ticket, task.work))
            if not running and not again and exhausted:
                return
            yield from self._collect(running, again)

    def _collect(self, running: dict[int, _Task], again: deque[_Task]) -> Iterator[Event]:
        """Wait for whoever is done first."""
        ready = wait(list(self._busy))
        for worker in [worker for worker in self._workers if worker.connection in ready]:
            ticket = self._busy.pop(worker.connection)
            try:
                _, outcome = worker.connection.recv()
            except (EOFError, OSError):
                self._bury(worker)
                if ticket in running:
                    again.append(self._after_death(running.pop(ticket)))
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            if ticket in running:
                yield Finished(running.pop(ticket).number, outcome)

    def _after_death(self, task: _Task) -> _Task:
        task = task._replace(n_deaths=task.n_deaths + 1)
        if not self._workers:
            raise RunError("no vLLM process is left, all have died; what was answered is kept, run it again")
        if task.n_deaths >= MOST_DEATHS:
            raise RunError(
                f"{task.n_deaths} vLLM processes died of the same requests; what was answered is kept. Where memory "
                "was too little, give a smaller --max-model-len or --gpu-memory"
            )
        return task

    def _bury(self, worker: _Worker) -> None:
        worker.connection.close()
        worker.process.join()
        self._workers.remove(worker)


def _started(worker: _Worker) -> Runtime:
    try:
        said = worker.connection.recv()
    except EOFError:
        worker.process.join()
        raise ConfigError(
            f"a vLLM process died while it loaded the model (exit code {worker.process.exitcode}); where the memory is "
            "not enough for all copies, give a smaller --data-parallel"
        ) from None
    if isinstance(said, BaseException):
        raise said
    assert isinstance(said, Runtime)
    return said


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.connection.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_GRACE_SECONDS)
        if worker.process.is_alive():
            # Some threads of the engine do not mind.
            worker.process.kill()
            worker.process.join()
    workers.clear()


def serve(connection: Connection, settings: EngineSettings) -> None:
    """What a worker process does until nobody listens any more."""
    # Ctrl-C reaches the whole group; the parent decides what becomes of it.
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
