"""Finds occupations and pronouns in a sentence; both count as whole words only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from schemas.lexicon import occupations, pronoun_families

PRONOUN_MASK = "<pronoun>"
OCCUPATION_MASK = "<occupation>"


class Mention(NamedTuple):
    """A word or name where it stands in a text, offsets in characters."""

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
    """Every mention of one of the 40 occupations, in order."""
    return [Mention(match[0], match.start(), match.end()) for match in _occupation_pattern().finditer(text)]


def pronoun_mentions(text: str) -> list[Mention]:
    """Every form of *he* and *she*, in order; capitals count too."""
    return [Mention(match[0], match.start(), match.end()) for match in _pronoun_pattern().finditer(text)]


def mask_pronouns(text: str) -> str:
    """The text with every form of *he* and *she* replaced: equal for the two sides of a minimal pair."""
    return _pronoun_pattern().sub(PRONOUN_MASK, text)


def template_text(text: str, places: Iterable[Mention]) -> str:
    """The text with some mentions masked, without punctuation and capitals: equal for sentences of one template.

    Args:
        text: The sentence.
        places: The occupations and pronouns to mask.
    """
    for place in sorted(places, key=lambda mention: mention.start, reverse=True):
        mask = OCCUPATION_MASK if place.text in occupations() else PRONOUN_MASK
        text = text[: place.start] + mask + text[place.end :]
    return " ".join(re.sub(r"[^\w\s<>]", "", text.casefold()).split())
