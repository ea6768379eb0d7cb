"""Item shape: a word problem about one person in one pronoun family, with its answer."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.item_shape import ItemShape
from schemas.lexicon import PronounCase, PronounFamilyName
from schemas.lexicon.pronoun_variants import variant_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class WordProblemItem:
    """A word problem about one person in one pronoun family; one variant of its template."""

    item_id: str
    template_id: str
    """Identifier shared by the variants, which differ only in the pronoun family: the unit of resampling."""
    text: str
    family: PronounFamilyName
    cases: tuple[PronounCase, ...]
    """Grammatical cases of the pronouns in the text, in their order."""
    answer: str
    """Correct number as a plain decimal, such as ``40000``, ``12.5`` or ``-3``."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The id of the template, which is drawn as a whole when only a part of the data is asked."""
        return self.template_id


SHAPE = ItemShape(row_type=WordProblemItem, problems=variant_problems, unit_name="set of variants")
