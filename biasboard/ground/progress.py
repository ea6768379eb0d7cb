"""Shows on standard error what a command is doing and how long it will take.

On a terminal it shows bars of rich. Elsewhere, as in the log of a job, rich would print nothing before the end, so we
print lines of our own: at first one every ten seconds, later fewer, and for quick work none.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task
from rich.progress import TextColumn as LabelColumn
from rich.text import Text

from biasboard.ground.plain_text import escaped, without_keys

LONGEST_SILENCE = 10.0
"""Largest number of seconds between two lines at first, if standard error is not a terminal."""
_LATER_SILENCE = 300.0
"""Largest number of seconds between two lines at any time: some hosts end a job that prints nothing for ten minutes."""
_LEAST_SECONDS = 5.0
"""Smallest number of seconds between two lines; work that takes less prints none, or 60 quick runs would print 60."""

Report: TypeAlias = Callable[[str, int, int | None], None]
"""Function that is called with the current step, the number of items done, and their total (None if unknown)."""
_open: list[_Display] = []
"""The current display of this process, if any: nested work is shown in the same display."""


class Advance(Protocol):
    """A callback that takes the number of items done since its last call."""

    def __call__(self, n: int, /, *, earlier: bool = False) -> None:
        """Advance by some items; those that an earlier run did do not count for the pace."""


@contextmanager
def progress(label: str, total: int, *, done: int = 0) -> Iterator[Advance]:
    """Show progress through items, and yield a callback that advances it.

    Those already done, for example by an earlier run, are given as ``done``.

    Yields:
        The callback, to call with the number of items done since its last call.
    """
    with _shown(label, total, done, stays=True) as (display, task):

        def advance(n: int, /, *, earlier: bool = False) -> None:
            display.change(task, label, int(task.completed) + n, total, is_earlier=earlier and n > 0)

        yield advance


@contextmanager
def steps(first: str = "starting") -> Iterator[Report]:
    """Show the steps of a job one after the other; none of them remains on a terminal.

    Yields:
        The callback, to call with the name of a step, the number of items done, and the total.
    """
    with _shown(first) as (display, task):
        yield partial(display.change, task)


def note(text: str) -> None:
    """Print a line on standard error, above the bar if one is shown."""
    # While a bar is shown, it replaces sys.stderr and prints above itself whatever is written there.
    # Escaped, because an untrusted text may hold escape sequences of the terminal.
    print(escaped(without_keys(text)), file=sys.stderr, flush=True)


def silent(description: str, completed: int, total: int | None) -> None:
    """Ignore a report of progress."""


@contextmanager
def working(label: str, *, silence: float = LONGEST_SILENCE) -> Iterator[None]:
    """Show that something of unknown length is being done.

    Args:
        label: Name of the work, such as "loading MODEL".
        silence: Largest number of seconds between two lines, unless other work is shown already.
    """
    with _shown(label, silence=silence):
        yield


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> [duration(seconds) for seconds in (0.4, 59, 150, 3600, 100_000)]
    ['0 s', '59 s', '2 min 30 s', '1 h 0 min', '27 h 46 min']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _pace(per_second: float) -> str:
    """Return the speed of work in items per second, or per minute if it is slow.

    >>> _pace(1234.56), _pace(0.05)
    ('1,234.6 items/s', '3.0 items/min')
    """
    return f"{per_second:,.1f} items/s" if per_second >= 1 else f"{60 * per_second:.1f} items/min"


def longest_silence(seconds: float, first: float = LONGEST_SILENCE) -> float:
    """Return after how many seconds without a line one is printed, some time after the start, and at first.

    >>> [longest_silence(seconds) for seconds in (5, 600, 36_000)]
    [10.0, 75.0, 300.0]
    """
    return max(first, min(_LATER_SILENCE, seconds / 8))


class _Display(Progress):
    """All work of this process: a bar for each on a terminal, elsewhere a line for every tenth and after a silence."""

    def __init__(self, silence: float) -> None:
        console = Console(stderr=True)
        columns = (SpinnerColumn(finished_text=" "), LabelColumn("{task.description}"), BarColumn(), _Count(), _Pace())
        # Standard output is shown above the bars only if it is a terminal too: redirected lines must reach their file.
        to_terminal = sys.stdout.isatty()
        super().__init__(*columns, console=console, redirect_stdout=to_terminal, disable=not console.is_terminal)
        self._silence = silence
        self._opened = self._printed = time.monotonic()
        self._changing, self._ended = threading.RLock(), threading.Event()
        # A single call of a library may take minutes, so a thread watches the time.
        self._watch = threading.Thread(target=self._break_silence, name="progress", daemon=True)
        if self.disable:
            self._watch.start()
        else:
            self.start()

    def change(self, task: Task, label: str, done: int, total: int | None, *, is_earlier: bool = False) -> None:
        """Set the state of some work: another label starts another step; earlier items do not count for the pace."""
        with self._changing:
            before = task.fields["label"], _tenth(task)
            task.total = total
            if label != task.fields["label"] or is_earlier:
                task.fields |= {"label": label, "first": done}
                self.reset(task.id, completed=done)
            is_done = total is not None and done >= total
            self.update(task.id, description=label, completed=done)
            is_last = task.fields["stays"] and is_done and (task.elapsed or 0.0) >= _LEAST_SECONDS
            is_due = is_last or time.monotonic() - self._printed >= _LEAST_SECONDS
            if self.disable and is_due and (label, _tenth(task)) != before:
                self._print(task)

    def end(self, task: Task) -> None:
        """End some work; its last bar stays if it is to."""
        with self._changing:
            if task.fields["stays"] and not self.disable:
                self.stop_task(task.id)
            else:
                self.remove_task(task.id)

    def close(self) -> None:
        if not self.disable:
            self.stop()
            return
        self._ended.set()
        self._watch.join()

    def _break_silence(self) -> None:
        wait = self._silence
        while not self._ended.wait(wait):
            with self._changing:
                now = time.monotonic()
                silence = longest_silence(now - self._opened, self._silence)
                wait = silence - (now - self._printed)
                if wait <= 0:
                    wait = silence
                    for task in self.tasks[-1:]:
                        self._print(task)

    def _print(self, task: Task) -> None:
        self._printed = time.monotonic()
        print(_line(task), file=sys.stderr, flush=True)


def _tenth(task: Task) -> float | None:
    return None if task.total is None else 10 * task.completed // max(task.total, 1)


def _line(task: Task) -> str:
    seconds, done = task.elapsed or 0.0, int(task.completed)
    if task.total is None and not done and seconds < 1:
        return f"{task.description} ..."
    if task.total is None:
        counted = f" {done:,} done," if done else ""
        return f"{task.description}:{counted} {duration(seconds)} so far"
    counted = f"{task.description}: {done:,} of {task.total:,}"
    rate = (done - task.fields["first"]) / max(seconds, 1e-9)
    if rate <= 0:
        return f"{counted}, {duration(seconds)} so far"
    if done >= task.total:
        return f"{counted}, {_pace(rate)}, {duration(seconds)} in all"
    return f"{counted}, {_pace(rate)}, {duration((task.total - done) / rate)} left"


class _Count(MofNCompleteColumn):
    """A column that shows how many items are done, or nothing if they are not counted."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None and not task.completed else super().render(task)


class _Pace(ProgressColumn):
    """A column that shows the items per second and the time left, or the time so far if that is unknown."""

    def render(self, task: Task) -> Text:
        speed, left = task.finished_speed or task.speed, task.time_remaining
        if task.finished or speed is None or left is None:
            so_far = duration(task.finished_time or task.elapsed or 0.0)
            return Text(so_far if speed is None else f"{_pace(speed)}, {so_far}")
        return Text(f"{_pace(speed)}, {duration(left)} left")


@contextmanager
def _shown(
    label: str, total: int | None = None, done: int = 0, *, stays: bool = False, silence: float = LONGEST_SILENCE
) -> Iterator[tuple[_Display, Task]]:
    """Show some work, whose last bar stays on a terminal if it is to, and yield it with its display."""
    is_first = not _open
    if is_first:
        _open.append(_Display(silence))
    display = _open[0]
    number = display.add_task(label, total=total, completed=done, label=label, first=done, stays=stays)
    task = next(one for one in display.tasks if one.id == number)
    try:
        yield display, task
    finally:
        display.end(task)
        if is_first:
            _open.clear()
            display.close()
