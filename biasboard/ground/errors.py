"""Mistakes of users and signals as exceptions, which a command line tells on one line instead of a traceback.

BiasboardError
 +- DataError          a file or value breaks its contract
 +- ConfigError        a combination of options cannot work
 +- MissingExtraError  a library of an optional extra is not installed
 +- RunError           a run could not finish (too many failures, or another process is using it)

What Ctrl-C, SIGTERM and SIGHUP do: a command says how to continue, and ends with the status of the signal.

Until a command begins, nothing was asked or written, and :func:`stop_at_once` ends the process in the middle of an
import. From then on :func:`stoppable` makes an exception of the signal, so that files are closed and stores committed.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType

from biasboard.ground.plain_text import without_middle


class BiasboardError(Exception):
    """A mistake of the user. The message says what is wrong, where, with which value, and how to fix it."""

    def __str__(self) -> str:
        """Return the message, without its middle if it is too long to be read; the way out stands at its end."""
        return without_middle(super().__str__())


class DataError(BiasboardError):
    """A file or value that breaks its contract."""


class ConfigError(BiasboardError):
    """A combination of options that cannot work."""


class MissingExtraError(BiasboardError):
    """A library of an optional extra that is not installed."""


class RunError(BiasboardError):
    """A run that could not finish. The answers it received are kept."""


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a library of an optional extra; if it is missing, say which extra to install.

    Raises:
        MissingExtraError: the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # Not the library itself is missing but one of its dependencies, which the original message names.
        raise MissingExtraError(
            f"'{module}' is not installed; install the extra '{extra}': pip install 'biasboard[{extra}]'"
        ) from error


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
