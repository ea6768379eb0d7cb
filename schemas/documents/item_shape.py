"""The interface of an item shape, which describes one kind of dataset row.

Each file in ``schemas/items`` defines one item shape: the frozen dataclass of a row, and ``SHAPE``, an
:class:`ItemShape`. Several tasks can use items of one shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.kinds import SHAPES
from biasboard.ground.plain_text import invisible_sign, printable, seen
from biasboard.ground.plugins import HINT
from schemas.documents.base import Document

MOST_CHARACTERS = 1_000_000
"""Maximum length of a text of an item: no model reads more."""
MOST_OF_NAME = 1_000
"""Maximum length of what identifies or groups items, which records and pages repeat."""
_NAMES = ("item_id", "cluster", "pair_id", "template_id", "category", "group")
MOST_OFFERED = 10_000
"""Maximum length of a label or option, which every request repeats."""


class Item(Document):
    """A row of a dataset, of any shape."""

    __slots__ = ()
    item_id: str
    """Identifier of the item, unique within its split."""
    flags: tuple[str, ...]
    """Names of the manifest's flag rules that apply to this item."""

    @property
    def unit(self) -> str:
        """The identifier of the set of items that a sample keeps together; by default, the item alone."""
        return self.item_id

    def text_problems(self) -> Iterator[str]:
        """Yield a line for each text that is too long, and for lists with texts that nobody can see or tell apart."""
        for name, most in _limits(type(self)):  # type: ignore[arg-type]  # mypy asks for the hash of an item here.
            value = getattr(self, name)
            if isinstance(value, str):
                if len(value) > most:
                    yield f"{name}: has {len(value):,} characters, more than {most:,}; shorten it"
            elif isinstance(value, tuple) and (fault := offered_fault(value)) is not None:
                yield f"{name}: {fault}"


@cache
def _limits(shape: type[Item]) -> Sequence[tuple[str, int]]:
    """Return the names of the fields of a shape, each with the maximum length of a text in it."""
    names = [field.name for field in fields(shape)]  # type: ignore[arg-type]  # Each subclass is a dataclass.
    return [(name, MOST_OF_NAME if name in _NAMES else MOST_CHARACTERS) for name in names]


@lru_cache(maxsize=256)  # Of most datasets all items have the same labels.
def offered_fault(texts: tuple[object, ...]) -> str | None:
    """Return what is wrong with texts that a model chooses among, with the remedy; None if they can be told apart."""
    first: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, str):
            return None
        shown = f"'{printable(text, most=60)}'"
        if len(text) > MOST_OFFERED:
            return f"{shown} has {len(text):,} characters, more than {MOST_OFFERED:,}; shorten it"
        if (sign := invisible_sign(" ".join(text.split()))) is not None:
            return f"{shown} has the invisible sign U+{ord(sign):04X}; remove it"
        if not (looks := seen(text)):
            return f"{shown} has nothing that can be seen; write what it stands for"
        if (other := first.setdefault(looks, text)) != text and other.casefold() != text.casefold():
            return f"{shown} looks like '{printable(other, most=60)}'; spell one differently"
    return None


@dataclass(frozen=True, kw_only=True)
class ItemShape:
    """A kind of dataset row."""

    row_type: type[Item]
    """Frozen dataclass of a row."""
    unit_name: str
    """Singular noun for the set of items that a sample keeps together, such as ``minimal pair``."""
    also_called: tuple[str, ...] = ()
    """Other names of the shape in manifests; each is the name of a task that uses the shape."""
    name: str = ""
    """Name of the file without ``.py``; set when the file is loaded."""


@cache
def item_shapes() -> Mapping[str, ItemShape]:
    """Return the item shapes by every name that manifests use for them; their own names come first.

    Raises:
        ConfigError: two shapes have one name or one dataclass.
    """
    loaded = {name: _load(name) for name in SHAPES.names()}
    by_name: dict[str, ItemShape] = dict(loaded)
    for shape in loaded.values():
        for other in shape.also_called:
            if by_name.setdefault(other, shape) is not shape:
                raise ConfigError(
                    f"item shapes {by_name[other].name} and {shape.name} are both called '{other}'; rename one"
                )
    for shape in loaded.values():
        same = [other.name for other in loaded.values() if other.row_type is shape.row_type]
        if len(same) > 1:
            raise ConfigError(
                f"item shapes {' and '.join(same)} have one dataclass; give the second name in also_called"
            )
    return by_name


def _load(name: str) -> ItemShape:
    module = SHAPES.load(name)
    shape: ItemShape = SHAPES.get(name, ItemShape)
    if not issubclass(shape.row_type, Item):
        raise ConfigError(f"{module.__file__}: {shape.row_type.__name__} does not extend Item; add it")
    lacking = sorted({"item_id", "flags"} - {*getattr(shape.row_type, "__dataclass_fields__", ())})
    if lacking:
        raise ConfigError(f"{module.__file__}: {shape.row_type.__name__} is no dataclass with a {lacking[0]}; add it")
    return replace(shape, name=name)


def shape_of(listed: str, *, where: str) -> ItemShape:
    """Return the item shape with the name that a manifest gives.

    Raises:
        DataError: no shape has that name.
    """
    # Most manifests give the own name, and no other shape is loaded.
    if listed in SHAPES.names():
        return _load(listed)
    shapes = item_shapes()
    if listed not in shapes:
        raise DataError(f"{where}: item_shape '{listed}' is unknown; have: {', '.join(shapes)}; {HINT}")
    return shapes[listed]
