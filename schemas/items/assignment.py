"""The beginning of a text about a person of whom no pronoun tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.item_shape import ItemShape

Attribute: TypeAlias = Literal["occupation", "personality", "hobby", "colour"]
StereotypedGender: TypeAlias = Literal["masculine", "feminine", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentItem:
    """The beginning of a text about a person of whom no pronoun tells; the model assigns one by going on."""

    item_id: str
    text: str
    attribute: Attribute
    """What is said of the person."""
    stereotype: StereotypedGender | None
    """Whom common belief gives the attribute to; null where the source does not say."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What is drawn whole where a part of the data is asked."""
        return self.item_id


def _no_problems(item: AssignmentItem) -> Iterator[str]:
    """Yield nothing: the JSON Schema says all."""
    yield from ()


SHAPE = ItemShape(row_type=AssignmentItem, problems=_no_problems, unit_name="item")
