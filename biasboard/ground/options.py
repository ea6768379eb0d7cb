"""Options as fields of dataclasses: each is declared once, for all commands that have it and for Python functions."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError

_DECLARED = "option"
_SETTINGS = frozenset({"min", "max", "envvar", "callback"})
"""Further arguments of ``typer.Option`` that fields have."""
T = TypeVar("T")


def finite(value: T) -> T:
    """Return the value of an option; this is the callback of those that are numbers with a point.

    Raises:
        typer.BadParameter: it is infinite or NaN, which no range of an option excludes.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number; give one")
    return value


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(","))


def option(
    help_text: str,
    *,
    flag: str | None = None,
    panel: str | None = None,
    default: Any = None,
    read: Callable[[str], Any] | None = None,
    **more: Any,
) -> Any:
    """Declare a field of a dataclass that is an option of a command.

    Args:
        help_text: The help.
        flag: The option as on the command line; None for the name of the field with dashes. A field that is a tuple is
            an option that may be repeated, and a field without one is not shown on a command line.
        panel: Group of options in the help.
        default: Value if the user leaves it out; ``...`` if he must not.
        read: Function that makes the value of the field of the text on a command line; None if typer reads it.
        more: Other arguments of ``typer.Option``, such as ``min``.
    """
    if unknown := more.keys() - _SETTINGS:
        raise TypeError(f"option() takes no {', '.join(sorted(unknown))}; it takes {', '.join(sorted(_SETTINGS))} too")
    settings = {"flag": flag, "help": help_text, "rich_help_panel": panel, "default": default, "read": read, **more}
    metadata = {_DECLARED: settings}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


class Only(frozenset[str]):
    """The names of the fields that a command has as options; the others keep their defaults.

    It is given with the type of a parameter: ``Annotated[Choice, Only({"task", "limit"})]``.
    """


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a typer command an option for each declared field of its parameters that are dataclasses."""
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    chosen: dict[str, tuple[Any, list[str]]] = {}
    for parameter in signature.parameters.values():
        given = parameter.annotation
        kind, *facts = get_args(given) if get_origin(given) is Annotated else [given]
        only = next((fact for fact in facts if isinstance(fact, Only)), None)
        if is_dataclass(kind):
            options = {name: of for name, of in _declared(kind).items() if only is None or name in only}
            chosen[parameter.name] = (kind, list(options))
            parameters += [_parameter(kind, name, settings) for name, settings in options.items()]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**values: Any) -> Any:
        for name, (kind, names) in chosen.items():
            present: dict[str, Any] = {}
            for field_name in names:
                value = values.pop(field_name)
                read = kind.__dataclass_fields__[field_name].metadata[_DECLARED]["read"]
                # typer gives None for an option that the user left out; the field then keeps its default.
                if value is not None:
                    plain = tuple(value) if isinstance(value, list) else value
                    present[field_name] = plain if read is None else read(value)
            values[name] = kind(**present)
        return command(**values)

    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapped


def names_of(kind: type) -> tuple[str, ...]:
    """Return the names of the declared options of a dataclass."""
    return tuple(_declared(kind))


def _declared(kind: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of the declared options of a dataclass, by name."""
    return {one.name: one.metadata[_DECLARED] for one in fields(kind) if _DECLARED in one.metadata}


def from_values(kind: type[T], values: Mapping[str, Any], *, function: str, also: Sequence[str] = ()) -> T:
    """Return options from the keyword arguments of a function, checked as a command line checks them.

    One value does for a field that is a tuple, a text for a path, and a mapping for a text of JSON or of NAME=VALUE.

    Args:
        kind: Dataclass of declared options.
        values: Values by the names of its fields; None leaves an option out.
        function: Name of the function, for the error message.
        also: Other arguments of the function, which may be meant.

    Raises:
        TypeError: there is no such option; a similar one is named.
        ConfigError: a number lies outside the range of its option, or a value has another type.
    """
    declared, hints = _declared(kind), get_type_hints(kind)
    given = {}
    for name, value in values.items():
        if name not in declared:
            near = get_close_matches(name, [*also, *declared], n=1)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            raise TypeError(f"{function}() got an unexpected option '{name}'{meant}")
        if value is not None:
            given[name] = _checked(name, value, hints[name], declared[name])
    return kind(**given)


def from_texts(kind: type[T], texts: Sequence[str], *, flag: str) -> T:
    """Return options from texts such as ``depth=3``, checked as a command line checks its own.

    Args:
        kind: Dataclass of declared options.
        texts: Each NAME=VALUE; a name whose field is a tuple may be repeated.
        flag: The option that takes the texts, for error messages.

    Raises:
        ConfigError: a text has another form, names no option, or has a value of another type or range.
    """
    hints, values = get_type_hints(kind), dict[str, Any]()
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise ConfigError(f"{flag} {text}: write NAME=VALUE")
        types = {hints.get(name), *get_args(hints.get(name))}
        if any(get_origin(one) is tuple for one in types):
            values[name] = (*values.get(name, ()), value)
            continue
        try:
            if bool in types:
                values[name] = {"true": True, "false": False}[value.lower()]
            else:
                values[name] = next((one for one in (int, float, Path) if one in types), str)(value)
        except (KeyError, ValueError):
            wanted = "true or false" if bool in types else "a number"
            raise ConfigError(f"{flag} {text}: '{value}' is not {wanted}; correct it") from None
    declared = _declared(kind)
    for name, settings in declared.items():
        if settings["default"] is ... and name not in values:
            raise ConfigError(f"{flag} {name}=VALUE is needed: {settings['help']}")
    try:
        return from_values(kind, values, function=flag)
    except TypeError as error:
        have = ", ".join(declared)
        raise ConfigError(f"{str(error).replace('() got an unexpected', ': there is no')}; have: {have}") from None


def _checked(name: str, value: Any, hint: Any, settings: Mapping[str, Any]) -> Any:
    types = {hint, *get_args(hint)} - {NoneType}
    if settings["read"] is not None and isinstance(value, str):
        return settings["read"](value)
    if any(get_origin(one) is tuple for one in types):
        if isinstance(value, Mapping):
            value = tuple(f"{key}={one}" for key, one in value.items())
        value = (value,) if isinstance(value, str | os.PathLike) else value
        if not isinstance(value, Sequence):
            raise ConfigError(f"{name} = {value!r}: give a text, a list of texts, or a dict of names and values")
        value = tuple(value)
        return tuple(map(Path, value)) if any(Path in get_args(one) for one in types) else value
    if Path in types and isinstance(value, str | os.PathLike):
        return Path(value)
    if str in types and isinstance(value, os.PathLike):
        return os.fspath(value)
    if str in types and isinstance(value, Mapping):
        return strict_json.dumps(dict(value))
    wanted = tuple(one for one in types if one in (str, int, float, bool, Path))
    accepted = (*wanted, int) if float in wanted else wanted
    if wanted and (not isinstance(value, accepted) or (isinstance(value, bool) and bool not in wanted)):
        names = " or ".join(one.__name__ for one in wanted)
        if str in wanted and isinstance(value, Sequence):
            names += ", or a dict of names and values where the option takes JSON"
        raise ConfigError(f"{name} = {value!r}: give a value of type {names}")
    low, high = settings.get("min"), settings.get("max")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name} = {value}: give a number")
    if (low is not None and value < low) or (high is not None and value > high):
        limits = f"{low:g} or more" if high is None else f"{high:g} or less" if low is None else f"{low:g} to {high:g}"
        raise ConfigError(f"{name} = {value}: give {limits}")
    return value


def _parameter(kind: Any, name: str, declared: Mapping[str, Any]) -> inspect.Parameter:
    settings = dict(declared)
    flag, default, read = (settings.pop(setting) for setting in ("flag", "default", "read"))
    type_of_field = get_type_hints(kind)[name] if read is None else str | None
    repeated = next((hint for hint in (type_of_field, *get_args(type_of_field)) if get_origin(hint) is tuple), None)
    if repeated is not None:
        # If the user gives no value, typer passes None for a default of None, and an empty list for any other default.
        type_of_field = list[get_args(repeated)[0]]  # type: ignore[misc]
    if default is not ... and (repeated is not None or read is not None):
        # The field keeps its default; typer would make a text of it, to be read as if the user had given it.
        default = None
    if float in (type_of_field, *get_args(type_of_field)):
        settings.setdefault("callback", finite)
    given = type_of_field if default is ... or NoneType in get_args(type_of_field) else type_of_field | None
    # An explicit name stops typer from adding a --no- option, which would do nothing.
    option_of_typer = typer.Option(flag or f"--{name.replace('_', '-')}", **settings)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[given, option_of_typer],
    )
