"""Asks many requests at a time, in an event loop that runs in a thread of its own.

A generator hands over the responses as they arrive. One worker for each call that may be under way takes requests from
a shared iterator. There is no queue, so calls are built only when they are sent, and memory stays small in long runs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from evaluators.backend import Answers, Events, GenerateRequest, Request, Response, Sent
from evaluators.backends.openai.budget import Budget
from evaluators.backends.openai.caller import Caller, Connection, GaveUpError, Tally
from evaluators.backends.openai.calls import Ways, failed, rejected
from evaluators.backends.openai.client import Client, RejectedError, quiet_logs
from evaluators.backends.openai.outage import Watch
from evaluators.backends.openai.pacing import Pacer, Patience

_TICK_SECONDS = 0.2
_GATHER_SECONDS = 0.01
"""Seconds in which responses are gathered after the first one, to be stored together."""
_HAND_OVER = 256
_SEED = 0


@dataclass(slots=True)
class _Outbox:
    """The responses that pass from the event loop's thread to the generator."""

    condition: threading.Condition = field(default_factory=threading.Condition)
    answers: dict[int, Response] = field(default_factory=dict)
    stored: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the responses that wait now have been stored."""
    is_finished: bool = False
    error: BaseException | None = None

    def put(self, place: int, response: Response) -> asyncio.Event:
        """Add a response, wake the reader, and return what is set once the response has been stored."""
        with self.condition:
            self.answers[place] = response
            self.condition.notify()
            return self.stored

    def finish(self, error: BaseException | None) -> None:
        """Say that no response will follow, and wake the reader."""
        with self.condition:
            self.error, self.is_finished = error, True
            self.condition.notify()

    def take(self) -> _Taken:
        """Wait for a tick, or until responses are there, and take them."""
        with self.condition:
            self.condition.wait_for(lambda: self.is_finished or bool(self.answers), _TICK_SECONDS)
            self.condition.wait_for(lambda: self.is_finished or len(self.answers) >= _HAND_OVER, _GATHER_SECONDS)
            taken = _Taken(self.answers, self.stored, not self.is_finished)
            self.answers, self.stored = {}, asyncio.Event()
            return taken


class _Taken(NamedTuple):
    """Responses that were taken from the outbox."""

    answers: dict[int, Response]
    """Responses by place."""
    stored: asyncio.Event
    """Set by the reader once they have been stored."""
    is_followed: bool
    """True if more will come."""


class Engine:
    """The workers behind one call of ``Backend.ask``."""

    def __init__(self, connection: Connection, ways: Ways, budget: Budget, tally: Tally, patience: Patience) -> None:
        """Create an engine; nothing is sent yet."""
        self._connection = connection
        self._ways = ways
        self._budget = budget
        self._tally = tally
        self._outbox = _Outbox()
        self._pacer = Pacer(connection.concurrency, patience, np.random.default_rng(_SEED))
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests; see ``Backend.ask``.

        Closing the iterator cancels the calls under way and ends the thread.
        """
        thread = threading.Thread(target=self._main, args=(requests, sorted(missing)), name="openai-endpoint")
        n_attempts, cost, since = self._tally.n_attempts, self._tally.cost_usd, time.perf_counter()
        watch, n_waiting = Watch(self._connection.address.place, self._pacer, self._connection.timeout), len(missing)
        thread.start()
        try:
            more = True
            while more:
                answers, stored, more = self._outbox.take()
                n_waiting -= len(answers)
                watch.look(n_waiting)
                now_attempts, now_cost = self._tally.n_attempts, self._tally.cost_usd
                if now_attempts != n_attempts or now_cost != cost:
                    yield Sent(now_attempts - n_attempts, now_cost - cost if self._budget.has_price else None)
                    n_attempts, cost = now_attempts, now_cost
                if answers:
                    now = time.perf_counter()
                    yield Answers(answers, now - since)
                    since = now
                    self._call(stored.set)
        finally:
            self._stop()
            thread.join()
        if self._outbox.error is not None:
            raise self._outbox.error

    def _stop(self) -> None:
        self._started.wait()
        if self._task is not None:
            self._call(self._task.cancel)

    def _call(self, function: Callable[[], object]) -> None:
        """Call a function in the thread of the event loop, if that has not ended by itself."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function)

    def _main(self, requests: Sequence[Request], places: Sequence[int]) -> None:
        try:
            asyncio.run(self._work(requests, places))
        except asyncio.CancelledError:
            self._outbox.finish(None)
        except BaseException as error:  # Raised again in ask().
            self._outbox.finish(error)
        else:
            self._outbox.finish(None)
        finally:
            self._started.set()

    async def _work(self, requests: Sequence[Request], places: Sequence[int]) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._started.set()
        with quiet_logs(self._connection.address):
            async with Client(self._connection.address, self._connection.timeout) as client:
                caller = Caller(client, self._pacer, self._budget, self._tally)
                todo = iter(places)
                n_workers = min(self._connection.concurrency, len(places))
                workers = [asyncio.create_task(self._worker(caller, requests, todo)) for _ in range(n_workers)]
                try:
                    await asyncio.gather(*workers)
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)

    async def _worker(self, caller: Caller, requests: Sequence[Request], todo: Iterator[int]) -> None:
        for place in todo:
            # A killed process loses what is not stored. So that this is never more than the calls that may be under
            # way, the next call waits for it.
            await self._outbox.put(place, await self._answer(caller, requests[place])).wait()

    async def _answer(self, caller: Caller, request: Request) -> Response:
        form = self._ways.generation.form
        while True:
            way, calls = form.way, self._ways.calls(request)
            if isinstance(calls, str):
                # No call is awaited here, so let the other workers, or a request to stop, have a turn.
                await asyncio.sleep(0)
                return failed(calls)
            try:
                return self._ways.response(request, [await caller.call(call) for call in calls])
            except GaveUpError as error:
                return failed(str(error))
            except RejectedError as error:
                has_form = isinstance(request, GenerateRequest) and request.json_schema is not None
                if not has_form or not form.gives_way(way, error):
                    return rejected(error)
