"""The rules for texts that exist in several pronoun families, for items of any shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from schemas.lexicon import PronounCase, PronounFamilyName, pronoun_families


def variant_problems(
    text: str, family: PronounFamilyName, cases: Sequence[PronounCase], *, item_id: str, template_id: str
) -> Iterator[str]:
    """Yield a line for each rule that a text in one pronoun family breaks.

    Args:
        text: Text with the pronouns filled in.
        family: Pronoun family of the text, in which alone it differs from the other variants of its template.
        cases: Grammatical cases of the pronouns, in their order in the text.
        item_id: Identifier of the variant, which begins with that of the template.
        template_id: Identifier that all variants of one template share.
    """
    entry = pronoun_families()[family]
    forms = "|".join(map(re.escape, {*entry.forms.values(), *entry.gifi_repo.values()}))
    n_forms = len(re.findall(rf"\b(?:{forms})\b", text, re.IGNORECASE))
    if n_forms < len(cases):
        yield f"cases: lists {len(cases)} pronouns, the text has {n_forms} of family '{family}'; correct one"
    if not item_id.startswith(template_id):
        yield f"item_id: '{item_id}' does not begin with its template_id '{template_id}'; correct one"
