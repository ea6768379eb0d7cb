"""Tells the console when an endpoint does not answer, and when it answers again."""

from __future__ import annotations

import time

from biasboard.ground.progress import note
from evaluators.backends.openai.pacing import Pacer

_PATIENT = 3.0
"""Number of times the longest wait so far that an endpoint may take before it counts as silent."""


class Watch:
    """A watch over one pacer; it is asked again and again, from a thread that need not be the event loop's."""

    def __init__(self, place: str, pacer: Pacer, timeout: float) -> None:
        """Create a watch that has told nothing yet.

        Args:
            place: Host and port of the endpoint, for messages.
            pacer: Pacer of the calls, whose event loop measures monotonic time.
            timeout: Seconds that one attempt may take.
        """
        self._place = place
        self._pacer = pacer
        self._timeout = timeout
        self._told_at: float | None = None
        self._told_faults_since: float | None = None

    def look(self, n_waiting: int) -> None:
        """Print a line if there is news, or if the last news were told long enough ago.

        Args:
            n_waiting: Number of requests that wait for an answer.
        """
        now, pacer = time.monotonic(), self._pacer
        since, silent_since = pacer.faults_since, pacer.waiting_since
        told = self._told_faults_since
        if told is not None and since is None and pacer.n_answered:
            note(f"{self._place} answers again, after {now - told:.0f} s")
            self._told_faults_since = self._told_at = None
        elif since is not None and self._is_due(now, since + pacer.patience.fault_seconds):
            self._told_at, self._told_faults_since = now, told or since
            soon = pacer.next_try_at - now
            note(
                f"no answer from {self._place} for {now - since:.0f} s: {pacer.last_fault}; {_waiting(n_waiting)}; "
                f"tried again {f'in {soon:.0f} s' if soon >= 1 else 'now'}, given up after "
                f"{pacer.patience.outage_seconds:g} s; Ctrl-C keeps the answers"
            )
        elif since is None and silent_since is not None:
            due = silent_since + max(pacer.patience.silent_seconds, _PATIENT * pacer.longest_wait)
            if self._is_due(now, due):
                self._told_at = now
                note(
                    f"no answer from {self._place} for {now - silent_since:.0f} s; {_waiting(n_waiting)}, each up "
                    f"to {self._timeout:g} s; Ctrl-C keeps the answers"
                )

    def _is_due(self, now: float, first: float) -> bool:
        again = 0.0 if self._told_at is None else self._told_at + self._pacer.patience.told_again_seconds
        return now >= max(first, again)


def _waiting(n: int) -> str:
    return "1 request waits" if n == 1 else f"{n:,} requests wait"
