"""Checks of the pronouns that a sentence has."""

from __future__ import annotations

import re

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.word_lists import OTHER_PRONOUNS, PLURAL_PRONOUNS
from schemas.lexicon import gender_of_pronoun

_FIRST_PERSON = re.compile(r"\bI\b")


def _one_pronoun(sentence: Sentence) -> str | None:
    if len(sentence.pronouns) == 1:
        return None
    return f"has {len(sentence.pronouns)} pronouns of he and she, not one"


def _pronoun_last(sentence: Sentence) -> str | None:
    first = next(iter(sentence.pronouns), None)
    targets = sentence.targets
    if first is None or not targets or first.start > targets[-1].start:
        return None
    return f"has '{first.text}' before '{targets[-1].text}'"


def _other_pronoun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(OTHER_PRONOUNS)
    return None if found is None else f"has the pronoun '{found}'"


def _first_person(sentence: Sentence) -> str | None:
    return "has the pronoun 'I'" if _FIRST_PERSON.search(sentence.text) else None


def _plural_pronoun(sentence: Sentence) -> str | None:
    found = sentence.first_word_of(PLURAL_PRONOUNS)
    return None if found is None else f"has the pronoun '{found}'"


def _mixed_gender_pronouns(sentence: Sentence) -> str | None:
    forms = {gender_of_pronoun(mention.text): mention.text for mention in sentence.pronouns}
    listed = "' and '".join(forms.values())
    return f"has '{listed}'" if len(forms) > 1 else None


def _several_pronouns(sentence: Sentence) -> str | None:
    marked = sentence.claimed.marked or ()
    return f"has {len(marked)} pronouns marked" if len(marked) > 1 else None


def _unmarked_pronoun(sentence: Sentence) -> str | None:
    marked = sentence.claimed.marked
    if marked is None or len(sentence.pronouns) <= len(marked):
        return None
    found = next(mention for mention in sentence.pronouns if mention not in marked)
    return f"has '{found.text}' at character {found.start + 1}, which is not marked"


CHECKS = (
    SentenceCheck(
        name="one_pronoun",
        description="has no form of he or she, or several",
        requirement="has exactly one form of he or she",
        severity="error",
        certainty="exact",
        find=_one_pronoun,
    ),
    SentenceCheck(
        name="pronoun_last",
        description="has its pronoun before an occupation",
        requirement="has its pronoun after both occupations",
        severity="error",
        certainty="exact",
        find=_pronoun_last,
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
        name="first_person",
        description="has the word I",
        requirement="has no word I",
        severity="warning",
        certainty="exact",
        find=_first_person,
    ),
    SentenceCheck(
        name="plural_pronoun",
        description="has a form of they",
        requirement="has no form of they",
        severity="warning",
        certainty="exact",
        find=_plural_pronoun,
    ),
    SentenceCheck(
        name="mixed_gender_pronouns",
        description="has pronouns of both genders",
        requirement="has pronouns of one gender",
        severity="error",
        certainty="exact",
        find=_mixed_gender_pronouns,
    ),
    SentenceCheck(
        name="several_pronouns",
        description="has more than one pronoun marked; the first one is asked about",
        requirement="has one pronoun marked",
        severity="note",
        certainty="exact",
        find=_several_pronouns,
    ),
    SentenceCheck(
        name="unmarked_pronoun",
        description="has a form of he or she that is not marked",
        requirement="has every form of he and she marked",
        severity="warning",
        certainty="exact",
        find=_unmarked_pronoun,
    ),
)
