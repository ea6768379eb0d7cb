"""Command lines: commands that are loaded when they are called, and errors of one line."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from biasboard.ground.errors import BiasboardError, ConfigError, RunError
from biasboard.ground.plain_text import escaped

EXIT_ERROR = 1
"""Exit status for bad input, or for a check that found a problem; nothing was written."""
EXIT_RUN_FAILED = 3
"""Exit status for a run that could not finish; its answers so far are kept. (Status 2 is a wrong option.)"""
EXIT_INTERRUPTED = 130
EXIT_STATUS = (
    "Exit status: 0 done; 1 bad input, or a check found a problem; 2 wrong option; 3 a run could not finish, or none "
    "of its answers could be read; 130 interrupted."
)
"""Text below the help of a command."""

_FOREIGN_BARS = {
    "TQDM_DISABLE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}
"""Settings of the environment with which other libraries, and processes that they start, show no bars of their own."""

if "numpy" not in sys.modules:
    # The matrices of intervals are small: several threads wait for each other for longer than they compute, and boards
    # use all cores anyway. Models are not affected, since torch has threads of its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_raises: ContextVar[bool] = ContextVar("raises", default=False)
"""True while a command is called from Python, which wants its errors as exceptions."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
"""Control characters, line breaks, and bytes of a name that are not UTF-8, which Python holds as lone surrogates."""


class Place(NamedTuple):
    """A command that is imported when it is called."""

    place: str
    """``module:function``, ``module:application``, or a module alone, which is run as ``python -m`` runs it."""
    summary: str
    """First sentence of its help, so that the list of commands is printed without importing any."""


def command_group(
    help_text: str,
    commands: Mapping[str, Place],
    *,
    itself: Callable[..., object] | None = None,
    is_door: bool = False,
) -> typer.Typer:
    """Return an application whose commands are imported when they are called, so that each starts quickly.

    Args:
        help_text: The help of the application.
        commands: Place of each command by name.
        itself: Function, perhaps with options of its own, that the application is without a command; None to print the
            help. Its first argument is a ``typer.Context``, and it does nothing if that names a command.
        is_door: True for the command of the whole project, which adds ``--version`` and completion in a shell.
    """
    application = typer.Typer(
        cls=_group_of(commands),
        help=help_text,
        epilog=EXIT_STATUS,
        no_args_is_help=itself is None,
        invoke_without_command=itself is not None,
        add_completion=is_door,
        pretty_exceptions_enable=False,
    )

    def group() -> None:
        pass

    def door(
        version: Annotated[
            bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
        ] = False,
    ) -> None:
        pass

    # typer makes a group only of an application that has a callback, or several commands of its own.
    application.callback()(itself or (door if is_door else group))
    return application


def _group_of(commands: Mapping[str, Place]) -> type[TyperGroup]:
    """Return a class of groups with these commands; typer makes an object of it."""

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
            return _loaded(cmd_name, commands[cmd_name])

        def shell_complete(self, ctx: Any, incomplete: str) -> Any:
            """Return what a word may become, without importing any command."""
            self.lists_only = True
            completions = super().shell_complete(ctx, incomplete)
            self.lists_only = False
            return completions

    return Group


class _NamesAllMissing(TyperCommand):
    """A command that names all options and arguments that are missing, and not the first of them alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the command."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Older and newer typer have classes of their own for it.
            if type(error).__name__ == "MissingParameter":
                self._complete(error, ctx, given)
            raise

    def _complete(self, error: Any, ctx: Any, given: list[str]) -> None:
        """Name everything that is missing in an error."""
        values, _, _ = self.make_parser(ctx).parse_args(args=given)
        missing: list[Any] = [
            parameter
            for parameter in self.get_params(ctx)
            if parameter.required and parameter.value_is_missing(parameter.consume_value(ctx, values)[0])
        ]
        if len(missing) > 1:
            names = [
                max(parameter.opts, key=len) if parameter.param_type_name == "option" else parameter.name.upper()
                for parameter in missing
            ]
            error.param_type = " and ".join(dict.fromkeys(f"{parameter.param_type_name}s" for parameter in missing))
            error.param_hint = ", ".join(f"'{name}'" for name in names)


def _loaded(name: str, place: Place) -> Any:
    module, _, attribute = place.place.partition(":")
    if not attribute:
        return _as_script(name, module, place.summary)
    hide_foreign_bars()
    application = getattr(importlib.import_module(module), attribute)
    if not isinstance(application, typer.Typer):
        function, application = application, typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        application.command(name, cls=_NamesAllMissing)(function)
    command = typer.main.get_command(application)
    command.name = name
    command.epilog = EXIT_STATUS
    return command


def _as_script(name: str, module: str, summary: str) -> Any:
    """Return a command that runs a module with all arguments."""
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    def script(context: typer.Context) -> None:
        before, sys.argv = sys.argv, [module, *context.args]
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        finally:
            sys.argv = before

    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    application.command(name, help=summary, context_settings=settings)(script)
    return typer.main.get_command(application)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"biasboard {importlib.metadata.version('biasboard')}")
        raise typer.Exit


def call(application: typer.Typer, arguments: Sequence[str]) -> Any:
    """Call a command from Python: return what its function returns, raise its errors, and print nothing.

    Args:
        application: The application of a single command.
        arguments: Its arguments as on a command line.

    Raises:
        BiasboardError: an argument is wrong, or the command made an error.
    """
    token = _raises.set(True)
    try:
        with redirect_stdout(io.StringIO()):
            return typer.main.get_command(application).main(list(arguments), standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        # Older and newer typer raise different classes for a wrong argument; all of them have this method.
        format_message = getattr(error, "format_message", None)
        if format_message is None:
            raise
        raise ConfigError(format_message()) from error
    finally:
        _raises.reset(token)


def hide_foreign_bars() -> None:
    """Keep other libraries from showing bars of their own, unless the user's environment says otherwise."""
    for name, value in _FOREIGN_BARS.items():
        os.environ.setdefault(name, value)


@contextmanager
def one_line_errors(interrupted: str = "stopped; nothing was written") -> Iterator[None]:
    """Turn a mistake of the user into one line on standard error and an exit status.

    This context manager can also be used as a decorator.

    Args:
        interrupted: Line to print after Ctrl-C, which says what was kept or written.

    Raises:
        typer.Exit: a mistake was made, the file system failed, or the user pressed Ctrl-C. A command that :func:`call`
            calls raises the error itself.
    """
    if _raises.get():
        yield
        return
    hide_foreign_bars()
    try:
        for argument in sys.argv[1:]:
            if _CONTROL.search(argument):
                # It could be neither printed nor stored, as a result stores the command line.
                raise ConfigError(
                    f"argument {argument!a}: is not UTF-8 or holds a control character; choose another name"
                )
        yield
    except BiasboardError as error:
        _end(f"error: {error}", EXIT_RUN_FAILED if isinstance(error, RunError) else EXIT_ERROR, error)
    except UnicodeEncodeError as error:
        _end(f"error: {error.object[:200]!a}: is not UTF-8; rename the file or folder", EXIT_ERROR, error)
    except BrokenPipeError as error:
        # The reader, such as head, has seen enough; the interpreter must not try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_ERROR) from error
    except OSError as error:
        where = error.filename or "file system"
        reason = error.strerror or str(error)
        _end(f"error: {where}: {reason}; choose a place that can be read and written", EXIT_ERROR, error)
    except KeyboardInterrupt as error:
        _end(interrupted, EXIT_INTERRUPTED, error)


def _end(line: str, status: int, cause: BaseException) -> None:
    # A name in the message may hold a line break or change the colours of the terminal.
    print(escaped(line), file=sys.stderr)
    raise typer.Exit(status) from cause
