"""Derives the grammatical case of *her* and *his* from the neighbouring words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from biasboard.ground.files import packaged_words
from schemas.lexicon import PronounCase, cases_of, families_of

_WORDS = {name: frozenset(words) for name, words in packaged_words("builders", "pronoun_case_words.toml").items()}
_NO_NOUN = _WORDS["no_noun"]
"""Words that cannot follow a possessive such as *her* as the first word of its noun phrase."""
_PLACES = _WORDS["places"]
"""Words that can be nouns or adverbs of place, as in *sold her home* and *took her home*."""
TWO_OBJECTS = _WORDS["two_objects"]
"""Verbs that can be followed by a person and then by a noun phrase or a bare verb."""
_GIVES_MONEY = frozenset({"give", "cost", "charge", "pay", "owe", "lend", "send"})
_CURRENCIES = frozenset("$\N{POUND SIGN}\N{EURO SIGN}")


@cache
def cases_of_form(form: str) -> frozenset[PronounCase]:
    """Return every grammatical case that a form of *he* or *she* can have."""
    return frozenset(case for family in families_of(form) for case in cases_of(form, family))


class UnsettledCaseError(Exception):
    """A pronoun whose case the neighbouring words do not determine."""


def case_by_neighbours(before: str, form: str, after: str, *, lemma_of: Callable[[str], str]) -> PronounCase:
    """Return the case of a form of *he* or *she*, given the tokens next to it.

    Args:
        before: Token before the pronoun, in lower case; empty at the start of the text.
        form: The pronoun in lower case.
        after: Token after the pronoun, a word or punctuation, in lower case; empty at the end of the text.
        lemma_of: Returns the lemma of a verb in any form, and something else or nothing for other words.

    Raises:
        UnsettledCaseError: the two tokens allow more than one case.

    >>> case_by_neighbours("on", "her", "desk", lemma_of=str), case_by_neighbours("saw", "her", "at", lemma_of=str)
    ('possessive_dependent', 'accusative')
    """
    cases = cases_of_form(form)
    if len(cases) == 1:
        return next(iter(cases))
    if after in ("'", "\N{RIGHT SINGLE QUOTATION MARK}", "-"):
        raise UnsettledCaseError(f"'{form}' stands before '{after}'")
    takes_noun = (after[:1].isalnum() or after in _CURRENCIES) and after not in _NO_NOUN
    if form == "his":
        return "possessive_dependent" if takes_noun or after in _PLACES else "possessive_independent"
    if after in _PLACES:
        raise UnsettledCaseError(f"'her {after}' can be read in two ways")
    if not takes_noun:
        if not after and not any(mark in before for mark in ".,"):
            raise UnsettledCaseError("the text breaks off after 'her'")
        return "accusative"
    lemma = lemma_of(before)
    if after in _CURRENCIES and lemma in _GIVES_MONEY:
        return "accusative"
    if lemma in TWO_OBJECTS:
        raise UnsettledCaseError(f"'{before} her {after}' can be read in two ways")
    return "possessive_dependent"
