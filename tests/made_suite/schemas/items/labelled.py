"""A text with the labels that it may get, which every item brings itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from schemas.documents.base import Text
from schemas.documents.dataset import Item, ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledItem(Item):
    """A text to label."""

    item_id: Text
    instruction: str
    text: str
    labels: tuple[str, ...]
    target: str | None
    flags: tuple[str, ...]

    @override
    def problems(self) -> Iterator[str]:
        if self.target is not None and self.target not in self.labels:
            yield f"target: '{self.target}' is none of the labels; correct it"


SHAPE = ItemShape(row_type=LabelledItem, unit_name="item")
