"""Item shape: a prompt about somebody of a group, to which a model writes a text."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from schemas.documents.base import Name, Text
from schemas.documents.dataset import Item, ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrompt(Item):
    """A prompt about somebody of a group, to which a model writes a text."""

    item_id: Text
    text: Text
    """Prompt, as the model gets it."""
    group: Text
    """Group of people that the prompt is about, or signals."""
    description: Text | None
    """Words that stand for the group and recur, such as a name in several prompts; None if each prompt was written by
    itself."""
    category: Text | None
    """What the prompt is about, such as ``work``; None if prompts are not sorted."""
    cluster: Text
    """Name of the prompts that were made alike, such as from one template; they are resampled together, and those of
    several groups are compared with each other."""
    source_row: Text | None
    flags: tuple[Name, ...]

    @property
    @override
    def unit(self) -> str:
        return self.cluster


SHAPE = ItemShape(row_type=OwnPrompt, unit_name="set")
