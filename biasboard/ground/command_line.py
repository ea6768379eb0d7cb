"""Command lines: commands that are loaded when they are called, and errors of one line."""

from __future__ import annotations

import gc
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
from difflib import get_close_matches
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from biasboard.ground.errors import BiasboardError, ConfigError, RunError, status_of, stoppable
from biasboard.ground.files import DISK_FULL, disk_full
from biasboard.ground.hub import check_endpoint
from biasboard.ground.plain_text import escaped, one_line, without_keys, without_middle
from biasboard.ground.plugins import place_in_plug_ins

EXIT_ERROR = 1
"""Exit status for bad input, or for a check that found a problem; nothing was written."""
EXIT_RUN_FAILED = 3
"""Exit status for a run that could not finish; its answers so far are kept. (Status 2 is a wrong option.)"""
EXIT_GATE = 4
"""Exit status for a model that does not pass a gate of the user; everything was done."""
_NOTHING_WRITTEN = "stopped; nothing was written"
EXIT_STATUS = (
    "Exit status: 0 done; 1 bad input, or a check found a problem; 2 wrong option; 3 a run could not finish, or none "
    "of its answers could be read; 4 a gate of score failed; 129, 130 or 143 stopped by SIGHUP, Ctrl-C or SIGTERM."
)
"""Text below the help of a command."""

_FOREIGN_BARS = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
"""Environment variables that stop other libraries, and the processes they start, from showing progress bars."""

if "numpy" not in sys.modules:
    # The matrices of intervals are so small that threads would spend more time waiting for each other than computing,
    # and boards use all cores anyway. Models are not affected, since torch has its own threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Records become millions of objects without cycles, and searching these for some took a twelfth of a verification.
gc.set_threshold(50_000, 20, 20)

TRACEBACK = "BIASBOARD_TRACEBACK"
"""Environment variable that shows the traceback of an error that no command expects."""

_raises: ContextVar[bool] = ContextVar("raises", default=False)
"""True while a command is called from Python, where errors are exceptions."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
"""Control characters, line breaks, and lone surrogates, which are how Python stores bytes that are not UTF-8."""
ANSWERS_KEPT = "stopped; the answers so far are kept, and the same command continues from there"
"""Last line of a command that asks a model and was stopped."""


class LazyCommand(NamedTuple):
    """A command that is imported only when it is called."""

    target: str
    """``module:function``, ``module:application``, or a module alone, which is run as ``python -m`` runs it."""
    summary: str
    """First sentence of its help, so that the list of commands is printed without importing any."""


def command_group(
    help_text: str,
    commands: Mapping[str, LazyCommand],
    *,
    itself: Callable[..., object] | None = None,
    is_door: bool = False,
) -> typer.Typer:
    """Return an application whose commands are imported when they are called, so that each starts quickly.

    Args:
        help_text: The help of the application.
        commands: Commands by name.
        itself: Function to call if no command is given, perhaps with options of its own; None to print the help. Its
            first argument is a ``typer.Context``, and it must do nothing if that names a command.
        is_door: True for the command ``biasboard`` itself, which adds ``--version`` and completion in a shell.
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


def _group_of(commands: Mapping[str, LazyCommand]) -> type[TyperGroup]:
    """Return a subclass of TyperGroup with these commands, since typer wants a class rather than an object."""

    class Group(TyperGroup):
        """A group that imports no command before it is called."""

        lists_only = False

        def format_help(self, ctx: Any, formatter: Any) -> None:
            """Print the help of the group from the summaries of its commands."""
            self.lists_only = True
            super().format_help(ctx, formatter)
            self.lists_only = False

        def list_commands(self, ctx: Any) -> list[str]:
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """Import a command; None if there is none of this name."""
            if cmd_name not in commands:
                return None
            if self.lists_only:
                return TyperCommand(cmd_name, help=commands[cmd_name].summary)
            return _loaded(cmd_name, commands[cmd_name])

        def invoke(self, ctx: Any) -> Any:
            """Call a command; a wrong value of thousands of characters is not quoted whole."""
            try:
                return super().invoke(ctx)
            except Exception as error:
                message = getattr(error, "message", None)
                # typer tells of one missing option at a time. Its class of this error depends on its version.
                if type(error).__name__ == "MissingParameter":
                    command = error.ctx.command  # type: ignore[attr-defined]
                    needed = [one.opts[0] for one in command.params if one.required and one.opts[0].startswith("-")]
                    message = f"Needed are {', '.join(needed)}." if len(needed) > 1 else message
                if isinstance(message, str):
                    error.message = without_middle(message)  # type: ignore[attr-defined]
                # The command itself tells its errors; these come while it is found or imported.
                if not _raises.get():
                    _tell(error, _NOTHING_WRITTEN)
                raise

        def shell_complete(self, ctx: Any, incomplete: str) -> Any:
            """Return the completions of a word, without importing any command."""
            self.lists_only = True
            completions = super().shell_complete(ctx, incomplete)
            self.lists_only = False
            return completions

    return Group


def _loaded(name: str, lazy: LazyCommand) -> Any:
    module, _, attribute = lazy.target.partition(":")
    if not attribute:
        return _as_script(name, module, lazy.summary)
    hide_foreign_bars()
    application = getattr(importlib.import_module(module), attribute)
    if not isinstance(application, typer.Typer):
        function, application = application, typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        application.command(name)(function)
    command = typer.main.get_command(application)
    command.name = name
    command.epilog = EXIT_STATUS
    return command


def _as_script(name: str, module: str, summary: str) -> Any:
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


def call(application: typer.Typer, options: Mapping[str, Any], arguments: Sequence[str] = ()) -> Any:
    """Call a command from Python: return what its function returns, raise its errors, and print nothing.

    Args:
        application: The application of a single command.
        options: Its options by name, with underscores for dashes; None leaves one out.
        arguments: Others as on a command line.

    Raises:
        BiasboardError: there is no such option, a value is wrong, or the command made an error.
    """
    command = typer.main.get_command(application)
    flags = {name.removeprefix("--").replace("-", "_"): one for one in command.params for name in one.opts}
    values: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name not in flags:
            near = get_close_matches(name, flags, n=1)
            meant = f"; did you mean --{near[0].replace('_', '-')}?" if near else ""
            raise ConfigError(f"No such option: --{name.replace('_', '-')}{meant}")
        several = list(value) if isinstance(value, list | tuple) else [value]
        if len(several) != 1 and not flags[name].multiple:
            raise ConfigError(f"--{name.replace('_', '-')}: takes one value, not {len(several)}; give one")
        values[flags[name].name or name] = several if flags[name].multiple else several[0]
    token = _raises.set(True)
    try:
        with redirect_stdout(io.StringIO()):
            return command.main(list(arguments), standalone_mode=False, default_map=values)
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
    """Keep other libraries from showing progress bars, unless the user's environment says otherwise."""
    for name, value in _FOREIGN_BARS.items():
        os.environ.setdefault(name, value)


@contextmanager
def one_line_errors(interrupted: str = _NOTHING_WRITTEN) -> Iterator[None]:
    """Turn every error into one line on standard error and an exit status: mistakes of the user, and faults of ours.

    This context manager can also be used as a decorator.

    ``interrupted`` is printed after a signal, and says what was kept or written.

    Raises:
        typer.Exit: the user made a mistake, the file system failed, a signal came, or we made a mistake. Under
            :func:`call` the error itself is raised.
    """
    if _raises.get():
        yield
        return
    hide_foreign_bars()
    # A locale of ASCII has no letter é, and a name may hold what no encoding has; standard error escapes both anyway.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for argument in sys.argv[1:]:
            if _CONTROL.search(argument):
                if not _CONTROL.search(os.fsencode(argument).decode("utf-8", "surrogateescape")):
                    raise ConfigError(
                        f"argument {argument!a}: is UTF-8, and the locale of this terminal is not; set LC_ALL=C.UTF-8"
                    )
                # Such an argument could be neither printed nor stored; results store the command line.
                raise ConfigError(
                    f"argument {argument!a}: is not UTF-8 or holds a control character; choose another name"
                )
        check_endpoint()
        with stoppable():
            yield
    except BaseException as error:
        _tell(error, interrupted)
        raise


def _tell(error: BaseException, interrupted: str) -> None:
    """End a command with one line about an error; do nothing for what typer tells itself, and for an exit."""
    are_kept = interrupted == ANSWERS_KEPT
    failed = EXIT_RUN_FAILED if are_kept else EXIT_ERROR
    if isinstance(error, BiasboardError):
        _end(f"error: {error}", EXIT_RUN_FAILED if isinstance(error, RunError) else EXIT_ERROR, error)
    if isinstance(error, UnicodeEncodeError):
        # Of what was to be written, such as the names of several files, the first part that has no bytes.
        parts = re.split("[\0-\x1f]", error.object)
        name = next((part for part in parts if _CONTROL.search(part)), error.object)
        fault = "is not UTF-8; rename the file or folder"
        if error.encoding.lower() not in ("utf-8", "utf8"):
            fault = "has letters that the locale of this terminal lacks; set LC_ALL=C.UTF-8"
        _end(f"error: {name[:200]!a}: {fault}", EXIT_ERROR, error)
    if isinstance(error, BrokenPipeError):
        # The reader, such as head, has closed the pipe; the interpreter must not flush the rest into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_ERROR) from error
    if isinstance(error, OSError):
        where = error.filename or "file system"
        if error.errno in DISK_FULL:
            _end(f"error: {disk_full(where, answers_kept=are_kept)}", failed, error)
        reason = error.strerror or str(error)
        _end(f"error: {where}: {reason}; choose a place that can be read and written", EXIT_ERROR, error)
    # How Path.resolve ends before Python 3.13.
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        _end(f"error: {error}; name the folder itself, or mend the link", EXIT_ERROR, error)
    if isinstance(error, KeyboardInterrupt):
        _end(interrupted, status_of(error), error)
    if isinstance(error, MemoryError):
        _end("error: no memory is left on this machine or below a limit of it; free some, or ask less", failed, error)
    is_of_typer = isinstance(error, typer.Abort) or hasattr(error, "exit_code")
    if isinstance(error, Exception) and not is_of_typer and not os.environ.get(TRACEBACK):
        if (place := place_in_plug_ins(error)) is not None:
            _end(f"error: {place}: {type(error).__name__}: {one_line(error)}; correct the plug-in", failed, error)
        _end(
            f"error: this is a fault of biasboard ({type(error).__name__}: {one_line(error)}); please report it with "
            f"what the same command prints with {TRACEBACK}=1",
            failed,
            error,
        )


def _end(line: str, status: int, cause: BaseException) -> NoReturn:
    # Names in the message may hold line breaks or escape sequences of the terminal.
    print(escaped(without_keys(line)), file=sys.stderr)
    raise typer.Exit(status) from cause
