"""How the builders' command lines talk: one line per mistake, a progress bar on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from schemas.errors import BiasboardError

Report: TypeAlias = Callable[[str, int, int | None], None]
"""Called with what is being done, how many items are done, and of how many; null where that is not known yet."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a mistake of the user into one line on stderr and exit code 1; our own bugs keep their stack trace."""
    try:
        yield
    except BiasboardError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    except OSError as error:
        where = error.filename or "file system"
        typer.echo(f"error: {where}: {error.strerror or error}; choose a place that can be read and written", err=True)
        raise typer.Exit(1) from error


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
