"""Shows progress on standard error: as a bar on a terminal, elsewhere as a line for every tenth of the items."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class Advance(Protocol):
    """A callback that is told how many items were done since its last call."""

    def __call__(self, n: int, /) -> None:
        """Advance by ``n`` items."""


class _Rate(ProgressColumn):
    """A column that shows the items per second."""

    def render(self, task: Task) -> Text:
        """Return the items per second, or nothing before they are known."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f} items/s")


@contextmanager
def progress(label: str, total: int, *, done: int = 0) -> Iterator[Advance]:
    """Show progress, and yield a callback that advances it.

    Args:
        label: Text in front of the progress.
        total: Number of items in all.
        done: Number of items that are done already, for example by an earlier run.

    Yields:
        The callback, to be called with the number of items that were done since its last call.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(label, total=total, completed=done)
            yield lambda n, /: bar.update(task, advance=n)
    else:
        yield _Lines(label, total, done)


def note(text: str) -> None:
    """Print a line on standard error, above the bar if one is shown."""
    # A bar replaces sys.stderr while it is shown, and puts above itself what is written there.
    print(text, file=sys.stderr, flush=True)


_LEAST_SECONDS = 2.0
"""Least number of seconds between two lines, so that quick work prints only its last line."""


class _Lines:
    """A callback that prints a line for every tenth of the items, unless it has only just printed one."""

    def __init__(self, label: str, total: int, done: int) -> None:
        self._label, self._total, self._done, self._first = label, total, done, done
        self._start = self._printed = time.monotonic()

    def __call__(self, n: int, /) -> None:
        tenth = 10 * self._done // max(self._total, 1)
        self._done += n
        now = time.monotonic()
        is_due = now - self._printed >= _LEAST_SECONDS or self._done >= self._total
        if 10 * self._done // max(self._total, 1) > tenth and is_due:
            self._printed = now
            seconds = max(now - self._start, 1e-9)
            rate = (self._done - self._first) / seconds
            left = (self._total - self._done) / rate
            print(
                f"{self._label}: {self._done:,} of {self._total:,}, {rate:,.1f} items/s, {left:,.0f} s left",
                file=sys.stderr,
            )
