"""What Ctrl-C, SIGTERM and SIGHUP do: a command says how to continue, and ends with the status of the signal.

Until a command begins, nothing was asked or written, and :func:`stop_at_once` ends the process in the middle of an
import. From then on :func:`stoppable` makes an exception of the signal, so that files are closed and stores committed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_BEFORE = b"stopped before anything was asked or written; repeat the same command\n"


class Stopped(KeyboardInterrupt):
    """A signal that ends the process."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def status_of(error: KeyboardInterrupt) -> int:
    """Return the exit status after a signal, which is that of shells: 128 and its number."""
    return 128 + (error.number if isinstance(error, Stopped) else signal.SIGINT)


def stop_at_once() -> None:
    """From now on, end the process with a line when a signal comes, for the time before a command begins."""
    for number in _SIGNALS:
        # Whoever started us may have wanted it to be ignored, as nohup does.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise :class:`Stopped` when a signal comes; outside the main thread, leave signals alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() != owner:
            # A forked worker is to die from the signal, as it would without us.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        raise Stopped(number)

    # Another handler than these is that of a program which calls us.
    usual = (_end, signal.SIG_DFL, signal.default_int_handler)
    before = {number: handler for number in _SIGNALS if (handler := signal.getsignal(number)) in usual}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is _end else handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, _BEFORE)
    os._exit(128 + number)
