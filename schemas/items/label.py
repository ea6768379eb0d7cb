"""Item shape: an input of a classification task, with the labels that it may get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.item_shape import ItemShape

ContentFree: TypeAlias = Literal["placeholder", "random_words"]
"""Kinds of inputs without content: a placeholder such as ``N/A``, or words drawn from the inputs of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelItem:
    """An input of a classification task, with the labels that it may get."""

    item_id: str
    instruction: str
    """Instruction of the task, the same for each of its items, as the source has it."""
    text: str
    """Input, as the source has it; a placeholder without content may be empty."""
    labels: tuple[str, ...]
    """Labels that the item may get, spelt and ordered as in the task; most tasks give all items the same."""
    target: str | None
    """Right label; None for an input without content."""
    category: str
    """Kind of task, such as ``Sentiment Analysis``, the same for each of its items."""
    equivalent_labels: bool
    """True if the labels only name places, such as the letters of options, so that none is likelier by its meaning."""
    content_free: ContentFree | None
    """Kind of input if it has no content; None for all others."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The id of the item, because items are drawn one by one when only a part of the data is asked."""
        return self.item_id


def _problems(item: LabelItem) -> Iterator[str]:
    if item.content_free is None:
        if item.target is None:
            yield "target: null, and only an input without content has no right label; add it"
        if not item.text.strip():
            yield f"text: {item.text!r} is empty, and only an input without content may be; drop the item"
    elif item.target is not None:
        yield f"target: '{item.target}', and an input without content has no right label; set it to null"
    if item.target is not None and item.target not in item.labels:
        yield f"target: '{item.target}' is none of the labels {', '.join(item.labels)}; correct one of them"


SHAPE = ItemShape(row_type=LabelItem, problems=_problems, unit_name="item")
