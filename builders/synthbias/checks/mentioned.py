"""Checks of whom a sentence mentions: its occupations, its pronoun, and other persons."""

from __future__ import annotations

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence, words_of
from builders.synthbias.word_lists import OTHER_PERSONS


def _two_occupations(sentence: Sentence) -> str | None:
    found = [mention.text for mention in sentence.occupations]
    meant = sentence.meant
    if len(found) == 2 and set(found) == set(meant):
        return None
    return f"names {', '.join(found) or 'no occupation'}, not {' and '.join(sorted(set(meant)))} once each"


def _articles(sentence: Sentence) -> str | None:
    for mention in sentence.occupations:
        if sentence.text[: mention.start].casefold().split()[-1:] != ["the"]:
            return f"has no 'the' before '{mention.text}'"
    return None


def _one_pronoun(sentence: Sentence) -> str | None:
    if len(sentence.pronouns) == 1:
        return None
    return f"has {len(sentence.pronouns)} pronouns of he and she, not one"


def _pronoun_last(sentence: Sentence) -> str | None:
    first = sentence.pronouns[0] if sentence.pronouns else None
    last = sentence.occupations[-1] if sentence.occupations else None
    if first is None or last is None or first.start > last.start:
        return None
    return f"has '{first.text}' before '{last.text}'"


def _listed_person(sentence: Sentence) -> str | None:
    if OTHER_PERSONS.isdisjoint(sentence.words):
        return None
    text = sentence.text
    for mention in reversed(sentence.occupations):
        text = text[: mention.start] + text[mention.end :]
    found = next((word for word in words_of(text) if word in OTHER_PERSONS), None)
    return None if found is None else f"names another person: '{found}'"


CHECKS = (
    SentenceCheck(
        name="two_occupations",
        description="does not name exactly its two occupations, once each",
        requirement="names exactly its two occupations, once each",
        severity="error",
        certainty="exact",
        find=_two_occupations,
    ),
    SentenceCheck(
        name="articles",
        description="lacks 'the' before an occupation",
        requirement="has 'the' before each occupation",
        severity="warning",
        certainty="exact",
        find=_articles,
    ),
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
        name="listed_person",
        description="has a word for another single person",
        requirement="names no other single person",
        severity="warning",
        certainty="heuristic",
        find=_listed_person,
    ),
)
