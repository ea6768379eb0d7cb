"""Makes calls and repeats those that fail, until they succeed or no further try makes sense."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evaluators.backends.openai.address import Address
from evaluators.backends.openai.budget import Budget
from evaluators.backends.openai.client import Call, Client, FaultError, RejectedError
from evaluators.backends.openai.pacing import Pacer

_MOST_NAMES = 16
_TICK_SECONDS = 0.2
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of an endpoint and the limits on calls to it."""

    address: Address
    timeout: float
    """Seconds that one attempt may take."""
    concurrency: int
    """Largest number of calls under way at a time."""


@dataclass(slots=True)
class Tally:
    """Counts of what was sent and spent, and the model names that the endpoint reported."""

    n_attempts: int = 0
    n_faults: int = 0
    cost_usd: float = 0.0
    models: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)

    def see(self, data: Mapping[str, Any]) -> None:
        """Record the model and the system fingerprint that a reply names."""
        for names, key in ((self.models, "model"), (self.fingerprints, "system_fingerprint")):
            name = data.get(key)
            if isinstance(name, str) and name and len(names) < _MOST_NAMES:
                names.add(name)


class GaveUpError(Exception):
    """An error for a call that failed too often to be tried again."""

    def __init__(self, reason: str, last: FaultError) -> None:
        super().__init__(reason)
        self.last = last
        """The failure of the last try."""


class Caller:
    """A maker of calls within one event loop, which share a pace, a budget and a tally."""

    def __init__(self, client: Client, pacer: Pacer, budget: Budget, tally: Tally) -> None:
        """Create a caller; nothing is sent yet."""
        self._client = client
        self._pacer = pacer
        self._budget = budget
        self._tally = tally

    async def call(self, call: Call) -> Mapping[str, Any]:
        """Send a call, again if it fails, and return the JSON object of the reply.

        Raises:
            GaveUpError: the call failed too often.
            RejectedError: the endpoint refuses the call.
            RunError: the endpoint has stopped answering, or the budget is used up.
        """
        loop, patience = asyncio.get_running_loop(), self._pacer.patience
        began, n_answered, n_tries, n_timeouts = loop.time(), self._pacer.n_answered, 0, 0
        while True:
            try:
                return await self._attempt(call)
            except FaultError as fault:
                # A rate limit concerns all calls, so it does not count as a try of this one.
                n_tries += fault.status != 429
                n_timeouts += fault.timed_out
                if n_timeouts >= patience.n_timeouts or (fault.unusable and not patience.retries_unusable):
                    raise GaveUpError(_tried(n_tries, fault), fault) from None
                others_succeed = self._pacer.n_answered > n_answered
                if n_tries >= patience.n_tries and (others_succeed or loop.time() - began >= patience.call_seconds):
                    raise GaveUpError(_tried(n_tries, fault), fault) from None
            await asyncio.sleep(self._pacer.pause(n_tries))

    async def _attempt(self, call: Call) -> Mapping[str, Any]:
        began = await self._pacer.enter()
        try:
            reserved = await self._budget.reserve(call)
            # Unknown for now. If it stays unknown, the whole reservation counts: a call that was cut off may be billed.
            cost: float | None = None
            self._tally.n_attempts += 1
            try:
                reply = await self._client.post(call)
                cost = self._budget.cost_usd(reply.data)
            except FaultError as fault:
                self._tally.n_faults += 1
                self._tally.n_attempts -= not fault.sent
                if fault.status is not None or not fault.sent:
                    cost = 0.0
                self._pacer.failed(fault, began)
                raise
            except RejectedError:
                cost = 0.0
                self._pacer.answered(0.0)
                raise
            finally:
                self._budget.release(reserved, cost)
                self._tally.cost_usd += reserved if cost is None else cost
        finally:
            self._pacer.leave()
        self._pacer.answered(reply.pause_seconds)
        self._tally.see(reply.data)
        return reply.data  # type: ignore[no-any-return]


def _tried(n_tries: int, last: FaultError) -> str:
    return last.reason if n_tries == 1 else f"gave up after {n_tries} tries; the last: {last.reason}"


def run_apart(work: Callable[[], Coroutine[Any, Any, _T]], meanwhile: Callable[[], None] = lambda: None) -> _T:
    """Run a coroutine to its end in a thread of its own, so that the caller may itself be in an event loop.

    Args:
        work: Function that makes the coroutine.
        meanwhile: Function to call several times a second until the coroutine ends, in the caller's thread.

    Returns:
        The result of the coroutine; an exception in it is raised again.
    """
    results: list[_T] = []
    errors: list[BaseException] = []

    def main() -> None:
        try:
            results.append(asyncio.run(work()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=main, name="openai-endpoint", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_TICK_SECONDS)
        meanwhile()
    if errors:
        raise errors[0]
    return results[0]
