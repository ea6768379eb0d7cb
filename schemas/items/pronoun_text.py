"""Item shape: a text about one person in one pronoun family, to be continued by the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import MinLen
from typing_extensions import override

from schemas.documents.base import Name, Text
from schemas.documents.dataset import Item, ItemShape
from schemas.lexicon import PronounCase, PronounFamilyName
from schemas.lexicon.pronoun_template import variant_problems

Antecedent: TypeAlias = Literal["masculine_name", "feminine_name", "neutral_name", "distal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounTextItem(Item):
    """A text about one person in one pronoun family, to be continued by the model; one variant of its template."""

    item_id: Text
    template_id: Text
    """Identifier shared by the variants, which differ only in the pronoun family: their cluster."""
    text: Text
    family: PronounFamilyName
    cases: Annotated[tuple[PronounCase, ...], MinLen(1)]
    """Grammatical cases of the pronouns in the text, in their order."""
    antecedent: Antecedent | None
    """How the person is introduced: by a name mostly given to men, to women or to both, or by a description; None if
    nobody is introduced or the source does not say."""
    topic: Text | None
    source_row: Text | None
    """File and line of the template in the source."""
    flags: tuple[Name, ...]
    """Names of the manifest's flag rules that apply to this item."""

    @property
    @override
    def unit(self) -> str:
        return self.template_id

    @override
    def problems(self) -> Iterator[str]:
        return variant_problems(self.text, self.family, self.cases, item_id=self.item_id, template_id=self.template_id)


SHAPE = ItemShape(row_type=PronounTextItem, unit_name="set of variants", also_called=("recognition", "continuation"))
