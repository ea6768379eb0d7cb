"""Asks many requests at a time, in an event loop that runs in a thread of its own.

A generator hands over the responses as they arrive. One worker for each call that may be under way takes requests from
a shared iterator. Nothing is queued ahead, so calls are built only when they are sent, and memory stays small in long
runs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

from evaluators.backend import Answers, Events, GenerateRequest, Request, Response
from evaluators.backends.openai.client import Client, Connection, RejectedError
from evaluators.backends.openai.ledger import Ledger
from evaluators.backends.openai.methods import Methods, failed, rejected
from evaluators.backends.openai.pacing import Caller, GaveUpError, Pacer, Patience, Watch
from evaluators.backends.openai.reading import AnswerError

_TICK_SECONDS = 0.2
_GATHER_SECONDS = 0.01
"""Seconds in which responses are gathered after the first one, to be stored together."""
_HAND_OVER = 256
_T = TypeVar("_T")


@contextmanager
def loop_apart() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own, since the caller may be in one itself, as in a notebook.

    What still runs there at the end is cancelled, and waited for.
    """
    running: Future[asyncio.AbstractEventLoop] = Future()

    def main() -> None:
        with asyncio.Runner() as runner:
            running.set_result(runner.get_loop())
            runner.get_loop().run_forever()

    thread = threading.Thread(target=main, name="openai-endpoint")
    thread.start()
    loop = running.result()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def run_apart(work: Coroutine[Any, Any, _T], meanwhile: Callable[[], None] = lambda: None) -> _T:
    """Run a coroutine to its end in an event loop of its own, and return its result.

    Args:
        work: The coroutine.
        meanwhile: Function to call several times a second until the coroutine ends, in the caller's thread.
    """
    with loop_apart() as loop:
        result = asyncio.run_coroutine_threadsafe(work, loop)
        while not wait([result], _TICK_SECONDS).done:
            meanwhile()
        return result.result()


class _Arrived(NamedTuple):
    """A response on its way from the event loop's thread to the generator."""

    place: int
    response: Response
    stored: asyncio.Event
    """Set once the response has been stored."""


_Outbox: TypeAlias = SimpleQueue[_Arrived | None]
"""Responses as they arrive; None after the last one."""


@dataclass(frozen=True)
class Engine:
    """The workers behind calls of ``Backend.ask``."""

    connection: Connection
    methods: Methods
    ledger: Ledger
    patience: Patience

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests; see ``Backend.ask``.

        Closing the iterator cancels the calls under way and ends the thread.
        """
        pacer = Pacer(self.connection.concurrency, self.patience)
        watch = Watch(self.connection, pacer)
        outbox: _Outbox = SimpleQueue()
        n_waiting, since = len(missing), time.perf_counter()
        with loop_apart() as loop:
            work = asyncio.run_coroutine_threadsafe(self._work(requests, sorted(missing), pacer, outbox), loop)
            work.add_done_callback(lambda _: outbox.put(None))
            more = True
            while more:
                arrived, more = _gathered(outbox)
                n_waiting -= len(arrived)
                watch.look(n_waiting)
                if (sent := self.ledger.news()) is not None:
                    yield sent
                if arrived:
                    now = time.perf_counter()
                    yield Answers({one.place: one.response for one in arrived}, now - since)
                    since = now
                    for one in arrived:
                        loop.call_soon_threadsafe(one.stored.set)
        work.result()

    async def _work(self, requests: Sequence[Request], places: Sequence[int], pacer: Pacer, outbox: _Outbox) -> None:
        async with Client(self.connection) as client:
            caller, todo = Caller(client, pacer, self.ledger), iter(places)
            n_workers = min(self.connection.concurrency, len(places))
            workers = [asyncio.create_task(self._worker(caller, requests, todo, outbox)) for _ in range(n_workers)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _worker(self, caller: Caller, requests: Sequence[Request], todo: Iterator[int], outbox: _Outbox) -> None:
        for place in todo:
            arrived = _Arrived(place, await self._answer(caller, requests[place]), asyncio.Event())
            outbox.put(arrived)
            # A killed process loses what is not stored. So that this is never more than the calls that may be under
            # way, the next call waits for it.
            await arrived.stored.wait()

    async def _answer(self, caller: Caller, request: Request) -> Response:
        form = self.methods.generation.form
        while True:
            way = form.way
            try:
                calls = self.methods.calls(request)
                return self.methods.response(request, [await caller.call(call) for call in calls])
            except (AnswerError, GaveUpError) as error:
                return failed(str(error))
            except RejectedError as error:
                has_form = isinstance(request, GenerateRequest) and request.json_schema is not None
                if not has_form or not form.gives_way(way, error):
                    return rejected(error)


def _gathered(outbox: _Outbox) -> tuple[list[_Arrived], bool]:
    """Wait for a tick, or until a response is there and those that follow at once; False if it was the end."""
    arrived: list[_Arrived] = []
    end = time.monotonic() + _TICK_SECONDS
    while len(arrived) < _HAND_OVER:
        try:
            one = outbox.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            break
        if one is None:
            return arrived, False
        if not arrived:
            end = time.monotonic() + _GATHER_SECONDS
        arrived.append(one)
    return arrived, True
