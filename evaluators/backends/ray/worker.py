"""The worker of a cluster: it opens another backend once and answers one block of requests after the other.

Nothing here uses Ray. Errors are sent to the driver as messages, not raised, because Ray would wrap an exception in the
stack traces of two machines.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, TypeAlias

from biasboard.ground.errors import BiasboardError, ConfigError, RunError
from biasboard.ground.plain_text import one_line
from evaluators.backend import Answers, Backend, BlockLimits, Capability, Request, Runtime, Sent
from schemas.documents.result import Model

_DEFAULT_LIMITS = BlockLimits(n_texts=256, n_characters=1_000_000)
"""Limits of a block for backends that answer each request by itself: small enough that little is lost with a worker,
large enough for many requests at a time."""
_VARIABLES = ("HF_TOKEN", "HF_HUB_OFFLINE", "VLLM_BATCH_INVARIANT", "VLLM_ATTENTION_BACKEND")
"""Environment variables that backends read."""
_PROGRESS_SECONDS = 0.25
"""Least time between two messages with progress, because fast answers would cause thousands of messages."""


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
    """A message: events of a block since the last message, with indices of requests within the block."""

    events: tuple[Sent | Answers, ...]
    runtime: Runtime


Message: TypeAlias = str | Opened | Progress | BiasboardError
"""What a worker sends: the name of its machine, its backend, answers, or an error."""


class Worker:
    """A worker on the cluster. Each method yields messages for the driver."""

    def __init__(self) -> None:
        self._backend: Backend | None = None

    def open(self, opener: Callable[[], Backend], environment: Mapping[str, str]) -> Iterator[Message]:
        """Open the backend.

        Args:
            opener: Function that opens the backend.
            environment: The driver's :func:`environment`. It holds the key of the Hub, and is passed in a call because
                Ray's dashboard shows the environment with which a process starts.
        """
        yield platform.node()
        os.environ.update(environment)
        try:
            backend = self._backend = opener()
            yield Opened(
                model=backend.model,
                runtime=backend.runtime,
                arguments=tuple(backend.arguments),
                capabilities=backend.capabilities,
                reads_facts=backend.reads_facts,
                limits=backend.block_limits or _DEFAULT_LIMITS,
                versions=versions(),
            )
        # A library may raise any exception. A ConfigError ends the run: the next machine would hardly do better.
        except Exception as error:
            yield _as_biasboard_error(error, ConfigError)

    def answer(self, requests: Sequence[Request], missing: frozenset[int]) -> Iterator[Message]:
        """Answer the missing requests of a block."""
        assert self._backend is not None
        events: list[Sent | Answers] = []
        last_sent = time.monotonic()
        failure: BiasboardError | None = None
        try:
            with closing(self._backend.ask(requests, missing)) as events_of_block:
                for event in events_of_block:
                    events.append(event)
                    if time.monotonic() - last_sent >= _PROGRESS_SECONDS:
                        yield Progress(tuple(events), self._backend.runtime)
                        events.clear()
                        last_sent = time.monotonic()
        # A library may raise any exception.
        except Exception as error:
            failure = _as_biasboard_error(error, RunError)
        if events:
            yield Progress(tuple(events), self._backend.runtime)
        if failure is not None:
            yield failure


def environment() -> dict[str, str]:
    """Return the environment variables of this process that backends read."""
    return {name: value for name in _VARIABLES if (value := os.environ.get(name)) is not None}


def versions() -> dict[str, str]:
    """Return the versions that the driver and the workers must have in common."""
    return {"python": platform.python_version(), "biasboard": importlib.metadata.version("biasboard")}


def _as_biasboard_error(error: Exception, otherwise: type[BiasboardError]) -> BiasboardError:
    if isinstance(error, BiasboardError):
        return type(error)(str(error))
    return otherwise(f"{type(error).__name__}: {one_line(error)}")
