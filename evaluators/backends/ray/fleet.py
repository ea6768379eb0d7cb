"""Hands blocks of requests to the workers of a cluster, and gives what a dead worker left to another one.

Each worker has one block in hand and one waiting, so that it never idles and little is lost if it dies. After any
failure in a block, its worker is replaced: the engine may be broken, and a new worker may run on another machine.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from biasboard.ground.errors import ConfigError, MissingExtraError, RunError
from evaluators.backend import Answers, Backend, Events, Request, Response, Runtime, Sent, TokenCount
from evaluators.backends.ray.cluster import Call, Cluster, Ended, Lost, Needs, RemoteWorker
from evaluators.backends.ray.worker import Counted, Finished, Here, Message, Opened, Progress, Trouble, versions
from evaluators.models.blocks import in_run, plan_blocks

logger = logging.getLogger(__name__)

MOST_TRIES = 3
"""Number of tries of a block before its requests fail, and of workers in a row for one seat before it is given up."""
_IN_HAND = 2
_PATIENCE_SECONDS = 60.0


@dataclass(eq=False)
class _Block:
    places: list[int]
    """Indices of the requests among all requests of the run."""
    left: set[int]
    """Indices of the requests that still need an answer."""
    n_failures: int = 0


@dataclass(eq=False)
class _Seat:
    """A seat for one worker, which may be replaced."""

    number: int
    worker: RemoteWorker | None = None
    opening: Call | None = None
    machine: str = ""
    in_hand: deque[tuple[Call, _Block]] = field(default_factory=deque)
    n_failures: int = 0
    """Number of workers in a row that were lost before they had opened the model."""

    @property
    def call(self) -> Call | None:
        """The call that the worker is busy with, as it handles one at a time; None if it is idle."""
        return self.opening or (self.in_hand[0][0] if self.in_hand else None)


class Fleet:
    """Workers with the same model. The first starts at once, the others with the first request."""

    def __init__(self, cluster: Cluster, opener: Callable[[], Backend], needs: Needs, n_workers: int) -> None:
        """Start the first worker, and wait until it has opened its backend.

        Raises:
            ConfigError: the worker refuses the model or an option.
            MissingExtraError: a library is missing on the worker's machine.
            RunError: each of several workers in a row dies.
        """
        self._cluster, self._opener, self._needs = cluster, opener, needs
        self._seats = [_Seat(number) for number in range(n_workers)]
        self._n_failures = 0
        self._first: Opened | None = None
        self._packages: dict[str, str] = {}
        self.runtime = Runtime()
        try:
            self.opened = self._wait_for_first()
        except BaseException:
            self.close()
            raise
        self._note(self._seats[0], self.opened.runtime)

    def _wait_for_first(self) -> Opened:
        while True:
            self._start(self._seats[:1])
            self._advance(deque())
            if self._first is not None:
                return self._first

    def close(self) -> None:
        """End all workers."""
        for seat in self._seats:
            self._dismiss(seat)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        """Count the tokens that all requests would take, on one worker; return None if it cannot tell.

        Raises:
            RunError: counting failed, or the worker is gone.
        """
        total = TokenCount(0, 0)
        for places in self._plan(requests):
            worker = self._seats[0].worker
            said = None if worker is None else worker.count_tokens([requests[place] for place in places]).next()
            if isinstance(said, Trouble):
                raise said.kind(said.reason)
            if not isinstance(said, Counted):
                raise RunError("the worker that counted tokens is gone; run the same command again")
            if said.tokens is None:
                return None
            total = TokenCount(total.n_prompt + said.tokens.n_prompt, total.n_completion + said.tokens.n_completion)
        return total

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests; see ``Backend.ask``.

        Raises:
            ConfigError: a worker refuses what is asked.
            MissingExtraError: a library is missing on a worker's machine.
            RunError: no worker is left, too many tries in a row failed, or the workers differ in versions or model.
        """
        blocks = [_Block(places, set(missing.intersection(places))) for places in self._plan(requests)]
        waiting = deque(block for block in blocks if block.left)
        n_left = len(waiting)
        since = time.perf_counter()
        try:
            while n_left:
                self._start(self._seats[:n_left])
                self._hand_out(waiting, requests)
                for event in self._advance(waiting):
                    if isinstance(event, _Block):
                        n_left -= 1
                    elif isinstance(event, Answers):
                        now = time.perf_counter()
                        yield event._replace(seconds=now - since)
                        since = now
                    else:
                        yield event
        finally:
            # A worker that is still busy was given up, and would keep the next requests waiting.
            for seat in self._seats:
                if seat.in_hand:
                    self._dismiss(seat)

    def _plan(self, requests: Sequence[Request]) -> list[list[int]]:
        return plan_blocks(requests, self.opened.limits)

    def _start(self, seats: Sequence[_Seat]) -> None:
        for seat in seats:
            if seat.worker is None and seat.n_failures < MOST_TRIES:
                seat.worker = self._cluster.start(self._needs)
                seat.opening = seat.worker.open(self._opener)
        if not any(seat.worker for seat in self._seats):
            raise RunError(
                f"no worker is left: {MOST_TRIES} in a row died while they opened the model; if memory ran "
                "out, give fewer --workers or more --worker-cpus. What was answered is kept"
            )

    def _hand_out(self, waiting: deque[_Block], requests: Sequence[Request]) -> None:
        for n_before in range(_IN_HAND):
            # Every worker gets a first block before any worker gets a second.
            for seat in self._seats:
                if waiting and seat.worker and not seat.opening and len(seat.in_hand) == n_before:
                    block = waiting.popleft()
                    asked = [requests[place] for place in block.places]
                    wanted = frozenset(index for index, place in enumerate(block.places) if place in block.left)
                    seat.in_hand.append((seat.worker.answer(asked, wanted), block))

    def _advance(self, waiting: deque[_Block]) -> list[Sent | Answers | _Block]:
        """Wait until workers send messages, and return their events and the blocks that are done."""
        seats = {call: seat for seat in self._seats if (call := seat.call) is not None}
        ready = self._cluster.wait(list(seats), _PATIENCE_SECONDS)
        if not ready and not any(seat.machine for seat in self._seats):
            logger.warning(
                "waiting for a worker: each needs %s, and the cluster has room for %d; if that will not change, stop, "
                "and give other --worker-cpus or --worker-gpus",
                self._needs,
                self._cluster.room(self._needs),
            )
        return [event for call in ready for event in self._take(seats[call], call.next(), waiting)]

    def _take(
        self, seat: _Seat, message: Message | Lost | Ended, waiting: deque[_Block]
    ) -> list[Sent | Answers | _Block]:
        if seat.opening is not None:
            self._take_opening(seat, message)
            return []
        block = seat.in_hand[0][1]
        if isinstance(message, Progress):
            self._note(seat, message.runtime)
            events: list[Sent | Answers | _Block] = [in_run(event, block.places) for event in message.events]
            for event in events:
                block.left.difference_update(event.responses if isinstance(event, Answers) else ())
            return events
        if isinstance(message, Trouble):
            if message.kind in (ConfigError, MissingExtraError):
                raise message.kind(message.reason)
            return self._failed(seat, message.reason, waiting)
        if isinstance(message, Lost):
            return self._failed(seat, f"a worker was lost: {message.reason}", waiting)
        if block.left or not isinstance(message, Finished):
            return self._failed(seat, "a worker left requests without an answer", waiting)
        seat.in_hand.popleft()
        self._n_failures = 0
        return [block]

    def _take_opening(self, seat: _Seat, message: Message | Lost | Ended) -> None:
        if isinstance(message, Here):
            seat.machine = message.machine
        elif isinstance(message, Opened):
            seat.opening, seat.n_failures = None, 0
            first = self._first or message
            self._first = first
            self._refuse_difference(seat, versions(), message.versions)
            model = {"model identity": first.model.identity_sha256}
            self._refuse_difference(seat, model, {"model identity": message.model.identity_sha256})
        elif isinstance(message, Trouble):
            where = "" if self._cluster.is_local else f"worker on {seat.machine}: "
            raise message.kind(f"{where}{message.reason}")
        else:
            reason = message.reason if isinstance(message, Lost) else "it ended"
            logger.warning("a worker was lost while it opened the model: %s", reason)
            seat.n_failures += 1
            self._dismiss(seat)

    def _failed(self, seat: _Seat, reason: str, waiting: deque[_Block]) -> list[Sent | Answers | _Block]:
        """End the worker and hand its blocks to others.

        After ``MOST_TRIES`` tries of the block in which it failed, the requests of that block fail.

        Returns:
            The failed responses and the block if there were too many tries; else nothing.

        Raises:
            RunError: too many tries in a row failed, whatever was asked.
        """
        _, block = seat.in_hand.popleft()
        waiting.extendleft(other for _, other in reversed(seat.in_hand))
        self._dismiss(seat)
        block.n_failures += 1
        self._n_failures += 1
        if self._n_failures > MOST_TRIES * len(self._seats):
            raise RunError(
                f"{self._n_failures} tries in a row failed, whatever was asked; the last: {reason}. What was answered "
                "is kept: mend the cause and run the same command again"
            )
        if block.n_failures < MOST_TRIES:
            logger.warning("%s; %d requests are asked again", reason, len(block.left))
            waiting.appendleft(block)
            return []
        failed = Response(status="failed", error=f"failed on {MOST_TRIES} workers one after the other: {reason}")
        responses = dict.fromkeys(sorted(block.left), failed)
        return [Answers(responses, 0.0), block]

    def _dismiss(self, seat: _Seat) -> None:
        if seat.worker is not None:
            seat.worker.stop()
        seat.worker, seat.opening, seat.machine = None, None, ""
        seat.in_hand.clear()

    def _note(self, seat: _Seat, runtime: Runtime) -> None:
        """Note where the last answers came from, and refuse a worker whose package versions differ."""
        packages = dict(runtime.packages)
        self._packages = self._packages or packages
        if packages:
            self._refuse_difference(seat, self._packages, packages)
        settings = {**runtime.settings, "cluster": "ray", "workers": str(len(self._seats))}
        self.runtime = replace(runtime, packages={**packages, "ray": self._cluster.version}, settings=settings)

    def _refuse_difference(self, seat: _Seat, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                raise RunError(
                    f"the worker on {seat.machine} has {name} {found.get(name)}, others {expected.get(name)}: their "
                    "answers may differ; install the same on every machine. What was answered is kept"
                )
