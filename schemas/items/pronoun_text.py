"""Item shape: a text about one person in one pronoun family, to be continued by the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.item_shape import ItemShape
from schemas.lexicon import PronounCase, PronounFamilyName
from schemas.lexicon.pronoun_variants import variant_problems

Antecedent: TypeAlias = Literal["masculine_name", "feminine_name", "neutral_name", "distal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounTextItem:
    """A text about one person in one pronoun family, to be continued by the model; one variant of its template."""

    item_id: str
    template_id: str
    """Identifier shared by the variants, which differ only in the pronoun family: the unit of resampling."""
    text: str
    family: PronounFamilyName
    cases: tuple[PronounCase, ...]
    """Grammatical cases of the pronouns in the text, in their order."""
    antecedent: Antecedent | None
    """Way in which the person is introduced: by a name that is mostly given to men, to women or to both, or by a
    description; None if nobody is introduced or the source does not say."""
    topic: str | None
    source_row: str | None
    """File and line of the template in the source."""
    flags: tuple[str, ...]
    """Names of the manifest's flag rules that apply to this item."""

    @property
    def unit(self) -> str:
        """The id of the template, which is drawn as a whole when only a part of the data is asked."""
        return self.template_id


SHAPE = ItemShape(
    row_type=PronounTextItem,
    problems=variant_problems,
    unit_name="set of variants",
    also_called=("recognition", "continuation"),
)
