"""A visitor who is to be greeted."""

from dataclasses import dataclass

from schemas.documents.item_shape import Item, ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingItem(Item):
    """A visitor; one of the two of a room, who differ in their dress alone."""

    item_id: str
    room: str
    dress: str
    flags: tuple[str, ...]


SHAPE = ItemShape(row_type=GreetingItem, unit_name="visitor")
