"""The occupations and pronouns that a sentence mentions, as whole words."""

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


class Mentions(NamedTuple):
    """Everything of the lexicon that a text mentions, each in the order of the text."""

    occupations: list[Mention]
    """The 40 occupations, in lower case except *CEO*."""
    pronouns: list[Mention]
    """The forms of *he* and *she*, in upper or lower case."""


def mentions_in(text: str) -> Mentions:
    """Return every mention of an occupation and of a form of *he* or *she*."""
    mentions = Mentions([], [])
    for match in _pattern().finditer(text):
        mentions[match.lastindex == 2].append(Mention(match[0], match.start(), match.end()))
    return mentions


@cache
def _pattern() -> re.Pattern[str]:
    """Return one pattern for all mentions, so that a text is searched once; its groups: occupations, pronouns."""
    by_letter: dict[str, list[str]] = {}
    for name in sorted(occupations(), key=len, reverse=True):
        by_letter.setdefault(name[0], []).append(re.escape(name[1:]))
    # Grouped by first letter, the alternatives fail at once at most words.
    names = "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())
    forms = {form for family in ("he", "she") for form in pronoun_families()[family].forms.values()}
    pronouns = "|".join(sorted(forms, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:({names})|(?=[hsHS])((?i:{pronouns})))(?!\w)")


def masked(text: str, mentions: Iterable[Mention]) -> str:
    """Return a text with some of its mentions masked."""
    # From the end, so that the offsets of earlier mentions stay valid.
    for mention in sorted(mentions, key=lambda mention: mention.start, reverse=True):
        mask = OCCUPATION_MASK if mention.text in occupations() else PRONOUN_MASK
        text = text[: mention.start] + mask + text[mention.end :]
    return text


def wording(text: str) -> str:
    """Return a text in lower case, without punctuation and with single spaces; masks stay."""
    return " ".join(_SIGN.sub("", text.casefold()).split())
