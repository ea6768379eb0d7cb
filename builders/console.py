"""A progress bar on stderr for the builders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Report: TypeAlias = Callable[[str, int, int | None], None]
"""Called with what is being done, how many items are done, and of how many; null where that is not known yet."""


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Show a bar on stderr, removed at the end; silent where stderr is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)

        def report(description: str, completed: int, total: int | None) -> None:
            progress.update(task, description=description, completed=completed, total=total)

        yield report


def silent(description: str, completed: int, total: int | None) -> None:
    """A report that shows nothing."""
