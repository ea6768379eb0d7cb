"""Finds sentences that repeat earlier ones, as they come and in little memory."""

from __future__ import annotations

import hashlib

from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import Finding
from builders.synthbias.checks.digest_table import DigestTable
from builders.synthbias.checks.sentence import Sentence, words_of

_BITS_OF_WORDING = 0xFFFFFFFF


class Duplicates:
    """Remembers the sentences that it is given, and finds those that repeat one of them.

    Give it one side of each minimal pair: the two sides are the same apart from the pronoun. A sentence with a finding
    is not remembered, so that a rejected sentence rejects no other.

    Args:
        template_cap: Largest number of sentences with one template, which is the text without its occupations and its
            pronoun; None for any number.
    """

    def __init__(self, *, template_cap: int | None = None) -> None:
        self._template_cap = template_cap
        self._wordings = DigestTable()
        self._templates = DigestTable()

    def __len__(self) -> int:
        return len(self._wordings)

    def add(self, sentence: Sentence) -> Finding | None:
        """Remember a sentence, or return why it is not new."""
        masked = _digest(_masked(sentence, masks_occupations=False))
        wording = _digest(" ".join(sentence.words)) & _BITS_OF_WORDING
        earlier = self._wordings.get(masked)
        if earlier is not None:
            if earlier == wording:
                return CATALOGUE["repeated_text"].finding(sentence, "an earlier candidate has the same text")
            reason = "an earlier candidate has the same text apart from the pronoun"
            return CATALOGUE["repeated_apart_from_pronoun"].finding(sentence, reason)
        if self._template_cap is not None:
            template = _digest(_masked(sentence, masks_occupations=True))
            n_earlier = self._templates.get(template) or 0
            if n_earlier >= self._template_cap:
                reason = f"has the template of {n_earlier} earlier candidates, which is the largest number"
                return CATALOGUE["repeated_template"].finding(sentence, reason)
            self._templates[template] = n_earlier + 1
        self._wordings[masked] = wording
        return None


def _masked(sentence: Sentence, *, masks_occupations: bool) -> str:
    """Return the words of a sentence with its pronouns masked, and with its occupations masked if wanted."""
    places = [*sentence.pronouns, *(sentence.occupations if masks_occupations else ())]
    pieces, end = [], 0
    for place in sorted(places, key=lambda mention: mention.start):
        mask = "p" if place in sentence.pronouns else "o"
        pieces += [*words_of(sentence.text[end : place.start]), f"<{mask}>"]
        end = place.end
    return " ".join((*pieces, *words_of(sentence.text[end:])))


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
