"""A worker of a cluster: an ordinary backend that is opened once and answers one block of requests after the other.

Nothing here knows Ray, and nothing that is said to the driver is an exception: Ray would wrap it in a stack trace of
two machines.
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

from evaluators.backend import (
    Answers,
    Backend,
    Capability,
    Request,
    Runtime,
    Sent,
    TokenCount,
    open_backend,
)
from evaluators.backend_options import BackendOptions
from evaluators.models.blocks import AsksInBlocks, BlockLimits
from schemas.errors import BiasboardError, ConfigError, RunError
from schemas.result import Model

_OTHERS = BlockLimits(n_texts=256, n_characters=1_000_000)
"""For backends that answer every request by itself: little is lost with a worker, and much is asked at a time."""
_PAUSE_SECONDS = 0.25
"""Between two messages; a fast endpoint would send thousands."""


class Here(NamedTuple):
    """A worker has a place to run."""

    machine: str


class Opened(NamedTuple):
    """A worker is ready."""

    model: Model
    runtime: Runtime
    arguments: tuple[str, ...]
    capabilities: frozenset[Capability]
    reads_facts: bool
    limits: BlockLimits
    versions: Mapping[str, str]


class Progress(NamedTuple):
    """What came of a block so far; places are those within the block."""

    events: tuple[Sent | Answers, ...]
    runtime: Runtime


class Finished(NamedTuple):
    """A block is done; nothing more comes."""


class Counted(NamedTuple):
    """What a block takes."""

    tokens: TokenCount | None


class Trouble(NamedTuple):
    """The engine raised an error."""

    kind: type[BiasboardError]
    reason: str


Message: TypeAlias = Here | Opened | Progress | Finished | Counted | Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOpener:
    """How a worker opens its backend; travels to it."""

    backend: str
    model: str
    options: BackendOptions
    prices: str | None = None
    """Content of the file of prices, which no other machine has."""

    def __call__(self) -> Backend:
        """Open it."""
        if self.prices is None:
            return open_backend(self.backend, self.model, self.options)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prices.toml"
            path.write_text(self.prices, encoding="utf-8")
            return open_backend(self.backend, self.model, replace(self.options, prices=path))


class Worker:
    """What runs on the cluster. Every method yields messages."""

    def __init__(self) -> None:
        self._backend: Backend | None = None

    def open(self, opener: Callable[[], Backend], environment: Mapping[str, str]) -> Iterator[Message]:
        """Open the backend.

        Args:
            opener: Opens it.
            environment: Variables of the driver that the backend reads, keys among them. They come with a call, because
                the environment of a Ray process can be read in its dashboard.
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
                limits=backend.block_limits if isinstance(backend, AsksInBlocks) else _OTHERS,
                versions=versions(),
            )
        # Whatever a library raises; a model that does not open on one machine will hardly do so on the next.
        except Exception as error:
            yield _trouble(error, ConfigError)

    def answer(self, requests: Sequence[Request], missing: frozenset[int]) -> Iterator[Message]:
        """Answer what is missing of a block.

        Args:
            requests: The whole block: what is computed together depends on all of it.
            missing: Places in it.
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
        # Whatever a library raises.
        except Exception as error:
            trouble = _trouble(error, RunError)
        if events:
            yield Progress(tuple(events), self._backend.runtime)
        yield trouble or Finished()

    def count_tokens(self, requests: Sequence[Request]) -> Iterator[Message]:
        """Count what asking would take."""
        assert self._backend is not None
        try:
            yield Counted(self._backend.count_tokens(requests))
        # Whatever a library raises.
        except Exception as error:
            yield _trouble(error, RunError)


def versions() -> dict[str, str]:
    """Of what driver and workers must have alike."""
    return {"python": platform.python_version(), "biasboard": importlib.metadata.version("biasboard")}


def _trouble(error: Exception, otherwise: type[BiasboardError]) -> Trouble:
    if isinstance(error, BiasboardError):
        return Trouble(type(error), str(error))
    return Trouble(otherwise, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
