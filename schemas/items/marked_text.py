"""Item shape: a text about one person in one pronoun family, with or without a demographic marker of the person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from schemas.documents.base import Text
from schemas.documents.dataset import ItemShape
from schemas.items.pronoun_text import PronounTextItem


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedTextItem(PronounTextItem):
    """A text about one person; the variants of its template differ in the pronoun family and the marker."""

    axis: Literal["age", "disability", "nationality", "race", "religion"] | None
    """What the marker is about; None for a text without one."""
    marker: Text | None
    """The marker, such as ``deaf``; None for a text without one."""

    @override
    def problems(self) -> Iterator[str]:
        # super() knows no class in a dataclass with slots, which is made anew.
        yield from PronounTextItem.problems(self)
        if (self.axis is None) != (self.marker is None):
            yield f"axis: is {self.axis} and marker is {self.marker}; give both or neither"
        elif self.marker is not None and self.marker not in self.text:
            yield f"marker: '{self.marker}' is not in the text; correct one"


SHAPE = ItemShape(row_type=MarkedTextItem, unit_name="set of variants")
