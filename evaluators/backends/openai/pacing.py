"""How many calls are under way at a time: as many as the endpoint bears, found out while asking.

One more per round as long as answers come, half as many when it is overloaded (429, 5xx, time-outs), as TCP does it.
While nothing is answered at all, one call at a time looks whether the endpoint is back, after pauses that grow and are
drawn at random, so that many clients do not come back together; the first answer opens up again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import numpy as np

from evaluators.backends.openai.client import FaultError
from schemas.errors import RunError

_START = 8
_SHORTEST_PAUSE = 0.25
_FAULTS_IN_A_ROW = 4
"""Faults without an answer between them, after which the endpoint counts as down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When to give up."""

    n_tries: int = 8
    """Of one call."""
    call_seconds: float = 60.0
    """For which a call is tried, where no other is answered either."""
    outage_seconds: float = 300.0
    """Without any answer, after which the run ends."""
    longest_pause: float = 4.0
    """Between two tries. It bounds how late the end of a fault is noticed."""
    longest_retry_after: float = 900.0
    """An endpoint that asks to wait longer ends the run."""


class Pacer:
    """Lets calls through; belongs to one event loop."""

    def __init__(self, most: int, patience: Patience, rng: np.random.Generator) -> None:
        """Start with a few.

        Args:
            most: Calls under way at a time.
            patience: When to give up.
            rng: Draws pauses.
        """
        self.patience = patience
        self.n_answered = 0
        self.highest = 0
        """Calls that were under way at a time at most."""
        self._most = most
        self._rng = rng
        self._limit = float(min(most, _START))
        self._threshold = float(most)
        self._healthy = self._limit
        self._under_way = 0
        self._open_at = 0.0
        self._lowered_at = -1.0
        self._n_faults = 0
        self._n_holds = 0
        self._held_at = -1.0
        self._failing_since: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self) -> float:
        """Wait for a turn; returns the time at which it came."""
        loop = asyncio.get_running_loop()
        while self._under_way >= int(self._limit) or loop.time() < self._open_at:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append(turn)
            self._wake()
            await turn
        self._under_way += 1
        self.highest = max(self.highest, self._under_way)
        return loop.time()

    def leave(self) -> None:
        """A call is over, one way or another."""
        self._under_way -= 1
        self._wake()

    def answered(self, pause_seconds: float) -> None:
        """The endpoint answered, and allows nothing more for so long."""
        self.n_answered += 1
        self._n_faults = self._n_holds = 0
        self._failing_since = None
        # Up to half of what went well before, every answer makes room for one more; after that, every round does.
        self._limit += 1.0 if self._limit < self._threshold else 1.0 / self._limit
        self._limit = min(self._limit, float(self._most))
        self._healthy = max(self._limit, self._healthy if self._limit < self._threshold else 0.0)
        self._hold(pause_seconds)
        self._wake()

    def failed(self, fault: FaultError, began: float) -> None:
        """An attempt failed.

        Args:
            fault: How.
            began: When the attempt was let through.

        Raises:
            RunError: the endpoint has been silent for too long, or asks for too long a pause.
        """
        now = asyncio.get_running_loop().time()
        self._failing_since = self._failing_since or now
        if fault.retry_after is not None:
            if fault.retry_after > self.patience.longest_retry_after:
                raise RunError(
                    f"the endpoint asks to wait {fault.retry_after:.0f} s ({fault.reason}); answers are kept, run the "
                    "same command again after that"
                )
            self._hold(fault.retry_after)
            # Time that the endpoint asked for is no silence.
            self._failing_since = max(self._failing_since, self._open_at)
        if now - self._failing_since > self.patience.outage_seconds:
            raise RunError(
                f"the endpoint has answered nothing for {self.patience.outage_seconds:g} s; last fault: "
                f"{fault.reason}. Answers are kept: run the same command again when it is back"
            )
        if not fault.overload:
            return
        self._n_faults += 1
        # Calls that were under way together fail together: that is one sign, not many.
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
        """Seconds before another try: anything up to a bound that doubles."""
        bound = min(self.patience.longest_pause, _SHORTEST_PAUSE * 2.0 ** min(n_tries, 16))
        return float(self._rng.uniform(0, bound))

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
