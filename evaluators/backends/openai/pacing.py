"""Repeats calls that fail, at the pace that the endpoint can bear, and tells the console of outages.

The number of calls under way at a time works like TCP's congestion control: it grows as long as replies come, at last
by one per round, and is halved when the endpoint is overloaded (429, 5xx, time-outs). While nothing is answered at all,
single calls test if the endpoint is back. The pauses between them grow and are random, so that many clients do not
return together. The first reply lets the limit grow again.

The retries of the library ``openai`` cannot do this: each call would retry by itself, so that a limit of the rate is
learnt by every call alone, and attempts that may be billed would go uncounted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from biasboard.ground.errors import RunError
from biasboard.ground.progress import note
from evaluators.backends.openai.client import Client, Connection, FaultError, RejectedError
from evaluators.backends.openai.costs import Ledger
from evaluators.backends.openai.protocol import Call

_START = 8
_SHORTEST_PAUSE = 0.25
_FAULTS_IN_A_ROW = 4
"""Number of faults without a reply between them after which the endpoint counts as down."""
_LONGEST_WAITS = 3.0
"""Number of times the longest wait so far that an endpoint may take before it counts as silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Limits on tries and waiting times, after which a call or the run is given up."""

    n_tries: int = 8
    """Number of tries after which one call is given up."""
    n_timeouts: int = 4
    """Number of tries that took the whole time allowed, after which one call is given up."""
    retries_unusable: bool = True
    """True to try again after an answer that is no JSON object, which a proxy may send while a server restarts."""
    call_seconds: float = 60.0
    """Seconds for which a call is tried at least, if no other call is answered either."""
    # A server that restarts with a large model refuses connections for minutes.
    outage_seconds: float = 300.0
    """Seconds without any reply after which the run ends."""
    # Within ten seconds after an outage, at least half as much is asked again as before it.
    longest_pause: float = 4.0
    """Longest pause between two tries in seconds, and so the longest delay until the end of a fault is noticed."""
    longest_retry_after: float = 900.0
    """Longest wait in seconds that the endpoint may ask for; a longer one ends the run."""
    fault_seconds: float = 3.0
    """Seconds of faults alone after which the console is told."""
    silent_seconds: float = 8.0
    """Seconds without an answer or a fault after which the console is told."""
    repeat_seconds: float = 10.0
    """Seconds after which the console is told again."""


class Pacer:
    """A limiter of the calls under way within one event loop."""

    def __init__(self, most: int, patience: Patience) -> None:
        """Create a pacer that allows a few calls at first, and at last ``most`` at a time."""
        self.patience = patience
        self.n_answered = 0
        self._most = most
        # Only pauses between tries are drawn, so that the seed changes no answer.
        self._rng = np.random.default_rng(0)
        self._limit = float(min(most, _START))
        self._threshold = float(most)
        self._healthy = self._limit
        self._under_way = 0
        self.open_at = 0.0
        """Time of the event loop at which the next call may start."""
        self._answered_at = 0.0
        self._lowered_at = -1.0
        self._n_faults = 0
        self._n_holds = 0
        self._held_at = -1.0
        self._failing_since: float | None = None
        self.faults_since: float | None = None
        """Start of the first attempt that failed after the last answer, in the event loop's time; None if none did."""
        self.last_fault = ""
        """Reason of the last fault."""
        self.waiting_since: float | None = None
        """Time of the event loop since which calls wait for a first sign; None if no call is under way."""
        self.longest_wait = 0.0
        """Longest time in seconds between two answers so far."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self) -> float:
        """Wait until another call may start, and return the time of the event loop then."""
        loop = asyncio.get_running_loop()
        # Again after each turn: the limit may have fallen, or a hold begun, since the turn was given.
        while self._under_way >= int(self._limit) or loop.time() < self.open_at:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append(turn)
            self._wake()
            await turn
        if self._under_way == 0:
            self.waiting_since = loop.time()
        self._under_way += 1
        return loop.time()

    def leave(self) -> None:
        """Note that a call has ended, whether it succeeded or failed."""
        self._under_way -= 1
        if self._under_way == 0:
            self.waiting_since = None
        self._wake()

    def answered(self, pause_seconds: float) -> None:
        """Note that the endpoint answered, and raise the limit.

        Args:
            pause_seconds: Seconds for which the endpoint allows no further call; 0 if it allows one now.

        Raises:
            RunError: the endpoint asks for too long a wait.
        """
        self.n_answered += 1
        now = asyncio.get_running_loop().time()
        if self.waiting_since is not None:
            self.longest_wait = max(self.longest_wait, now - self.waiting_since)
        self.waiting_since = self._answered_at = now
        self._n_faults = self._n_holds = 0
        self._failing_since = self.faults_since = None
        # Up to half of the limit that last went well, each reply makes room for one more call; above, each round does.
        self._limit += 1.0 if self._limit < self._threshold else 1.0 / self._limit
        self._limit = min(self._limit, float(self._most))
        self._healthy = max(self._limit, self._healthy if self._limit < self._threshold else 0.0)
        self._hold(pause_seconds, "its rate limit is used up")
        self._wake()

    def failed(self, fault: FaultError, began: float) -> None:
        """Note that an attempt failed, and lower the limit if the endpoint is overloaded.

        Args:
            fault: Failure of the attempt.
            began: Time of the event loop at which the attempt started.

        Raises:
            RunError: the endpoint has not answered for too long, or asks for too long a wait.
        """
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
            self.faults_since = max(began, self._answered_at)
        self.last_fault = fault.reason
        self.waiting_since = now
        if fault.retry_after is not None:
            self._hold(fault.retry_after, fault.reason)
            # A wait that the endpoint asked for does not count as an outage.
            self._failing_since = max(self._failing_since, self.open_at)
        if now - self._failing_since > self.patience.outage_seconds:
            raise RunError(
                f"the endpoint has answered nothing for {self.patience.outage_seconds:g} s; last fault: "
                f"{fault.reason}. Answers are kept: run the same command again when it is back"
            )
        if not fault.overload:
            return
        self._n_faults += 1
        # Calls that were under way together fail together: count them as one sign of overload.
        if began > self._lowered_at:
            self._lowered_at = now
            self._limit = max(1.0, self._limit / 2)
            self._threshold = max(1.0, self._healthy / 2)
        if self._n_faults >= _FAULTS_IN_A_ROW and fault.retry_after is None and began > self._held_at:
            self._limit = 1.0
            self._hold(self.pause(self._n_holds), fault.reason)
            self._n_holds += 1
            self._held_at = now

    def pause(self, n_tries: int) -> float:
        """Draw the seconds to wait before another try, uniformly up to a bound that doubles with every try."""
        bound = min(self.patience.longest_pause, _SHORTEST_PAUSE * 2.0 ** min(n_tries, 16))
        return float(self._rng.uniform(0, bound))

    def _hold(self, seconds: float, reason: str) -> None:
        """Start no call for some seconds."""
        if seconds > self.patience.longest_retry_after:
            raise RunError(
                f"the endpoint asks to wait {seconds:.0f} s ({reason}); answers are kept, run the same command again "
                "after that"
            )
        if seconds > 0:
            self.open_at = max(self.open_at, asyncio.get_running_loop().time() + seconds)

    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self.open_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(self.open_at, self._wake)
            return
        free = int(self._limit) - self._under_way
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


@dataclass
class Watch:
    """Tells the console when an endpoint does not answer, and when it answers again.

    It is asked again and again, from a thread that need not be the event loop's.
    """

    connection: Connection
    pacer: Pacer
    """Pacer of the calls, whose event loop measures monotonic time."""
    _line_at: float | None = None
    """Time of the last line about what goes on."""
    _outage_since: float | None = None
    """Start of the outage of which the console knows; None if there is none."""

    def look(self, n_waiting: int) -> None:
        """Print a line if there is news, or if the last line is old, while some requests wait for an answer."""
        now, pacer, host = time.monotonic(), self.pacer, self.connection.address.host_and_port
        since, silent_since = pacer.faults_since, pacer.waiting_since
        waiting = "1 request waits" if n_waiting == 1 else f"{n_waiting:,} requests wait"
        if self._outage_since is not None and since is None and pacer.n_answered:
            note(f"{host} answers again, after {now - self._outage_since:.0f} s")
            self._outage_since = self._line_at = None
        elif since is not None and self._is_due(now, since + pacer.patience.fault_seconds):
            self._line_at, self._outage_since = now, self._outage_since or since
            soon = pacer.open_at - now
            note(
                f"no answer from {host} for {now - since:.0f} s: {pacer.last_fault}; {waiting}; "
                f"tried again {f'in {soon:.0f} s' if soon >= 1 else 'now'}, given up after "
                f"{pacer.patience.outage_seconds:g} s; Ctrl-C keeps the answers"
            )
        elif since is None and silent_since is not None:
            due = silent_since + max(pacer.patience.silent_seconds, _LONGEST_WAITS * pacer.longest_wait)
            if self._is_due(now, due):
                self._line_at = now
                note(
                    f"no answer from {host} for {now - silent_since:.0f} s; {waiting}, each up "
                    f"to {self.connection.timeout:g} s; Ctrl-C keeps the answers"
                )

    def _is_due(self, now: float, first: float) -> bool:
        again = 0.0 if self._line_at is None else self._line_at + self.pacer.patience.repeat_seconds
        return now >= max(first, again)


@dataclass(frozen=True)
class Caller:
    """A maker of calls within one event loop, which share a pace and a ledger."""

    client: Client
    pacer: Pacer
    ledger: Ledger

    async def call(self, call: Call) -> Mapping[str, Any]:
        """Send a call, again if it fails, and return the JSON object of the reply.

        Raises:
            FaultError: the call failed too often; its last failure.
            RejectedError: the endpoint refuses the call.
            RunError: the endpoint has stopped answering, or the limit on costs is reached.
        """
        loop, patience = asyncio.get_running_loop(), self.pacer.patience
        began, n_answered, n_tries, n_timeouts = loop.time(), self.pacer.n_answered, 0, 0
        while True:
            try:
                return await self._attempt(call)
            except FaultError as fault:
                # A rate limit concerns all calls, so it does not count as a try of this one.
                n_tries += fault.status != 429
                n_timeouts += fault.timed_out
                others_succeed = self.pacer.n_answered > n_answered
                is_tried_enough = others_succeed or loop.time() - began >= patience.call_seconds
                if (
                    n_timeouts >= patience.n_timeouts
                    or (fault.unusable and not patience.retries_unusable)
                    or (n_tries >= patience.n_tries and is_tried_enough)
                ):
                    if n_tries > 1:
                        fault.reason = f"gave up after {n_tries} tries; the last: {fault.reason}"
                    raise
            await asyncio.sleep(self.pacer.pause(n_tries))

    async def _attempt(self, call: Call) -> Mapping[str, Any]:
        began = await self.pacer.enter()
        try:
            # If the cost stays unknown, the whole reservation counts: a call that was cut off may be billed.
            reserved = cost = await self.ledger.reserve(call)
            self.ledger.n_attempts += 1
            try:
                reply = await self.client.post(call)
                known = self.ledger.cost_of(reply.data)
                cost = reserved if known is None else known
            except FaultError as fault:
                self.ledger.n_attempts -= not fault.sent
                if fault.status is not None or not fault.sent:
                    cost = 0.0
                self.pacer.failed(fault, began)
                raise
            except RejectedError:
                cost = 0.0
                self.pacer.answered(0.0)
                raise
            finally:
                self.ledger.release(reserved, cost)
        finally:
            self.pacer.leave()
        self.pacer.answered(reply.pause_seconds)
        self.ledger.see(reply.data)
        return reply.data  # type: ignore[no-any-return]
