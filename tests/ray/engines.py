"""Backends that workers of a test open."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from evaluators.backend import (
    Backend,
    BlockLimits,
    Capability,
    Events,
    Request,
    Response,
    Runtime,
    ask_in_batches,
    ask_in_blocks,
)
from evaluators.backends.ray.cluster import Needs, join
from evaluators.backends.ray.ray_backend import RayBackend
from schemas.documents.result import Model
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.logging_backend import finish as finish_run

LIMITS = BlockLimits(n_texts=24, n_characters=1_000_000)
LOG = "asked.log"
_SECONDS = 120


@dataclass
class Scripted(Backend):
    """Answers from the hash of the request and of all that is computed together with it, notes what it answers, and
    misbehaves when a prompt holds a certain text.
    """

    folder: Path
    at: str = "no prompt holds this"
    does: Callable[[Scripted], None] = lambda scripted: None
    name: str = "tests/scripted"
    n_workers: int = 1
    """So many must be there before the first answers."""
    block_limits: BlockLimits = LIMITS
    runtime: Runtime = field(default_factory=lambda: Runtime(device="cpu", packages={"scripted": "1"}))
    capabilities: frozenset[Capability] = frozenset({"option_logprobs"})
    arguments: tuple[str, ...] = ("--model scripted",)

    @property
    def model(self) -> Model:
        return LoggingBackend(self.folder, name=self.name).model

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        return ask_in_blocks(self._ask_block, self.block_limits, requests, missing)

    def _ask_block(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        meet(self.folder, self.n_workers)
        together = "".join(request.sha256 for request in requests)
        answer = partial(self._answer, together)
        return ask_in_batches([[place] for place in range(len(requests))], answer, requests, missing)

    def _answer(self, together: str, requests: Sequence[Request]) -> Sequence[Response]:
        (request,) = requests
        if self.at in request.prompt:
            self.does(self)
        return LoggingBackend(self.folder / LOG, name=together).answer(requests)


def meet(folder: Path, n_workers: int) -> None:
    """Wait until so many processes are here."""
    (folder / f"worker-{os.getpid()}").touch()
    wait_until(lambda: len(list(folder.glob("worker-*"))) >= n_workers)


def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again, but not for ever."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def fail(_scripted: Scripted) -> None:
    """As a broken engine."""
    raise OSError("made to fail")


def die(_scripted: Scripted) -> None:
    """As a process that the system kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(scripted: Scripted) -> None:
    """As a process that the system kills; its successor lives."""
    mark = scripted.folder / "died"
    if not mark.exists():
        mark.touch()
        die(scripted)


@contextmanager
def opened(opener: Callable[[], Backend], *, n_workers: int = 2) -> Iterator[RayBackend]:
    """The backend on workers of a local cluster."""
    backend = RayBackend(join(None), opener, Needs(1, 0), n_workers)
    try:
        yield backend
    finally:
        backend.close()


finish = partial(finish_run, rate=0.0)
