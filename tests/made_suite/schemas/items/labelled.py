"""A text with the labels that it may get, which every item brings itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.item_shape import ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledItem:
    """A text to label."""

    item_id: str
    instruction: str
    text: str
    labels: tuple[str, ...]
    target: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The item itself."""
        return self.item_id


def _problems(item: LabelledItem) -> Iterator[str]:
    if item.target is not None and item.target not in item.labels:
        yield f"target: '{item.target}' is none of the labels; correct it"


SHAPE = ItemShape(row_type=LabelledItem, problems=_problems, unit_name="item")
