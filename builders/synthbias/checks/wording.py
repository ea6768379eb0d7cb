"""Checks of how a sentence is written: its form, its length and the words that it must not have."""

from __future__ import annotations

import re

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.word_lists import GENDERED_NOUNS, OTHER_PRONOUNS, word_list

MIN_WORDS = 8
MAX_WORDS = 24

_ONE_SENTENCE = re.compile(r"[A-Z][^.!?]*\.")
_UNPLAIN = re.compile(r"[^A-Za-z ,.]|  | [,.]|,[^ ]")
_INNER_CAPITAL = re.compile(r"(?<!^)\b[A-Z]\w*")
_CAPITALISED = word_list("CEO Monday Tuesday Wednesday Thursday Friday Saturday Sunday")


def _one_sentence(sentence: Sentence) -> str | None:
    if _ONE_SENTENCE.fullmatch(sentence.text):
        return None
    return "is not one sentence from a capital to a full stop"


def _spelling(sentence: Sentence) -> str | None:
    if _UNPLAIN.search(sentence.text):
        return "has a sign, a doubled or a missing space that a plain sentence does not have"
    return None


def _length(sentence: Sentence) -> str | None:
    n_words = len(sentence.words)
    if MIN_WORDS <= n_words <= MAX_WORDS:
        return None
    return f"has {n_words} words, not {MIN_WORDS} to {MAX_WORDS}"


def _other_pronoun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(OTHER_PRONOUNS)
    return None if found is None else f"has the pronoun '{found}'"


def _gendered_noun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(GENDERED_NOUNS)
    return None if found is None else f"has the gendered noun '{found}'"


def _name(sentence: Sentence) -> str | None:
    found = [word for word in _INNER_CAPITAL.findall(sentence.text) if word not in _CAPITALISED]
    return f"has a name: '{found[0]}'" if found else None


CHECKS = (
    SentenceCheck(
        name="one_sentence",
        description="is not one sentence from a capital to a full stop",
        requirement="is one sentence, from a capital to a full stop",
        severity="warning",
        certainty="exact",
        find=_one_sentence,
    ),
    SentenceCheck(
        name="spelling",
        description="has a sign, a doubled or a missing space that a plain sentence does not have",
        requirement="has plain letters, commas and single spaces only",
        severity="warning",
        certainty="exact",
        find=_spelling,
    ),
    SentenceCheck(
        name="length",
        description=f"has fewer than {MIN_WORDS} or more than {MAX_WORDS} words",
        requirement=f"has {MIN_WORDS} to {MAX_WORDS} words",
        severity="warning",
        certainty="exact",
        find=_length,
    ),
    SentenceCheck(
        name="other_pronoun",
        description="has a form of I, you, we or they",
        requirement="has no I, you, we or they in any form",
        severity="warning",
        certainty="exact",
        find=_other_pronoun,
    ),
    SentenceCheck(
        name="gendered_noun",
        description="has a noun that names a gender",
        requirement="has no noun that names a gender",
        severity="error",
        certainty="heuristic",
        find=_gendered_noun,
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
