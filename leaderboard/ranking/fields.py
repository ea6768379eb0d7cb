"""Describes the columns of a table: the type of each, and where it can, the function that reads its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Scalar: TypeAlias = str | int | float | bool | None
Values: TypeAlias = tuple[Scalar, ...]
"""Values of a row in the order of its columns."""
Kind: TypeAlias = type[str] | type[int] | type[float] | type[bool]
Columns: TypeAlias = Mapping[str, Kind]
"""Type of the values of each column, which may all be None in one table."""
Fields: TypeAlias = Mapping[str, tuple[Kind, Callable[[T], Scalar]]]
"""Columns of rows about something: for each the type of its values, and the function that reads a value."""


def attributes(path: str = "", /, **kinds: Kind) -> Fields[Any]:
    """Return columns that are attributes of the same names.

    Args:
        path: Attribute that has them, with a dot at the end; empty for the thing itself.
        kinds: Type of the values by name.
    """
    return {name: (kind, attrgetter(path + name)) for name, kind in kinds.items()}


def columns_of(fields: Fields[T]) -> dict[str, Kind]:
    """Return the columns of some fields."""
    return {name: kind for name, (kind, _) in fields.items()}


def values_of(fields: Fields[T], one: T) -> Values:
    """Return what some fields say of one thing."""
    return tuple([read(one) for _, read in fields.values()])
