"""The interface of an item shape: the rows of a dataset of one kind.

A file in ``schemas/items`` is an item shape, with a JSON Schema of the same name beside it. It holds the frozen
dataclass of a row, and ``SHAPE``, an :class:`ItemShape`. Several tasks may ask items of one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from schemas import plugins
from schemas.errors import DataError

_PACKAGE = "schemas.items"


class Item(Protocol):
    """A row of a dataset, whatever its shape."""

    @property
    def item_id(self) -> str:
        """Identifier that no other item of its split has."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Rules of the manifest's flags that hold for this item."""

    @property
    def unit(self) -> str:
        """Identifier of the set of items that is drawn whole when only a part of the data is asked."""


@dataclass(frozen=True, kw_only=True)
class ItemShape:
    """A kind of row."""

    row_type: type[Any]
    """Frozen dataclass of a row; it fits :class:`Item`."""
    problems: Callable[[Any], Iterator[str]]
    """Yields every rule broken by a row that the JSON Schema accepts: field, value, remedy."""
    unit_name: str
    """Word for the set of items that is drawn whole, in the singular, such as ``minimal pair``."""
    also_called: tuple[str, ...] = ()
    """Other names under which manifests list the shape, each that of a task which asks it."""
    name: str = ""
    """Name of the file, filled in when the file is found, like the path of the JSON Schema."""
    schema_path: Path = Path()


@cache
def item_shapes() -> Mapping[str, ItemShape]:
    """Return every item shape by the names under which manifests list it, their own names first."""
    loaded = {name: _load(name) for name in plugins.names(_PACKAGE)}
    others = {other: shape for shape in loaded.values() for other in shape.also_called}
    return {**loaded, **others}


def _load(name: str) -> ItemShape:
    module = plugins.load(_PACKAGE, name, kind="item shape")
    shape: ItemShape = module.SHAPE
    return replace(shape, name=name, schema_path=Path(str(module.__file__)).with_name(f"{name}.schema.json"))


def shape_of(listed: str, *, where: str) -> ItemShape:
    """Return the item shape that a manifest lists.

    Args:
        listed: The name in the manifest.
        where: The manifest's file, for the error.

    Raises:
        DataError: there is no such shape.
    """
    shapes = item_shapes()
    if listed not in shapes:
        raise DataError(f"{where}: item_shape '{listed}' is unknown; have: {', '.join(shapes)}")
    return shapes[listed]
