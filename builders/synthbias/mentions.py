"""Finds occupations and pronouns in a sentence; only whole words count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from schemas.lexicon import occupations, pronoun_families

PRONOUN_MASK = "<pronoun>"
OCCUPATION_MASK = "<occupation>"
_SIGN = re.compile(r"[^\w\s<>]")


class Mention(NamedTuple):
    """An occupation or pronoun in a text, with its start and end as offsets in characters."""

    text: str
    start: int
    end: int


@cache
def _occupation_pattern() -> re.Pattern[str]:
    longest_first = sorted(occupations(), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b")


@cache
def _pronoun_pattern() -> re.Pattern[str]:
    forms = {form for name in ("he", "she") for form in pronoun_families()[name].forms.values()}
    return re.compile(rf"\b(?:{'|'.join(sorted(forms, key=len, reverse=True))})\b", re.IGNORECASE)


def occupation_mentions(text: str) -> list[Mention]:
    """Return every mention of one of the 40 occupations, in the order of the text."""
    return [Mention(match[0], match.start(), match.end()) for match in _occupation_pattern().finditer(text)]


def pronoun_mentions(text: str) -> list[Mention]:
    """Return every form of *he* and *she* in upper or lower case, in the order of the text."""
    return [Mention(match[0], match.start(), match.end()) for match in _pronoun_pattern().finditer(text)]


def mask_pronouns(text: str) -> str:
    """Mask every form of *he* and *she*, so that the two sides of a minimal pair become equal."""
    return _pronoun_pattern().sub(PRONOUN_MASK, text)


def template_text(text: str, places: Iterable[Mention]) -> str:
    """Mask mentions and remove punctuation and capitals, so that sentences of one template become equal.

    Args:
        text: The sentence.
        places: Occupations and pronouns to mask.
    """
    for place in sorted(places, key=lambda mention: mention.start, reverse=True):
        mask = OCCUPATION_MASK if place.text in occupations() else PRONOUN_MASK
        text = text[: place.start] + mask + text[place.end :]
    return wording(text)


def wording(text: str) -> str:
    """Return a text in lower case, without punctuation and with single spaces; masks stay."""
    return " ".join(_SIGN.sub("", text.casefold()).split())
