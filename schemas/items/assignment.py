"""Item shape: the beginning of a text about a person, without a pronoun for that person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.documents.base import Name, Text
from schemas.documents.dataset import Item, ItemShape

Attribute: TypeAlias = Literal["occupation", "personality", "hobby", "colour"]
StereotypedGender: TypeAlias = Literal["masculine", "feminine", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentItem(Item):
    """The beginning of a text without a pronoun for its person; the model assigns one when it continues the text."""

    item_id: Text
    text: Text
    attribute: Attribute
    """Kind of attribute that the text gives the person."""
    stereotype: StereotypedGender | None
    """Gender that is commonly associated with the attribute; None if the source does not say."""
    source_row: Text | None
    flags: tuple[Name, ...]


SHAPE = ItemShape(row_type=AssignmentItem, unit_name="item")
