"""Sends many requests at a time, from an event loop in a thread of its own.

A generator yields the responses as they arrive. Workers, one per call that may be under way, take requests from a
shared iterator. Calls are built only when they are sent, so memory stays small in long runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from biasboard.ground.errors import RunError
from evaluators.backend import Answers, Events, GenerateRequest, Request, Response
from evaluators.backends.openai.client import Client, Connection
from evaluators.backends.openai.costs import Ledger
from evaluators.backends.openai.generation import TEST, is_cut_thinking
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.pacing import Caller, Pacer, Patience
from evaluators.backends.openai.scoring import Methods, response_of

_TICK_SECONDS = 0.2
# An answer that waited for the whole tick was stored up to 200 ms after it arrived.
_GATHER_SECONDS = 0.01
"""Seconds after a response in which further ones are gathered and stored with it; a kill meanwhile loses them."""
_RESPONSES_PER_EVENT = 256
_TRIES_WITHOUT_CHOICE = 3
"""Number of answers without a choice after which a filter, and no passing fault, leaves it out."""
_FORBIDDEN = "the endpoint forbids every prompt, also a harmless one: ask its provider"
T = TypeVar("T")


_Outbox: TypeAlias = SimpleQueue[tuple[int, Response, asyncio.Event] | None]
"""Indices of requests and their responses as they arrive, each with what is set once it is stored; None at the end."""


@contextmanager
def _in_thread(work: Coroutine[Any, Any, T]) -> Iterator[tuple[Future[T], Callable[[Callable[[], object]], None]]]:
    """Run a coroutine in a thread of its own, since the caller may be in an event loop itself, as in a notebook.

    Leaving cancels the coroutine if it is still running, and waits for it to end.

    Yields:
        The coming result, and a function that calls another one in the event loop's thread, if the loop has not ended.
    """
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()
    task = loop.create_task(work)

    def run() -> T:
        with runner:
            return loop.run_until_complete(task)

    def call(function: Callable[[], object]) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function)

    with ThreadPoolExecutor(1, thread_name_prefix="openai-endpoint") as thread:
        try:
            yield thread.submit(run), call
        finally:
            # Only the main task, which cancels its workers: cancelling all tasks of the loop at once would leave calls
            # that were about to connect never awaited.
            call(task.cancel)


def run_in_thread(work: Coroutine[Any, Any, T], meanwhile: Callable[[], None] = lambda: None) -> T:
    """Run a coroutine to its end in a thread of its own, and return its result.

    Args:
        work: The coroutine.
        meanwhile: Function to call several times a second until the coroutine ends, in the caller's thread.
    """
    with _in_thread(work) as (result, _):
        while not wait([result], _TICK_SECONDS).done:
            meanwhile()
        return result.result()


@dataclass(frozen=True)
class ConcurrentRun:
    """A single call of ``Backend.ask`` whose requests are sent many at a time."""

    connection: Connection
    methods: Methods
    ledger: Ledger
    patience: Patience

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests; see ``Backend.ask``.

        Closing the iterator cancels the calls under way and ends the thread.
        """
        pacer = Pacer(self.connection, self.patience)
        outbox: _Outbox = SimpleQueue()
        n_waiting, since = len(missing), time.perf_counter()
        with _in_thread(self._work(requests, sorted(missing), pacer, outbox)) as (ended, call):
            ended.add_done_callback(lambda _: outbox.put(None))
            more = True
            while more:
                arrived, more = _next_arrivals(outbox)
                n_waiting -= len(arrived)
                pacer.look(n_waiting)
                if (sent := self.ledger.news()) is not None:
                    yield sent
                if arrived:
                    now = time.perf_counter()
                    yield Answers({index: response for index, response, _ in arrived}, now - since)
                    since = now
                    for _, _, stored in arrived:
                        call(stored.set)
        ended.result()

    async def _work(self, requests: Sequence[Request], indices: Sequence[int], pacer: Pacer, outbox: _Outbox) -> None:
        async with Client(self.connection) as client:
            caller, todo = Caller(client, pacer, self.ledger), iter(indices)

            async def work() -> None:
                # Calls are built here, not ahead, so that a queue of 100,000 requests takes only a few megabytes.
                for index in todo:
                    stored = asyncio.Event()
                    outbox.put((index, await self._answer(caller, requests[index]), stored))
                    # A killed process loses what is not stored: waiting bounds that by the number of calls under way.
                    await stored.wait()

            n_workers = min(self.connection.concurrency, len(indices))
            workers = [asyncio.create_task(work()) for _ in range(n_workers)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _answer(self, caller: Caller, request: Request) -> Response:
        methods, dialect = self.methods, self.methods.generation.dialect
        is_text = isinstance(request, GenerateRequest)
        # Exact scoring sends what was tried before the run, and nothing that could be left out.
        may_learn = is_text or methods.api == "chat"
        n_replies, n_empty, n_forbidden = self.ledger.n_replies, 0, 0
        while True:
            try:
                replies = await caller.replies(partial(methods.calls, request), dialect, may_learn=may_learn)
            except NoAnswerError as error:
                if error.passes or error.status is None:
                    return response_of(error)
                is_forbidden = error.status == 403
                is_doubted = error.remedy is not None or (is_forbidden and self.ledger.n_replies == n_replies)
                if is_doubted and not n_forbidden:
                    await self._check_others(caller, error)
                if is_forbidden and error.means != "refused":
                    # A firewall may forbid a call at random. What forbids one prompt twice, where others are answered,
                    # is a filter by whatever name, unless it answers with a web page.
                    n_forbidden += 1
                    if n_forbidden == 1:
                        continue
                    error.means, error.finish_reason = (
                        ("refused", "content_filter") if error.words else ("failed", None)
                    )
                return response_of(error)
            lacks_choice = may_learn and any(reply.get("choices") == [] for reply in replies)
            n_empty += lacks_choice
            if lacks_choice and n_empty < _TRIES_WITHOUT_CHOICE:
                continue
            response = methods.response(request, replies)
            if not (is_text and is_cut_thinking(response) and dialect.grant_thinking()):
                return response

    async def _check_others(self, caller: Caller, error: NoAnswerError) -> None:
        """Check that an error concerns one request alone, by another one that was answered before.

        Providers send 403 for a prompt that they decline, or 404 where no server may answer it. A run that ended there
        would end at the same item for ever.
        """
        try:
            for call in self.methods.generation.calls(TEST):
                await caller.call(call)
        except NoAnswerError as other:
            if other.passes:
                raise RunError(f"{error.reason}, and then {other.reason}. Answers are kept: run again later") from None
            if remedy := other.remedy or (_FORBIDDEN if other.status == 403 else None):
                raise RunError(
                    f"{error.reason}; {remedy}. Answers are kept: run the same command again after that"
                ) from None


def _next_arrivals(outbox: _Outbox) -> tuple[list[tuple[int, Response, asyncio.Event]], bool]:
    """Return the responses that arrive together, within a tick, and False if they are the last."""
    arrived: list[tuple[int, Response, asyncio.Event]] = []
    end = time.monotonic() + _TICK_SECONDS
    while len(arrived) < _RESPONSES_PER_EVENT:
        try:
            answer = outbox.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            break
        if answer is None:
            return arrived, False
        if not arrived:
            end = time.monotonic() + _GATHER_SECONDS
        arrived.append(answer)
    return arrived, True
