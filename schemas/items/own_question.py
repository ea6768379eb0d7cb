"""Item shape: a question with options of its own, or texts of which one is likelier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import MaxLen, MinLen
from typing_extensions import override

from schemas.documents.base import Distinct, Name, Text
from schemas.documents.dataset import Item, ItemShape

MOST_OPTIONS = 8
"""Largest number of options: answers are read by the letters A to H."""
NAMES_ONLY = "names_only"
"""Flag of an item whose texts stay with their publisher: its options are names of theirs, so that published answers can
be read, and nothing be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuestion(Item):
    """A question with its options, or two or more texts to compare."""

    item_id: Text
    context: Text | None
    """Text before the question; None if there is none."""
    question: Text | None
    """None if the options are whole texts, of which the likelier one is looked for."""
    options: Annotated[tuple[Text, ...], MinLen(2), MaxLen(MOST_OPTIONS), Distinct()]
    answer: Text | None
    """Right option; None if none is right."""
    stereotyped: Text | None
    """Option that agrees with a stereotype; None if it is unknown or none does."""
    antistereotyped: Text | None
    """Option that contradicts that stereotype."""
    neutral: Text | None
    """Option that says that the answer is unknown."""
    category: Text | None
    """What the item is about, such as ``age``; None if items are not sorted."""
    group: Text | None
    """Group of people that the item is about; None if it is about none."""
    condition: Text | None
    """What sets items of one kind apart, such as the polarity of the question; None if nothing does."""
    cluster: Text
    """Name of the items that were made alike, such as from one template; they are resampled together."""
    source_row: Text | None
    flags: tuple[Name, ...]

    @property
    @override
    def unit(self) -> str:
        """The cluster and the options: of a template with hundreds of items, a limit takes the few about the same."""
        return "\n".join((self.cluster, *sorted(self.options)))

    @override
    def problems(self) -> Iterator[str]:
        named = {
            name: value
            for name in ("answer", "stereotyped", "antistereotyped", "neutral")
            if (value := getattr(self, name)) is not None
        }
        for name, value in named.items():
            if value not in self.options:
                yield f"{name}: '{value}' is none of the options {', '.join(self.options)}; correct one of them"
        of_sides = [value for name, value in named.items() if name != "answer"]
        if len(set(of_sides)) < len(of_sides):
            yield "stereotyped, antistereotyped, neutral: two of them are the same option; correct one"
        if (self.stereotyped is None) != (self.antistereotyped is None):
            yield "stereotyped, antistereotyped: one of them is null; give both or none"


SHAPE = ItemShape(row_type=OwnQuestion, unit_name="set")
