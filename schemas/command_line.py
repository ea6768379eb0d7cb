"""Turns errors into the exit of a command: one line for a mistake of the user, a stack trace only for a bug."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from schemas.errors import BiasboardError, RunError

EXIT_ERROR = 1
"""Exit status for bad input; nothing was written."""
EXIT_RUN_FAILED = 3
"""Exit status for a run that could not finish; its answers so far are kept. (Status 2 is a wrong option.)"""
EXIT_INTERRUPTED = 130


@contextmanager
def one_line_errors(interrupted: str = "stopped; nothing was written") -> Iterator[None]:
    """Turn a mistake of the user into one line on standard error and an exit status.

    This context manager can also be used as a decorator.

    Args:
        interrupted: Line to print after Ctrl-C, which says what was kept or written.

    Raises:
        typer.Exit: a mistake was made, the file system failed, or the user pressed Ctrl-C.
    """
    try:
        yield
    except BiasboardError as error:
        _end(f"error: {error}", EXIT_RUN_FAILED if isinstance(error, RunError) else EXIT_ERROR, error)
    except OSError as error:
        where = error.filename or "file system"
        reason = error.strerror or str(error)
        _end(f"error: {where}: {reason}; choose a place that can be read and written", EXIT_ERROR, error)
    except KeyboardInterrupt as error:
        _end(interrupted, EXIT_INTERRUPTED, error)


def _end(line: str, status: int, cause: BaseException) -> None:
    print(line, file=sys.stderr)
    raise typer.Exit(status) from cause
