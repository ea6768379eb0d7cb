"""Item shape: the beginning of a text about a person, without a pronoun for that person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.item_shape import ItemShape

Attribute: TypeAlias = Literal["occupation", "personality", "hobby", "colour"]
StereotypedGender: TypeAlias = Literal["masculine", "feminine", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentItem:
    """The beginning of a text without a pronoun for its person; the model assigns one when it continues the text."""

    item_id: str
    text: str
    attribute: Attribute
    """Kind of attribute that the text gives the person."""
    stereotype: StereotypedGender | None
    """Gender that is commonly associated with the attribute; None if the source does not say."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The id of the item, because items are drawn one by one when only a part of the data is asked."""
        return self.item_id


def _no_problems(item: AssignmentItem) -> Iterator[str]:
    """Yield nothing: the JSON Schema covers every rule of this shape."""
    yield from ()


SHAPE = ItemShape(row_type=AssignmentItem, problems=_no_problems, unit_name="item")
