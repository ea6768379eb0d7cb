"""Command-line options as fields of dataclasses: each is declared once for all commands that have it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, field, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

_DECLARED = "option"


def option(
    help_text: str, *, flag: str | None = None, panel: str | None = None, default: Any = None, **more: Any
) -> Any:
    """Declare a field of a dataclass that is an option of a command.

    Args:
        help_text: The help.
        flag: The option as on the command line; None for the name of the field with dashes. A field that is a tuple is
            an option that may be repeated, and a field without one is not shown on a command line.
        panel: Group of options in the help.
        default: Value if the user leaves it out; ``...`` if the option is required.
        more: Other arguments of ``typer.Option``, such as ``min``.
    """
    metadata = {_DECLARED: {"flag": flag, "help": help_text, "rich_help_panel": panel, "default": default, **more}}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


class Only(frozenset[str]):
    """The names of the fields that a command has as options; the others keep their defaults.

    It is given with the type of a parameter: ``Annotated[Choice, Only({"task", "limit"})]``.
    """


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a typer command an option for each declared field of its parameters that are dataclasses."""
    signature = inspect.signature(command, eval_str=True)
    own: list[inspect.Parameter] = []
    added: list[inspect.Parameter] = []
    chosen: dict[str, tuple[Any, list[str]]] = {}
    for parameter in signature.parameters.values():
        kind, only = _unwrapped(parameter.annotation)
        if is_dataclass(kind):
            options = [
                declared
                for declared in fields(kind)
                if _DECLARED in declared.metadata and (only is None or declared.name in only)
            ]
            chosen[parameter.name] = (kind, [declared.name for declared in options])
            added += [_parameter(kind, declared) for declared in options]
        else:
            own.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**values: Any) -> Any:
        for name, (kind, names) in chosen.items():
            given = {field_name: values.pop(field_name) for field_name in names}
            # typer gives None for an option that the user left out; the field then keeps its default.
            values[name] = kind(
                **{
                    field_name: tuple(value) if isinstance(value, list) else value
                    for field_name, value in given.items()
                    if value is not None
                }
            )
        return command(**values)

    wrapped.__signature__ = signature.replace(parameters=[*added, *own])  # type: ignore[attr-defined]
    return wrapped


def _unwrapped(annotation: Any) -> tuple[Any, Only | None]:
    """Return the type of a parameter, and the names of the fields that become options; None for all."""
    if get_origin(annotation) is not Annotated:
        return annotation, None
    kind, *facts = get_args(annotation)
    return kind, next((fact for fact in facts if isinstance(fact, Only)), None)


def _parameter(kind: Any, declared: Field[Any]) -> inspect.Parameter:
    """Return a parameter of a typer command for a field."""
    settings = dict(declared.metadata[_DECLARED])
    flag, default = settings.pop("flag"), settings.pop("default")
    type_of_field = get_type_hints(kind)[declared.name]
    repeated = next((hint for hint in (type_of_field, *get_args(type_of_field)) if get_origin(hint) is tuple), None)
    if repeated is not None:
        # If the user gives no value, typer passes None for a default of None, and an empty list for any other default.
        type_of_field = list[get_args(repeated)[0]]  # type: ignore[misc]
        default = default if default is ... else None
    given = type_of_field if default is ... or NoneType in get_args(type_of_field) else type_of_field | None
    # An explicit name stops typer from adding a --no- option, which would do nothing.
    option_of_typer = typer.Option(flag or f"--{declared.name.replace('_', '-')}", **settings)
    return inspect.Parameter(
        declared.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[given, option_of_typer],
    )
