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
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID
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


class Advance(Protocol):
    """A callback that takes the number of items done since its last call."""

    def __call__(self, n: int, /, *, part: str | None = None, earlier: bool = False) -> None:
        """Advance by some items.

        Args:
            n: Number of items.
            part: Name of the part that is being worked on; None if it is the same as before.
            earlier: True if an earlier run did the items, so that they do not count for the pace.
        """


@contextmanager
def progress(label: str, total: int, *, done: int = 0) -> Iterator[Advance]:
    """Show progress through items, and yield a callback that advances it.

    Those already done, for example by an earlier run, are given as ``done``.

    Yields:
        The callback, to call with the number of items done since its last call.
    """
    work = _Work(label, total, done, stays=True)
    with _shown(work) as display:

        def advance(n: int, /, *, part: str | None = None, earlier: bool = False) -> None:
            work.part = work.part if part is None else part
            if earlier:
                display.skip(work, n)
            else:
                display.change(work, label, work.done + n, total)

        yield advance


@contextmanager
def steps(first: str = "starting") -> Iterator[Report]:
    """Show the steps of a job one after the other; none of them remains on a terminal.

    Yields:
        The callback, to call with the name of a step, the number of items done, and the total.
    """
    work = _Work(first, None, 0, stays=False)
    with _shown(work) as display:

        def report(label: str, done: int, total: int | None) -> None:
            display.change(work, label, done, total)

        yield report


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
    with _shown(_Work(label, None, 0, stays=False), silence):
        yield


@dataclass(eq=False, slots=True)
class _Work:
    """A piece of work, and how much of it is done."""

    label: str
    total: int | None
    done: int
    stays: bool
    """True to keep the last state on the terminal when the work has ended."""
    part: str = ""
    """Name of the part that is being worked on; empty if there are no parts."""
    first: int = field(init=False)
    start: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.first = self.done

    def change(self, label: str, done: int, total: int | None) -> None:
        """Set a new state; another label starts another step."""
        if label != self.label:
            self.label, self.start, self.first = label, time.monotonic(), done
        self.done, self.total = done, total

    def skip(self, n: int) -> None:
        """Count items that were done by an earlier run; the pace is measured from now on."""
        if n:
            self.done += n
            self.first, self.start = self.done, time.monotonic()

    @property
    def title(self) -> str:
        """The label, with the part that is being worked on until the work is done."""
        is_done = self.total is not None and self.done >= self.total
        return f"{self.label} ({self.part})" if self.part and not is_done else self.label

    @property
    def line(self) -> str:
        """The state of the work on one line."""
        seconds = time.monotonic() - self.start
        if self.total is None and not self.done and seconds < 1:
            return f"{self.label} ..."
        if self.total is None:
            counted = f" {self.done:,} done," if self.done else ""
            return f"{self.label}:{counted} {duration(seconds)} so far"
        n_new = self.done - self.first
        counted = f"{self.title}: {self.done:,} of {self.total:,}"
        if n_new <= 0:
            return f"{counted}, {duration(seconds)} so far"
        rate = n_new / max(seconds, 1e-9)
        if self.done >= self.total:
            return f"{counted}, {_pace(rate)}, {duration(seconds)} in all"
        return f"{counted}, {_pace(rate)}, {duration((self.total - self.done) / rate)} left"


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


class _Lines:
    """A display that prints a line for every tenth of the items, and whenever nothing was printed for a while."""

    def __init__(self, silence: float) -> None:
        self._works: list[_Work] = []
        self._silence = silence
        self._opened = self._printed = time.monotonic()
        # A single call of a library may take minutes, so a thread watches the time.
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._watch = threading.Thread(target=self._break_silence, name="progress", daemon=True)
        self._watch.start()

    def begin(self, work: _Work) -> None:
        with self._lock:
            self._works.append(work)

    def change(self, work: _Work, label: str, done: int, total: int | None) -> None:
        with self._lock:
            before = work.label, _tenth(work)
            work.change(label, done, total)
            now = time.monotonic()
            is_last = work.stays and total is not None and done >= total and now - work.start >= _LEAST_SECONDS
            is_due = is_last or now - self._printed >= _LEAST_SECONDS
            if (work.label, _tenth(work)) != before and is_due:
                self._print(work)

    def skip(self, work: _Work, n: int) -> None:
        with self._lock:
            work.skip(n)

    def end(self, work: _Work) -> None:
        with self._lock:
            self._works.remove(work)

    def close(self) -> None:
        self._ended.set()
        self._watch.join()

    def _break_silence(self) -> None:
        wait = self._silence
        while not self._ended.wait(wait):
            with self._lock:
                now = time.monotonic()
                silence = longest_silence(now - self._opened, self._silence)
                wait = silence - (now - self._printed)
                if wait <= 0:
                    wait = silence
                    if self._works:
                        self._print(self._works[-1])

    def _print(self, work: _Work) -> None:
        self._printed = time.monotonic()
        print(work.line, file=sys.stderr, flush=True)


def _tenth(work: _Work) -> int | None:
    return None if work.total is None else 10 * work.done // max(work.total, 1)


class _Bars:
    """A display that shows a bar for each work, with the methods of :class:`_Lines`."""

    def __init__(self, console: Console) -> None:
        self._tasks: dict[_Work, TaskID] = {}
        columns = (SpinnerColumn(finished_text=" "), LabelColumn("{task.description}"), BarColumn(), _Count(), _Pace())
        # Standard output is shown above the bars only if it is a terminal too: redirected lines must reach their file.
        self._bars = Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty())
        self._bars.start()

    def begin(self, work: _Work) -> None:
        self._tasks[work] = self._bars.add_task(work.label, total=work.total, completed=work.done)

    def change(self, work: _Work, label: str, done: int, total: int | None) -> None:
        task = self._tasks[work]
        if label != work.label:
            self._bars.reset(task, description=label, total=total, completed=done)
        work.change(label, done, total)
        self._bars.update(task, description=work.title, completed=done, total=total)

    def skip(self, work: _Work, n: int) -> None:
        work.skip(n)
        self._bars.reset(self._tasks[work], description=work.title, total=work.total, completed=work.done)

    def end(self, work: _Work) -> None:
        task = self._tasks.pop(work)
        if work.stays:
            self._bars.stop_task(task)
        else:
            self._bars.remove_task(task)

    def close(self) -> None:
        self._bars.stop()


class _Count(MofNCompleteColumn):
    """A column that shows how many items are done, or nothing if they are not counted."""

    def render(self, task: Task) -> Text:
        """Return the numbers of items."""
        return Text("") if task.total is None and not task.completed else super().render(task)


class _Pace(ProgressColumn):
    """A column that shows the items per second and the time left, or the time so far if that is unknown."""

    def render(self, task: Task) -> Text:
        """Return the items per second and the time left."""
        speed, left = task.finished_speed or task.speed, task.time_remaining
        if task.finished or speed is None or left is None:
            so_far = duration(task.finished_time or task.elapsed or 0.0)
            return Text(so_far if speed is None else f"{_pace(speed)}, {so_far}")
        return Text(f"{_pace(speed)}, {duration(left)} left")


_open: list[_Lines | _Bars] = []
"""The current display of this process, if any: nested work is shown in the same display."""


@contextmanager
def _shown(work: _Work, silence: float = LONGEST_SILENCE) -> Iterator[_Lines | _Bars]:
    is_first = not _open
    if is_first:
        console = Console(stderr=True)
        _open.append(_Bars(console) if console.is_terminal else _Lines(silence))
    display = _open[0]
    display.begin(work)
    try:
        yield display
    finally:
        display.end(work)
        if is_first:
            _open.clear()
            display.close()
