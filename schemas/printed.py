"""The option ``--format`` of all commands: what a command did, as text for people or as a JSON document."""

from __future__ import annotations

import functools
import inspect
import io
import json
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Annotated, Any, Literal, NamedTuple

import typer

from schemas.documents.base import Document
from schemas.outputs.documents import PrintedLines, schema_file


class Outcome(NamedTuple):
    """What a command returns that can fail although it has a document to print."""

    document: Document
    status: int = 0
    """Exit status, if no error is raised."""
    error: BaseException | None = None
    """Raised after the document was printed."""


class _Copied(io.StringIO):
    """A stream that keeps what is written, and shows it on standard error too."""

    def write(self, text: str, /) -> int:
        sys.stderr.write(text)
        return super().write(text)


def with_format(
    *documents: type[Document], others: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the option ``--format``, whose value ``json`` prints one document and nothing else.

    The command prints lines for people and returns a document, or an :class:`Outcome`. As JSON, its lines go to
    standard error, and the document to standard output; that of a command that returns none holds its lines. An error
    is a line on standard error in both forms.

    Args:
        documents: The kinds of documents that the command returns; none if it returns none.
        others: Further values of the option. A command that has them takes the value as its parameter ``output``.
    """
    schemas = " or ".join(map(schema_file, documents or (PrintedLines,)))
    choices: Any = Literal[("text", "json", *others)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True)
        takes_output = "output" in signature.parameters

        @functools.wraps(command)
        def wrapped(*args: Any, output: str = "text", **values: Any) -> Document | None:
            _check_finite(values)
            if takes_output:
                values["output"] = output
            if output != "json":
                return _ended(command(*args, **values))
            stdout, lines = sys.stdout, _Copied()
            with redirect_stdout(lines):
                returned = command(*args, **values)
            document = returned.document if isinstance(returned, Outcome) else returned
            print(as_json(document or _printed(lines)), end="", file=stdout, flush=True)
            return _ended(returned)

        option = typer.Option("--format", help=f"Lines for people, or one JSON document ({schemas}).")
        parameter = inspect.Parameter(
            "output", inspect.Parameter.KEYWORD_ONLY, default="text", annotation=Annotated[choices, option]
        )
        own = [each for each in signature.parameters.values() if each.name != "output"]
        wrapped.__signature__ = signature.replace(parameters=[*own, parameter])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def _check_finite(values: Mapping[str, Any]) -> None:
    """Check that no number among the options of a command is infinite or NaN, which no range of an option excludes.

    Raises:
        typer.BadParameter: one is.
    """
    for name, value in values.items():
        for number in value if isinstance(value, list | tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                option = f"--{name.replace('_', '-')}"
                raise typer.BadParameter(f"{number} is no finite number; give one", param_hint=f"'{option}'")


def _ended(returned: Document | Outcome | None) -> Document | None:
    if not isinstance(returned, Outcome):
        return returned
    if returned.error is not None:
        raise returned.error
    if returned.status:
        raise typer.Exit(returned.status)
    return returned.document


def _printed(lines: io.StringIO) -> Document:
    return PrintedLines(lines=tuple(lines.getvalue().splitlines()))


def as_json(document: Document) -> str:
    """Return a document as JSON in ASCII alone, so that no name from a stranger's file acts on a terminal or page."""
    # Imported here because printing text does not need it.
    from schemas.files import contract

    return json.dumps(contract.dump(document), indent=2, allow_nan=False) + "\n"
