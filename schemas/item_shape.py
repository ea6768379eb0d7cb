"""The interface of an item shape, which describes one kind of dataset row.

Each file in ``schemas/items`` defines one item shape and has a JSON Schema of the same name beside it. The file
contains the frozen dataclass of a row, and ``SHAPE``, an :class:`ItemShape`. Several tasks can use items of one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from schemas import plugins, strict_json
from schemas.errors import ConfigError, DataError

_PACKAGE = "schemas.items"


class Item(Protocol):
    """A row of a dataset, of any shape."""

    @property
    def item_id(self) -> str:
        """The identifier of the item, unique within its split."""

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the manifest's flag rules that apply to this item."""

    @property
    def unit(self) -> str:
        """The identifier of the set of items that is drawn as a whole when only a part of the data is asked."""


@dataclass(frozen=True, kw_only=True)
class ItemShape:
    """A kind of dataset row."""

    row_type: type[Any]
    """Frozen dataclass of a row, which satisfies :class:`Item`."""
    problems: Callable[[Any], Iterator[str]]
    """Generator of messages (field, value, remedy), one for each further rule that a schema-valid row breaks."""
    unit_name: str
    """Word, in the singular, for the set of items that is drawn as a whole, such as ``minimal pair``."""
    also_called: tuple[str, ...] = ()
    """Other names of the shape in manifests; each is the name of a task that uses the shape."""
    name: str = ""
    """Name of the file without ``.py``; set when the file is loaded."""
    schema_path: Path = Path()
    """Path of the JSON Schema; set when the file is loaded."""


@cache
def item_shapes() -> Mapping[str, ItemShape]:
    """Return the item shapes by each name that manifests use for them; their own names come first.

    Raises:
        ConfigError: two shapes have one name or one dataclass.
    """
    loaded = {name: _load(name) for name in plugins.names(_PACKAGE)}
    found: dict[str, ItemShape] = dict(loaded)
    for shape in loaded.values():
        for other in shape.also_called:
            if found.setdefault(other, shape) is not shape:
                raise ConfigError(
                    f"item shapes {found[other].name} and {shape.name} are both called '{other}'; rename one"
                )
    for shape in loaded.values():
        same = [other.name for other in loaded.values() if other.row_type is shape.row_type]
        if len(same) > 1:
            raise ConfigError(
                f"item shapes {' and '.join(same)} have one dataclass; give the second name in also_called"
            )
    return found


def _load(name: str) -> ItemShape:
    module = plugins.load(_PACKAGE, name, kind="item shape", defines="SHAPE")
    shape: ItemShape = module.SHAPE
    path = Path(str(module.__file__)).with_name(f"{name}.schema.json")
    _check_schema(shape.row_type, path)
    return replace(shape, name=name, schema_path=path)


def _check_schema(row_type: type[Any], path: Path) -> None:
    """Check that a JSON Schema has exactly the fields of a row, so that neither accepts what the other does not."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; add the JSON Schema of {row_type.__name__} beside its module")
    schema = strict_json.read(path)
    wanted = [field.name for field in fields(row_type)]
    for key in ("required", "properties"):
        found = schema.get(key) if isinstance(schema, dict) else None
        names = list(found) if isinstance(found, list | dict) else []
        if names != wanted:
            differ = ", ".join(map(str, sorted({*wanted} ^ {*names}, key=str))) or "their order"
            raise ConfigError(f"{path}: '{key}' and the fields of {row_type.__name__} differ in {differ}; correct one")
    lacking = [name for name in ("item_id", "flags", "unit") if name not in wanted and not hasattr(row_type, name)]
    if lacking:
        raise ConfigError(f"{path.with_suffix('').with_suffix('.py')}: {row_type.__name__} lacks {', '.join(lacking)}")


def shape_of(listed: str, *, where: str) -> ItemShape:
    """Return the item shape with the name that a manifest gives.

    Args:
        listed: Name in the manifest.
        where: Path of the manifest, for the error message.

    Raises:
        DataError: no shape has that name.
    """
    shapes = item_shapes()
    if listed not in shapes:
        raise DataError(f"{where}: item_shape '{listed}' is unknown; have: {', '.join(shapes)}; {plugins.HINT}")
    return shapes[listed]
