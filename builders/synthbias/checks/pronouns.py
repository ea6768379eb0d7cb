"""Checks of the pronouns that a sentence has."""

from __future__ import annotations

import re

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.word_lists import OTHER_PRONOUNS, PLURAL_PRONOUNS
from schemas.lexicon import gender_of_pronoun

_FIRST_PERSON = re.compile(r"\bI\b")


@SentenceCheck
def _one_pronoun(sentence: Sentence) -> str | None:
    if len(sentence.pronouns) == 1:
        return None
    return f"has {len(sentence.pronouns)} pronouns of he and she, not one"


@SentenceCheck
def _pronoun_last(sentence: Sentence) -> str | None:
    first = next(iter(sentence.pronouns), None)
    targets = sentence.targets
    if first is None or not targets or first.start > targets[-1].start:
        return None
    return f"has '{first.text}' before '{targets[-1].text}'"


@SentenceCheck
def _other_pronoun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(OTHER_PRONOUNS)
    return None if found is None else f"has the pronoun '{found}'"


@SentenceCheck
def _first_person(sentence: Sentence) -> str | None:
    return "has the pronoun 'I'" if _FIRST_PERSON.search(sentence.text) else None


@SentenceCheck
def _plural_pronoun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(PLURAL_PRONOUNS)
    return None if found is None else f"has the pronoun '{found}'"


@SentenceCheck
def _mixed_gender_pronouns(sentence: Sentence) -> str | None:
    forms = {gender_of_pronoun(mention.text): mention.text for mention in sentence.pronouns}
    listed = "' and '".join(forms.values())
    return f"has '{listed}'" if len(forms) > 1 else None


@SentenceCheck
def _several_pronouns(sentence: Sentence) -> str | None:
    marked = sentence.claimed.marked or ()
    return f"has {len(marked)} pronouns marked" if len(marked) > 1 else None


@SentenceCheck
def _unmarked_pronoun(sentence: Sentence) -> str | None:
    marked = sentence.claimed.marked
    if marked is None or len(sentence.pronouns) <= len(marked):
        return None
    found = next(mention for mention in sentence.pronouns if mention not in marked)
    return f"has '{found.text}' at character {found.start + 1}, which is not marked"
