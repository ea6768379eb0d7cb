"""A text about one person in one pronoun family, to be continued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.item_shape import ItemShape
from schemas.lexicon import PronounCase, PronounFamilyName
from schemas.lexicon.pronoun_variants import variant_problems

Antecedent: TypeAlias = Literal["masculine_name", "feminine_name", "neutral_name", "distal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounTextItem:
    """A text about one person in one pronoun family, to be gone on with; one of the variants of its template."""

    item_id: str
    template_id: str
    """Shared by the variants, which differ in the pronoun family alone: the unit of resampling."""
    text: str
    family: PronounFamilyName
    cases: tuple[PronounCase, ...]
    """Of the pronouns that stand in the text, in their order."""
    antecedent: Antecedent | None
    """How the person is introduced: by a name that is mostly given to men, to women, to both, or by a description.
    Null where nobody is introduced or the source does not tell."""
    topic: str | None
    source_row: str | None
    """Where the template comes from: file and line."""
    flags: tuple[str, ...]
    """Rules of the manifest's flags that hold for this item."""

    @property
    def unit(self) -> str:
        """What is drawn whole where a part of the data is asked."""
        return self.template_id


SHAPE = ItemShape(
    row_type=PronounTextItem,
    problems=variant_problems,
    unit_name="set of variants",
    also_called=("recognition", "continuation"),
)
