"""A word problem about one person in one pronoun family, with its answer."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.item_shape import ItemShape
from schemas.lexicon import PronounCase, PronounFamilyName
from schemas.lexicon.pronoun_variants import variant_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class WordProblemItem:
    """A word problem about one person in one pronoun family; one of the variants of its template."""

    item_id: str
    template_id: str
    """Shared by the variants, which differ in the pronoun family alone: the unit of resampling."""
    text: str
    family: PronounFamilyName
    cases: tuple[PronounCase, ...]
    """Of the pronouns that stand in the text, in their order."""
    answer: str
    """The right number, as a plain decimal: ``40000``, ``12.5``, ``-3``."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What is drawn whole where a part of the data is asked."""
        return self.template_id


SHAPE = ItemShape(row_type=WordProblemItem, problems=variant_problems, unit_name="set of variants")
