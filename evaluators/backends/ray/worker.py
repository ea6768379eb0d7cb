"""Runs an ordinary backend on a cluster: a worker opens it once and answers one block of requests after the other.

Nothing here uses Ray. Errors are sent to the driver as messages, not raised, because Ray would wrap an exception in the
stack traces of two machines.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from biasboard.ground.errors import BiasboardError, ConfigError, RunError
from evaluators.backend import (
    Answers,
    Backend,
    BlockLimits,
    Capability,
    Request,
    Runtime,
    Sent,
    TokenCount,
    open_backend,
)
from evaluators.backend_options import BackendOptions
from schemas.documents.result import Model

_OTHERS = BlockLimits(n_texts=256, n_characters=1_000_000)
"""Limits of a block for backends that answer each request by itself. Little is lost with a worker, and many requests
are asked at a time."""
_PAUSE_SECONDS = 0.25
"""Minimum time between two messages with progress; a fast endpoint would otherwise cause thousands of messages."""


class Here(NamedTuple):
    """A message: the worker has a machine to run on."""

    machine: str


class Opened(NamedTuple):
    """A message: the worker has opened its backend."""

    model: Model
    runtime: Runtime
    arguments: tuple[str, ...]
    capabilities: frozenset[Capability]
    reads_facts: bool
    limits: BlockLimits
    versions: Mapping[str, str]


class Progress(NamedTuple):
    """A message: events of a block since the last message. Their requests are counted within the block."""

    events: tuple[Sent | Answers, ...]
    runtime: Runtime


class Finished(NamedTuple):
    """A message: the block is done, and nothing more follows."""


class Counted(NamedTuple):
    """A message: the number of tokens that a block takes; None if the backend cannot tell."""

    tokens: TokenCount | None


class Trouble(NamedTuple):
    """A message: the backend raised an error."""

    kind: type[BiasboardError]
    reason: str


Message: TypeAlias = Here | Opened | Progress | Finished | Counted | Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOpener:
    """A callable that opens the backend on a worker. It is sent to the worker."""

    backend: str
    model: str
    options: BackendOptions
    prices: str | None = None
    """Content of the price file, which other machines do not have."""

    def __call__(self) -> Backend:
        """Open the backend."""
        if self.prices is None:
            return open_backend(self.backend, self.model, self.options)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prices.toml"
            path.write_text(self.prices, encoding="utf-8")
            return open_backend(self.backend, self.model, replace(self.options, prices=path))


class Worker:
    """A worker on the cluster. Each method yields messages for the driver."""

    def __init__(self) -> None:
        self._backend: Backend | None = None

    def open(self, opener: Callable[[], Backend], environment: Mapping[str, str]) -> Iterator[Message]:
        """Open the backend.

        Args:
            opener: Callable that opens the backend.
            environment: Environment variables of the driver that the backend reads, API keys among them. They come with
                a call, because Ray's dashboard shows the environment of a process.
        """
        yield Here(platform.node())
        os.environ.update(environment)
        try:
            backend = self._backend = opener()
            yield Opened(
                model=backend.model,
                runtime=backend.runtime,
                arguments=tuple(backend.arguments),
                capabilities=backend.capabilities,
                reads_facts=backend.reads_facts,
                limits=backend.block_limits or _OTHERS,
                versions=versions(),
            )
        # A library may raise any exception. A model that does not open on one machine is unlikely to open on the next.
        except Exception as error:
            yield _trouble(error, ConfigError)

    def answer(self, requests: Sequence[Request], missing: frozenset[int]) -> Iterator[Message]:
        """Answer the missing requests of a block.

        Args:
            requests: All requests of the block, because what is computed together depends on all of them.
            missing: Indices of the requests that need an answer.
        """
        assert self._backend is not None
        events: list[Sent | Answers] = []
        said = time.monotonic()
        trouble: Trouble | None = None
        try:
            with closing(self._backend.ask(requests, missing)) as coming:
                for event in coming:
                    events.append(event)
                    if time.monotonic() - said >= _PAUSE_SECONDS:
                        yield Progress(tuple(events), self._backend.runtime)
                        events.clear()
                        said = time.monotonic()
        # A library may raise any exception.
        except Exception as error:
            trouble = _trouble(error, RunError)
        if events:
            yield Progress(tuple(events), self._backend.runtime)
        yield trouble or Finished()

    def count_tokens(self, requests: Sequence[Request]) -> Iterator[Message]:
        """Count the tokens that requests would take."""
        assert self._backend is not None
        try:
            yield Counted(self._backend.count_tokens(requests))
        # A library may raise any exception.
        except Exception as error:
            yield _trouble(error, RunError)


def versions() -> dict[str, str]:
    """Return the versions that the driver and the workers must have in common."""
    return {"python": platform.python_version(), "biasboard": importlib.metadata.version("biasboard")}


def _trouble(error: Exception, otherwise: type[BiasboardError]) -> Trouble:
    if isinstance(error, BiasboardError):
        return Trouble(type(error), str(error))
    return Trouble(otherwise, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
