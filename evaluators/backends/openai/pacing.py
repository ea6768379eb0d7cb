"""Repeats failed calls at a rate that the endpoint can bear, and reports outages on the console.

The limit on concurrent calls works like TCP's congestion control: it grows while replies come, fast at first and later
by one per round, and is halved when the endpoint is overloaded (429, 5xx, time-outs). During an outage, single calls
test whether the endpoint is back. The pauses between them grow and are random, so that many clients do not return
together. The first reply lets the limit grow again.

Neither the retries of the library ``openai`` nor a library for retries can do this: each call would have to discover
the rate limit itself, and attempts that may be billed would go uncounted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
import numpy as np

from biasboard.ground.errors import RunError
from biasboard.ground.progress import note
from evaluators.backends.openai.client import Client, Connection
from evaluators.backends.openai.costs import Ledger
from evaluators.backends.openai.dialect import Dialect
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.protocol import Call

_START_LIMIT = 8
_SHORTEST_PAUSE = 0.25
_FAULTS_IN_A_ROW = 4
"""Number of consecutive faults after which the endpoint counts as down."""
_SILENCE_FACTOR = 3.0
"""Multiple of the longest wait so far after which the endpoint counts as silent."""
_MOST_LESSONS = 16
"""Number of refusals after which a request is given up, whatever may be learnt from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Limits on tries and waiting times beyond which a call or the run is given up."""

    n_tries: int = 8
    """Number of tries after which one call is given up."""
    n_limited: int = 30
    """Number of tries that end at a rate limit, while others are answered, after which one call is given up."""
    n_timeouts: int = 4
    """Number of timed-out tries after which one call is given up."""
    retries_unusable: bool = True
    """True to retry after an answer that is no JSON object, which a proxy may send while a server restarts."""
    call_seconds: float = 60.0
    """Least number of seconds for which a call is retried while no other call succeeds either."""
    # A server that restarts with a large model refuses connections for minutes.
    outage_seconds: float = 300.0
    """Seconds without any reply after which the run ends."""
    # Short enough that ten seconds after an outage, calls run again at no less than half the rate before it.
    longest_pause: float = 4.0
    """Longest pause between two tries in seconds, and so the longest delay in noticing that the endpoint is back."""
    longest_retry_after: float = 900.0
    """Longest wait in seconds that the endpoint may ask for; a longer one ends the run."""
    fault_seconds: float = 3.0
    """Seconds of uninterrupted faults before the user is told."""
    silent_seconds: float = 8.0
    """Seconds without an answer or a fault before the user is told."""
    repeat_seconds: float = 10.0
    """Seconds between two messages to the user."""


class Pacer:
    """Limits the concurrent calls of one event loop, and tells of outages; all times are those of a monotonic clock."""

    def __init__(self, connection: Connection, patience: Patience) -> None:
        """Create a pacer that allows a few concurrent calls at first, and later as many as the connection."""
        self.patience = patience
        self._connection = connection
        self.n_answered = 0
        """Number of replies, also of those that refuse."""
        self.n_under_way = 0
        self._open_at = 0.0
        """Time at which the next call may start."""
        self._faults_since: float | None = None
        """Start of the first attempt that failed since the last answer; None if none did."""
        self._waiting_since: float | None = None
        """Time since which nothing has come back; None if no call is under way."""
        self._longest_wait = 0.0
        """Longest time in seconds between two answers so far."""
        self._told_at: float | None = None
        """Time of the last message to the user; None if there was none."""
        self._told_since: float | None = None
        """Start of the outage that the user was told of; None if there is none."""
        self._most = float(connection.concurrency)
        # Draws only pauses between tries, so the seed changes no answer.
        self._rng = np.random.default_rng(0)
        self._limit = min(self._most, _START_LIMIT)
        """Limit on concurrent calls, rounded down; fractional because of its slow growth above the threshold."""
        # Unlike asyncio's semaphore, it can be changed while calls wait.
        self._turns = anyio.CapacityLimiter(int(self._limit))
        self._threshold = self._most
        """Limit up to which every reply raises it by one; above, a whole round of replies does."""
        self._last_good_limit = self._limit
        """Limit that the endpoint last sustained; an overload sets the threshold to half of it."""
        self._lowered_at = self._held_at = self._answered_at = -1.0
        """Times at which the limit was halved, all calls were held, and an answer came."""
        self._n_faults = self._n_holds = 0
        """Numbers of overloads and of pauses of all calls since the last reply."""
        self._failing_since = 0.0
        """Time of the first fault since the last reply, or the end of the last wait that the endpoint asked for."""
        self._last_fault = ""
        """Reason of the last fault."""

    async def start(self) -> float:
        """Wait until another call may start, and return the time then; :meth:`end` must follow."""
        while True:
            while (seconds := self._open_at - time.monotonic()) > 0:
                await asyncio.sleep(seconds)
            await self._turns.acquire()
            now = time.monotonic()
            # Since it was granted, the limit may have fallen or a pause begun.
            if now >= self._open_at and self._turns.borrowed_tokens <= self._turns.total_tokens:
                break
            self._turns.release()
        self._waiting_since = now if self.n_under_way == 0 else self._waiting_since
        self.n_under_way += 1
        return now

    def end(self) -> None:
        """Record that a call has ended, whether it succeeded or failed."""
        self.n_under_way -= 1
        self._waiting_since = self._waiting_since if self.n_under_way else None
        self._turns.release()

    def answered(self, pause_seconds: float = 0.0) -> None:
        """Record an answer, and raise the limit.

        Args:
            pause_seconds: Seconds for which the endpoint allows no further call; 0 if it allows one now.

        Raises:
            RunError: the endpoint asks for too long a wait.
        """
        self.n_answered += 1
        now = time.monotonic()
        if self._waiting_since is not None:
            self._longest_wait = max(self._longest_wait, now - self._waiting_since)
        self._waiting_since = self._answered_at = now
        self._n_faults = self._n_holds = 0
        self._faults_since = None
        self._allow(min(self._most, self._limit + (1.0 if self._limit < self._threshold else 1.0 / self._limit)))
        self._last_good_limit = max(self._limit, self._last_good_limit if self._limit < self._threshold else 0.0)
        self._hold(pause_seconds, "its rate limit is used up")

    def failed(self, fault: NoAnswerError, began: float) -> None:
        """Record a failed attempt that began at a time, and lower the limit if the endpoint is overloaded.

        Raises:
            RunError: the endpoint has not answered for too long, or asks for too long a wait.
        """
        now, patience = time.monotonic(), self.patience
        if self._faults_since is None:
            self._faults_since, self._failing_since = max(began, self._answered_at), now
        self._last_fault, self._waiting_since = fault.reason, now
        if fault.retry_after is not None:
            self._hold(fault.retry_after, fault.reason)
            # A wait that the endpoint asked for does not count as an outage.
            self._failing_since = max(self._failing_since, self._open_at)
        silent = now - self._faults_since
        # Nor may waits that it asks for follow each other for ever.
        is_over = silent > patience.outage_seconds + patience.longest_retry_after
        if is_over or now - self._failing_since > patience.outage_seconds:
            raise RunError(
                f"the endpoint has answered nothing for {silent:.0f} s; last fault: {fault.reason}. Answers are "
                "kept: run the same command again when it is back"
            )
        if not fault.overload:
            return
        self._n_faults += 1
        # Calls that were under way together fail together, and count as one overload.
        if began > self._lowered_at:
            self._lowered_at = now
            self._threshold = max(1.0, self._last_good_limit / 2)
            self._allow(max(1.0, self._limit / 2))
        if self._n_faults >= _FAULTS_IN_A_ROW and fault.retry_after is None and began > self._held_at:
            self._allow(1.0)
            self._hold(self.pause(self._n_holds), fault.reason)
            self._n_holds += 1
            self._held_at = now

    def pause(self, n_tries: int) -> float:
        """Draw the seconds to wait before another try, uniformly up to a bound that doubles with every try."""
        bound = min(self.patience.longest_pause, _SHORTEST_PAUSE * 2.0 ** min(n_tries, 16))
        return float(self._rng.uniform(0, bound))

    def look(self, n_waiting: int) -> None:
        """Tell the user that the endpoint has stopped answering, or answers again; ``n_waiting`` requests wait.

        It is called several times a second, perhaps from another thread than the event loop's.
        """
        now, patience, host = time.monotonic(), self.patience, self._connection.address.host_and_port
        since, silent_since, soon = self._faults_since, self._waiting_since, self._open_at - now
        waiting = "1 request waits" if n_waiting == 1 else f"{n_waiting:,} requests wait"
        if self._told_since is not None and since is None and self.n_answered:
            note(f"{host} answers again, after {now - self._told_since:.0f} s")
            self._told_since = self._told_at = None
            return
        if self._told_at is not None and now < self._told_at + patience.repeat_seconds:
            return
        if since is not None:
            if now < since + patience.fault_seconds:
                return
            self._told_since = self._told_since or since
            told = (
                f"no answer from {host} for {now - since:.0f} s: {self._last_fault}; {waiting}; tried again "
                f"{f'in {soon:.0f} s' if soon >= 1 else 'now'}, given up after {patience.outage_seconds:g} s"
            )
        elif soon > patience.silent_seconds:
            told = f"{host} asks to wait {soon:.0f} s (its rate limit is used up); {waiting}"
        elif silent_since is not None and (
            now >= silent_since + max(patience.silent_seconds, _SILENCE_FACTOR * self._longest_wait)
        ):
            timeout = self._connection.timeout
            told = f"no answer from {host} for {now - silent_since:.0f} s; {waiting}, each up to {timeout:g} s"
        else:
            return
        self._told_at = now
        note(f"{told}; Ctrl-C keeps the answers")

    def _allow(self, limit: float) -> None:
        if int(limit) != int(self._limit):
            self._turns.total_tokens = int(limit)
        self._limit = limit

    def _hold(self, seconds: float, reason: str) -> None:
        if seconds > self.patience.longest_retry_after:
            raise RunError(
                f"the endpoint asks to wait {seconds:.0f} s ({reason}); answers are kept, run the same command again "
                "after that"
            )
        self._open_at = max(self._open_at, time.monotonic() + seconds)


@dataclass(frozen=True)
class Caller:
    """Sends calls from one event loop, with a shared pacer and ledger."""

    client: Client
    pacer: Pacer
    ledger: Ledger

    async def replies(
        self, calls: Callable[[], Sequence[Call]], dialect: Dialect, *, may_learn: bool = True
    ) -> list[Mapping[str, Any]]:
        """Send all calls of a request one after another, and in other ways after refusals that teach something.

        Args:
            calls: Function that returns the calls, made anew from what was learnt.
            dialect: What the endpoint accepts.
            may_learn: False to leave the calls as they are.

        Raises:
            NoAnswerError: a call failed too often, or was refused. After a refusal, what was learnt from those before
                it is forgotten again: they were about something else.
            RunError: see :meth:`call`.
        """
        replies: list[Mapping[str, Any]] = []
        before = replace(dialect)
        for number in range(_MOST_LESSONS):
            wanted = calls()
            try:
                while len(replies) < len(wanted):
                    replies.append(await self.call(wanted[len(replies)]))
                break
            except NoAnswerError as error:
                is_last = number == _MOST_LESSONS - 1 or not may_learn
                if is_last or not dialect.learn(error, wanted[len(replies)].body):
                    if number and not error.passes:
                        vars(dialect).update(vars(before))
                    raise
        return replies

    async def call(self, call: Call) -> Mapping[str, Any]:
        """Send a call, retry it if it fails, and return the JSON object of the reply.

        Raises:
            NoAnswerError: the call failed too often, or the endpoint refuses it; its last failure.
            RunError: the endpoint has stopped answering, or the limit on costs is reached.
        """
        patience, began, n_answered = self.pacer.patience, time.monotonic(), self.pacer.n_answered
        n_tries = n_timeouts = n_limited = 0
        while True:
            try:
                return await self._attempt(call)
            except NoAnswerError as fault:
                if not fault.passes:
                    raise
                # A rate limit concerns all calls, so it is no failed try of this one, until all others pass it by.
                others_succeed = self.pacer.n_answered > n_answered
                n_tries += fault.means != "limited"
                n_limited += fault.means == "limited" and others_succeed
                n_timeouts += fault.timed_out
                is_late = time.monotonic() - began >= patience.call_seconds
                if (
                    n_timeouts >= patience.n_timeouts
                    or (fault.unusable and not patience.retries_unusable)
                    or (n_tries >= patience.n_tries and (others_succeed or is_late))
                    or (n_limited >= patience.n_limited and is_late)
                ):
                    if n_tries + n_limited > 1:
                        fault.reason = f"gave up after {n_tries + n_limited} tries; the last: {fault.reason}"
                    raise
            await asyncio.sleep(self.pacer.pause(n_tries))

    async def _attempt(self, call: Call) -> Mapping[str, Any]:
        began = await self.pacer.start()
        try:
            async with self.ledger.attempt(call) as charge:
                reply, pause_seconds = await self.client.post(call)
                charge(reply)
        except NoAnswerError as fault:
            if fault.passes:
                self.pacer.failed(fault, began)
            else:
                self.pacer.answered()
            raise
        finally:
            self.pacer.end()
        self.pacer.answered(pause_seconds)
        return reply
