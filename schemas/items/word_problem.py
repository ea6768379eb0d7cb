"""Item shape: a word problem about one person in one pronoun family, with its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Name, Text
from schemas.documents.dataset import Item, ItemShape
from schemas.lexicon import PronounCase, PronounFamilyName
from schemas.lexicon.pronoun_template import variant_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class WordProblemItem(Item):
    """A word problem about one person in one pronoun family; one variant of its template."""

    item_id: Text
    template_id: Text
    """Identifier shared by the variants, which differ only in the pronoun family: their cluster."""
    text: Text
    family: PronounFamilyName
    cases: Annotated[tuple[PronounCase, ...], MinLen(1)]
    """Grammatical cases of the pronouns in the text, in their order."""
    answer: Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,100}(\.[0-9]{1,100})?$")]
    """Correct number as a plain decimal, such as ``40000``, ``12.5`` or ``-3``."""
    source_row: Text | None
    flags: tuple[Name, ...]

    @property
    @override
    def unit(self) -> str:
        return self.template_id

    @override
    def problems(self) -> Iterator[str]:
        return variant_problems(self.text, self.family, self.cases, item_id=self.item_id, template_id=self.template_id)


SHAPE = ItemShape(row_type=WordProblemItem, unit_name="set of variants")
