"""One engine in a process of its own, so that its memory and its threads are its own."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Sequence
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from evaluators.backend import ChoiceRequest
from tests.bench.choice.engines import ENGINES, Precision, Scores, SplitIds

_MIB = 2**10
"""In the kilobytes that the kernel counts."""


class Opened(NamedTuple):
    """The model is loaded."""

    seconds: float
    peak_mib: float
    n_threads: int


class Measured(NamedTuple):
    """Requests have been scored."""

    scores: list[Scores]
    seconds: float
    start_mib: float
    """Memory in use when scoring began."""
    peak_mib: float
    """Most memory in use since then."""
    settings: str


class Failed(NamedTuple):
    """What went wrong."""

    reason: str


Command: TypeAlias = Literal["scores", "token_ids"]


class EngineError(RuntimeError):
    """An engine did not start or could not answer."""


class Worker:
    """The parent's end of a process that loads an engine at once; ``opened`` waits for it, ``close`` ends it."""

    def __init__(self, engine: str, precision: Precision, folder: Path) -> None:
        self._log = folder / f"{engine.replace(' ', '-')}-{precision}.log"
        self._name = f"{engine}, {precision}"
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, engine, precision, folder, self._log))
        self._process.start()
        other.close()

    @cached_property
    def opened(self) -> Opened:
        """What loading took.

        Raises:
            EngineError: the engine did not start.
        """
        opened: Opened = self._receive()
        return opened

    def scores(self, requests: Sequence[ChoiceRequest]) -> Measured:
        """Score requests.

        Raises:
            EngineError: the engine could not.
        """
        measured: Measured = self._call("scores", requests)
        return measured

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[SplitIds]]:
        """What the engine makes of each option.

        Raises:
            EngineError: the engine could not.
        """
        ids: list[list[SplitIds]] = self._call("token_ids", requests)
        return ids

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(timeout=20)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _call(self, command: Command, requests: Sequence[ChoiceRequest]) -> Any:
        assert self.opened
        self._connection.send((command, list(requests)))
        return self._receive()

    def _receive(self) -> Any:
        try:
            answer = self._connection.recv()
        except EOFError:
            self._process.join(timeout=20)
            answer = Failed(f"its process ended with {self._process.exitcode}")
        if isinstance(answer, Failed):
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise EngineError(f"{self._name}: {answer.reason}\n{tail}")
        return answer


def _serve(connection: Connection, name: str, precision: Precision, folder: Path, log: Path) -> None:
    # Engines write to both streams at will; what they say is shown only when they fail.
    with log.open("wb") as stream:
        os.dup2(stream.fileno(), sys.stdout.fileno())
        os.dup2(stream.fileno(), sys.stderr.fileno())
    try:
        start = time.perf_counter()
        engine = ENGINES[name](folder / "model", precision)
        seconds = time.perf_counter() - start
        import torch

        connection.send(Opened(seconds, _memory_mib("VmHWM"), torch.get_num_threads()))
        while True:
            command, requests = connection.recv()
            if command == "token_ids":
                connection.send(engine.token_ids(requests))
                continue
            _forget_peak()
            start_mib = _memory_mib("VmRSS")
            start = time.perf_counter()
            scores = engine.scores(requests)
            seconds = time.perf_counter() - start
            connection.send(Measured(scores, seconds, start_mib, _memory_mib("VmHWM"), engine.settings()))
    except EOFError:
        return
    except Exception as error:
        traceback.print_exc()
        connection.send(Failed(f"{type(error).__name__}: {error}"))


def _forget_peak() -> None:
    """Let the kernel count the peak of memory anew, from what is in use and not from what the allocator kept."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _memory_mib(field: str) -> float:
    # Not getrusage: its peak survives exec, and would be that of the process which started this one.
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / _MIB
