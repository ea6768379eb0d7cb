"""Item shape: a text in German, Spanish or French about one person in one pronoun family, to be continued."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen
from typing_extensions import override

from schemas.documents.base import Text
from schemas.documents.dataset import Item, ItemShape
from schemas.lexicon.languages import LANGUAGE_CODES, Language, families_in, families_with


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageTextItem(Item):
    """A text in a language other than English about one person in one pronoun family; one variant of its template."""

    item_id: Text
    template_id: Text
    """Identifier shared by the variants, which differ only in the pronoun family: their cluster."""
    language: Language
    text: Text
    family: Text
    """Pronoun family of the text, one of those of its language."""
    cases: Annotated[tuple[Text, ...], MinLen(1)]
    """Grammatical cases of the pronouns in the text, in their order."""
    ending: Literal["free", "bound"]
    """``bound`` if the grammar demands a pronoun or a noun phrase next, ``free`` if the language lets a sentence go on
    without a subject."""
    flags: tuple[Text, ...]

    @property
    @override
    def unit(self) -> str:
        return self.template_id

    @override
    def problems(self) -> Iterator[str]:
        families = families_in(self.language)
        if self.family not in families:
            yield f"family: '{self.family}' is not in the lexicon of {self.language}; have: {', '.join(families)}"
            return
        forms = families[self.family].forms
        if lacking := [case for case in self.cases if case not in forms]:
            yield f"cases: family '{self.family}' has no {lacking[0]}; have: {', '.join(forms)}"
            return
        words = [
            word for word in re.findall(r"[^\W\d_]+", self.text) if self.family in families_with(word, self.language)
        ]
        if len(words) < len(self.cases):
            yield (
                f"cases: lists {len(self.cases)} pronouns, the text has {len(words)} of family '{self.family}'; "
                "correct one"
            )
        if not self.item_id.startswith(self.template_id):
            yield f"item_id: '{self.item_id}' does not begin with its template_id '{self.template_id}'; correct one"


SHAPE = ItemShape(
    row_type=LanguageTextItem,
    unit_name="set of variants",
    also_called=tuple(f"{language}_recognition" for language in LANGUAGE_CODES),
)
