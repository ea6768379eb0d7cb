"""A progress bar on stderr for the builders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Report: TypeAlias = Callable[[str, int, int | None], None]
"""Function that is called with the current step, the number of items done, and their total (None if unknown)."""


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Show a progress bar on stderr and remove it at the end; show nothing if stderr is not a terminal.

    Yields:
        Function that updates the bar.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)

        def report(description: str, completed: int, total: int | None) -> None:
            progress.update(task, description=description, completed=completed, total=total)

        yield report


def silent(description: str, completed: int, total: int | None) -> None:
    """Ignore a progress report."""
