"""Item shape: an input of a classification task, with the labels that it may get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import MaxLen, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Distinct, Name, Text
from schemas.documents.dataset import Item, ItemShape

ContentFree: TypeAlias = Literal["placeholder", "random_words", "english_words"]
"""Kinds of inputs without content: a placeholder such as ``N/A``, words drawn from the inputs of the task, or words
drawn from a list of general English words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelItem(Item):
    """An input of a classification task, with the labels that it may get."""

    item_id: Text
    instruction: str
    """Instruction of the task, the same for each of its items, as the source has it."""
    text: str
    """Input, as the source has it; a placeholder without content may be empty."""
    labels: Annotated[tuple[Annotated[str, StringConstraints(pattern=r"\S")], ...], MinLen(2), MaxLen(64), Distinct()]
    """Labels that the item may get, spelt and ordered as in the task; most tasks give all items the same."""
    target: str | None
    """Right label; None for an input without content."""
    category: Text
    """Kind of task, such as ``Sentiment Analysis``, the same for each of its items."""
    equivalent_labels: bool
    """True if the labels only number the choices, as letters of options do, so that no meaning makes one likelier."""
    content_free: ContentFree | None
    """Kind of input if it has no content; None for all others."""
    source_row: Text | None
    flags: tuple[Name, ...]

    @override
    def problems(self) -> Iterator[str]:
        if self.content_free is None:
            if self.target is None:
                yield "target: null, and only an input without content has no right label; add it"
            if not self.text.strip():
                yield f"text: {self.text!r} is empty, and only an input without content may be; drop the item"
        elif self.target is not None:
            yield f"target: '{self.target}', and an input without content has no right label; set it to null"
        if self.target is not None and self.target not in self.labels:
            yield f"target: '{self.target}' is none of the labels {', '.join(self.labels)}; correct one of them"


SHAPE = ItemShape(row_type=LabelItem, unit_name="item")
