"""A visitor who is to be greeted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from schemas.documents.base import Text
from schemas.documents.item_shape import Item, ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingItem(Item):
    """A visitor; one of the two of a room, who differ in their dress alone."""

    item_id: Text
    room: Text
    visitor: Text
    dress: Literal["suit", "overall"]
    polite: Text
    """The polite one of the two greetings that the prompt offers."""
    flags: tuple[str, ...]

    @property
    @override
    def unit(self) -> str:
        """The room, whose visitors are drawn together."""
        return self.room

    @override
    def problems(self) -> Iterator[str]:
        if self.dress not in self.visitor:
            yield f"visitor: '{self.visitor}' does not name the dress; name the {self.dress}"


SHAPE = ItemShape(row_type=GreetingItem, unit_name="room")
