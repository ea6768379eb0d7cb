"""A visitor who is to be greeted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from schemas.item_shape import ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingItem:
    """A visitor; one of the two of a room, who differ in their dress alone."""

    item_id: str
    room: str
    visitor: str
    dress: Literal["suit", "overall"]
    polite: str
    """The polite one of the two greetings that the prompt offers."""
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The room, whose visitors are drawn together."""
        return self.room


def _problems(item: GreetingItem) -> Iterator[str]:
    """Yield a rule that the JSON Schema cannot say."""
    if item.dress not in item.visitor:
        yield f"visitor: '{item.visitor}' does not name the dress; name the {item.dress}"


SHAPE = ItemShape(row_type=GreetingItem, problems=_problems, unit_name="room")
