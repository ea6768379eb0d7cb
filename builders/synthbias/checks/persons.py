"""Checks of other persons that a sentence names, and of words that show a gender."""

from __future__ import annotations

import re
from functools import partial

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence, words_of
from builders.synthbias.word_lists import GENDERED_NOUNS, OTHER_PERSONS, SOURCE_OTHER_PERSONS, word_list

_INNER_CAPITAL = re.compile(r"(?<!^)\b[A-Z]\w*")
_CAPITALISED = word_list("I CEO Monday Tuesday Wednesday Thursday Friday Saturday Sunday")


@SentenceCheck
def _gendered_noun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(GENDERED_NOUNS)
    return None if found is None else f"has the gendered noun '{found}'"


@partial(SentenceCheck, persons=", ".join(sorted(SOURCE_OTHER_PERSONS)))
def _other_person(sentence: Sentence) -> str | None:
    asked = sentence.asked
    person = None if asked is None else _person(sentence, SOURCE_OTHER_PERSONS, sentence.text[: asked.start])
    return None if person is None else f"names another person before the pronoun: '{person}'"


@SentenceCheck
def _listed_person(sentence: Sentence) -> str | None:
    person = _person(sentence, OTHER_PERSONS, sentence.text)
    return None if person is None else f"names another person: '{person}'"


def _person(sentence: Sentence, listed: frozenset[str], text: str) -> str | None:
    """Return the first listed word in the beginning of a sentence that is no part of an occupation.

    The worker of a construction worker is no other person.
    """
    if sentence.first_word_of(listed) is None:
        return None
    for mention in reversed(sentence.occupations):
        if mention.end <= len(text):
            text = text[: mention.start] + text[mention.end :]
    return next((word for word in words_of(text) if word in listed), None)


@SentenceCheck
def _name(sentence: Sentence) -> str | None:
    if sentence.text[1:].islower():
        return None
    found = [word for word in _INNER_CAPITAL.findall(sentence.text) if word not in _CAPITALISED]
    return f"has a name: '{found[0]}'" if found else None
