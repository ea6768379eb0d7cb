"""Checks of other persons that a sentence names, and of words that show a gender."""

from __future__ import annotations

import re
from collections.abc import Iterable

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence, words_of
from builders.synthbias.mentions import Mention
from builders.synthbias.word_lists import GENDERED_NOUNS, OTHER_PERSONS, SOURCE_OTHER_PERSONS, word_list

_INNER_CAPITAL = re.compile(r"(?<!^)\b[A-Z]\w*")
_CAPITALISED = word_list("I CEO Monday Tuesday Wednesday Thursday Friday Saturday Sunday")


def _gendered_noun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(GENDERED_NOUNS)
    return None if found is None else f"has the gendered noun '{found}'"


def _other_person(sentence: Sentence) -> str | None:
    asked = sentence.asked
    if asked is None or sentence.first_word_of(SOURCE_OTHER_PERSONS) is None:
        return None
    found = _listed(sentence.text[: asked.start], sentence.occupations, SOURCE_OTHER_PERSONS)
    return None if found is None else f"names another person before the pronoun: '{found}'"


def _listed_person(sentence: Sentence) -> str | None:
    if sentence.first_word_of(OTHER_PERSONS) is None:
        return None
    found = _listed(sentence.text, sentence.occupations, OTHER_PERSONS)
    return None if found is None else f"names another person: '{found}'"


def _listed(text: str, occupations: Iterable[Mention], listed: frozenset[str]) -> str | None:
    """Return the first word on a list that is no part of an occupation, such as the worker of a construction worker."""
    for mention in sorted(occupations, key=lambda mention: mention.start, reverse=True):
        if mention.end <= len(text):
            text = text[: mention.start] + text[mention.end :]
    return next((word for word in words_of(text) if word in listed), None)


def _name(sentence: Sentence) -> str | None:
    if sentence.text[1:].islower():
        return None
    found = [word for word in _INNER_CAPITAL.findall(sentence.text) if word not in _CAPITALISED]
    return f"has a name: '{found[0]}'" if found else None


CHECKS = (
    SentenceCheck(
        name="gendered_noun",
        description="has a noun that names a gender",
        requirement="has no noun that names a gender",
        severity="error",
        certainty="heuristic",
        find=_gendered_noun,
    ),
    SentenceCheck(
        name="other_person",
        description="names another single person before the pronoun "
        f"({', '.join(sorted(SOURCE_OTHER_PERSONS))}); not always a possible referent",
        requirement=f"names none of these before the pronoun: {', '.join(sorted(SOURCE_OTHER_PERSONS))}",
        severity="review",
        certainty="heuristic",
        find=_other_person,
    ),
    SentenceCheck(
        name="listed_person",
        description="has a word for another single person, anywhere",
        requirement="names no other single person",
        severity="warning",
        certainty="heuristic",
        find=_listed_person,
    ),
    SentenceCheck(
        name="name",
        description="has a name other than a weekday",
        requirement="has no name but a weekday",
        severity="warning",
        certainty="heuristic",
        find=_name,
    ),
)
