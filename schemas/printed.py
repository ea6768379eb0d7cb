"""The option ``--format json``: what a command did, as one document in place of lines for people."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

import typer

from schemas.documents.base import Document


class Printed(NamedTuple):
    """What a command returns that can fail although it has a document to print."""

    document: Document
    status: int = 0
    """Exit status, if no error is raised."""
    error: BaseException | None = None
    """Raised after the document was printed."""


def with_format(
    *documents: type[Document], others: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the option ``--format``, whose value ``json`` prints one document and nothing else.

    The command prints lines for people and returns a document, or an :class:`Printed`. As JSON, its lines go to
    standard error, and the document to standard output. An error is a line on standard error in both forms.

    Args:
        documents: The kinds of documents that the command returns.
        others: Further values of the option. A command that has them takes the value as its parameter ``output``.
    """
    schemas = " or ".join(PurePosixPath(document.schema_file).name for document in documents)
    choices: Any = Literal[("text", "json", *others)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True)
        takes_output = "output" in signature.parameters

        @functools.wraps(command)
        def wrapped(*args: Any, output: str = "text", **values: Any) -> Document | None:
            if takes_output:
                values["output"] = output
            if output != "json":
                return _ended(command(*args, **values))
            stdout = sys.stdout
            with redirect_stdout(sys.stderr):
                returned = command(*args, **values)
            document = returned.document if isinstance(returned, Printed) else returned
            print(as_json(document), end="", file=stdout, flush=True)
            return _ended(returned)

        option = typer.Option("--format", help=f"Lines for people, or one JSON document ({schemas}).")
        parameter = inspect.Parameter(
            "output", inspect.Parameter.KEYWORD_ONLY, default="text", annotation=Annotated[choices, option]
        )
        own = [each for each in signature.parameters.values() if each.name != "output"]
        wrapped.__signature__ = signature.replace(parameters=[*own, parameter])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def _ended(returned: Document | Printed | None) -> Document | None:
    if not isinstance(returned, Printed):
        return returned
    if returned.error is not None:
        raise returned.error
    if returned.status:
        raise typer.Exit(returned.status)
    return returned.document


def as_json(document: Document | None) -> str:
    """Return a document as JSON in ASCII alone, so that no name from a stranger's file acts on a terminal or page.

    That of a command that only listed something is null.
    """
    # Imported here because printing text does not need it.
    from schemas.files import contract

    return json.dumps(None if document is None else contract.dump(document), indent=2, allow_nan=False) + "\n"
