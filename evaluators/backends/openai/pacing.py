"""Adapts the number of calls under way at a time to what the endpoint can bear.

The limit works like TCP's congestion control: it grows as long as replies come, at last by one per round, and is halved
when the endpoint is overloaded (429, 5xx, time-outs). While nothing is answered at all, single calls test if the
endpoint is back. The pauses between them grow and are random, so that many clients do not return together. The first
reply lets the limit grow again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import numpy as np

from biasboard.ground.errors import RunError
from evaluators.backends.openai.client import FaultError

_START = 8
_SHORTEST_PAUSE = 0.25
_FAULTS_IN_A_ROW = 4
"""Number of faults without a reply between them after which the endpoint counts as down."""


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
    outage_seconds: float = 300.0
    """Seconds without any reply after which the run ends."""
    longest_pause: float = 4.0
    """Longest pause between two tries in seconds, and so the longest delay until the end of a fault is noticed."""
    longest_retry_after: float = 900.0
    """Longest wait in seconds that the endpoint may ask for; a longer one ends the run."""
    fault_seconds: float = 3.0
    """Seconds of faults alone after which the console is told."""
    silent_seconds: float = 8.0
    """Seconds without an answer or a fault after which the console is told."""
    told_again_seconds: float = 10.0
    """Seconds after which the console is told again."""


class Pacer:
    """A limiter of the calls under way within one event loop."""

    def __init__(self, most: int, patience: Patience, rng: np.random.Generator) -> None:
        """Create a pacer that allows a few calls at first.

        Args:
            most: Largest number of calls under way at a time.
            patience: Limits after which to give up.
            rng: Random generator that draws the pauses.
        """
        self.patience = patience
        self.n_answered = 0
        self.highest = 0
        """Largest number of calls that have been under way at a time."""
        self._most = most
        self._rng = rng
        self._limit = float(min(most, _START))
        self._threshold = float(most)
        self._healthy = self._limit
        self._under_way = 0
        self._open_at = 0.0
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
        while self._under_way >= int(self._limit) or loop.time() < self._open_at:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append(turn)
            self._wake()
            await turn
        if self._under_way == 0:
            self.waiting_since = loop.time()
        self._under_way += 1
        self.highest = max(self.highest, self._under_way)
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
        self._check_wait(pause_seconds, "its rate limit is used up")
        self._hold(pause_seconds)
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
            self._check_wait(fault.retry_after, fault.reason)
            self._hold(fault.retry_after)
            # A wait that the endpoint asked for does not count as an outage.
            self._failing_since = max(self._failing_since, self._open_at)
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
            self._hold(self.pause(self._n_holds))
            self._n_holds += 1
            self._held_at = now

    def pause(self, n_tries: int) -> float:
        """Draw the seconds to wait before another try, uniformly up to a bound that doubles with every try."""
        bound = min(self.patience.longest_pause, _SHORTEST_PAUSE * 2.0 ** min(n_tries, 16))
        return float(self._rng.uniform(0, bound))

    def _check_wait(self, seconds: float, reason: str) -> None:
        if seconds > self.patience.longest_retry_after:
            raise RunError(
                f"the endpoint asks to wait {seconds:.0f} s ({reason}); answers are kept, run the same command again "
                "after that"
            )

    @property
    def next_try_at(self) -> float:
        """The time of the event loop at which the next call may start."""
        return self._open_at

    def _hold(self, seconds: float) -> None:
        if seconds > 0:
            self._open_at = max(self._open_at, asyncio.get_running_loop().time() + seconds)

    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._open_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(self._open_at, self._wake)
            return
        free = int(self._limit) - self._under_way
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
