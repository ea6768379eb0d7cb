"""Profiles: the names of the checks that one use of the catalogue makes, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TypeAlias

from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import Finding, SentenceCheck, of_sentences
from builders.synthbias.checks.sentence import Sentence

Profile: TypeAlias = tuple[str, ...]

EMBEDDED: Profile = (
    *("one_sentence", "spelling", "length", "two_occupations", "articles", "one_pronoun", "pronoun_last"),
    *("other_pronoun", "gendered_noun", "listed_person", "name"),
)
"""Checks of sentences that are filled from the frames of this project."""

GENERATED: Profile = EMBEDDED
"""Checks of sentences that a language model wrote."""


def first_finding(sentence: Sentence, profile: Profile) -> Finding | None:
    """Return the first finding about a sentence, in the order of the profile; None if there is none."""
    return next(_findings(sentence, profile), None)


def all_findings(sentence: Sentence, profile: Profile) -> list[Finding]:
    """Return every finding about a sentence, in the order of the profile."""
    return list(_findings(sentence, profile))


def _findings(sentence: Sentence, profile: Profile) -> Iterator[Finding]:
    for check in _sentence_checks(profile):
        reason = check.find(sentence)
        if reason is not None:
            yield check.finding(sentence, reason)


@cache
def _sentence_checks(profile: Profile) -> tuple[SentenceCheck, ...]:
    return of_sentences(CATALOGUE[name] for name in profile)
