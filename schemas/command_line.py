"""Command lines: commands that are loaded when they are called, and errors of one line."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from schemas.errors import BiasboardError, ConfigError, RunError

EXIT_ERROR = 1
"""Exit status for bad input; nothing was written."""
EXIT_RUN_FAILED = 3
"""Exit status for a run that could not finish; its answers so far are kept. (Status 2 is a wrong option.)"""
EXIT_INTERRUPTED = 130
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
"""Control characters, line breaks, and bytes of a name that are not UTF-8, which Python holds as lone surrogates."""


class Place(NamedTuple):
    """A command that is imported when it is called."""

    place: str
    """``module:function``, or ``module:application`` for a group of commands."""
    summary: str
    """First sentence of its help, so that the list of commands is printed without importing any."""


def command_group(help_text: str, commands: Mapping[str, Place]) -> typer.Typer:
    """Return an application whose commands are imported when they are called, so that each starts quickly.

    Args:
        help_text: The help of the application.
        commands: Place of each command by name.
    """

    class Group(TyperGroup):
        """A group that imports no command before it is called."""

        lists_only = False

        def format_help(self, ctx: Any, formatter: Any) -> None:
            """Print the help of the group from the summaries of its commands."""
            self.lists_only = True
            super().format_help(ctx, formatter)
            self.lists_only = False

        def list_commands(self, ctx: Any) -> list[str]:
            """Return the names of the commands."""
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """Import a command; None if there is none of this name."""
            if cmd_name not in commands:
                return None
            if self.lists_only:
                return TyperCommand(cmd_name, help=commands[cmd_name].summary)
            module, _, attribute = commands[cmd_name].place.partition(":")
            found = getattr(importlib.import_module(module), attribute)
            if not isinstance(found, typer.Typer):
                function, found = found, typer.Typer(add_completion=False)
                found.command(cmd_name)(function)
            command = typer.main.get_command(found)
            command.name = cmd_name
            return command

    application = typer.Typer(
        cls=Group, help=help_text, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )

    @application.callback()
    def group() -> None:
        """Make a group of the application: typer takes one that has a callback for a group."""

    return application


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
        _check_arguments()
        yield
    except BiasboardError as error:
        _end(f"error: {error}", EXIT_RUN_FAILED if isinstance(error, RunError) else EXIT_ERROR, error)
    except OSError as error:
        where = error.filename or "file system"
        reason = error.strerror or str(error)
        _end(f"error: {where}: {reason}; choose a place that can be read and written", EXIT_ERROR, error)
    except KeyboardInterrupt as error:
        _end(interrupted, EXIT_INTERRUPTED, error)


def _check_arguments() -> None:
    """Check that every argument can be printed and stored.

    Raises:
        ConfigError: an argument is not UTF-8 or holds a control character.
    """
    for argument in sys.argv[1:]:
        if _CONTROL.search(argument):
            raise ConfigError(f"argument {argument!a}: is not UTF-8 or holds a control character; choose another name")


def _end(line: str, status: int, cause: BaseException) -> None:
    # A name in the message may hold a line break or change the colours of the terminal.
    print(_CONTROL.sub(lambda sign: ascii(sign[0])[1:-1], line), file=sys.stderr)
    raise typer.Exit(status) from cause
