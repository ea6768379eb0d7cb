"""The rules for texts that exist in several pronoun families, for items of any shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from schemas.lexicon import PronounCase, PronounFamilyName, pronoun_families


class Variant(Protocol):
    """A text in one pronoun family; the other variants of its template differ only in the family."""

    @property
    def item_id(self) -> str:
        """The identifier of the variant, which begins with the identifier of the template."""

    @property
    def template_id(self) -> str:
        """The identifier that all variants of one template share."""

    @property
    def text(self) -> str:
        """The text with the pronouns filled in."""

    @property
    def family(self) -> PronounFamilyName:
        """The pronoun family of the text."""

    @property
    def cases(self) -> tuple[PronounCase, ...]:
        """The grammatical cases of the pronouns, in their order in the text."""


def variant_problems(item: Variant) -> Iterator[str]:
    """Yield a message for each rule that a variant breaks."""
    family = pronoun_families()[item.family]
    forms = "|".join(map(re.escape, {*family.forms.values(), *family.gifi_repo.values()}))
    n_found = len(re.findall(rf"\b(?:{forms})\b", item.text, re.IGNORECASE))
    if n_found < len(item.cases):
        yield f"cases: lists {len(item.cases)} pronouns, the text has {n_found} of family '{item.family}'; correct one"
    if not item.item_id.startswith(item.template_id):
        yield f"item_id: '{item.item_id}' does not begin with its template_id '{item.template_id}'; correct one"
