"""All checks by name, and what the checks of a profile find."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

# "from builders.synthbias.checks import ..." would be a circle, since the package imports this module.
import builders.synthbias.checks.case_agreement as case_agreement
import builders.synthbias.checks.claims as claims
import builders.synthbias.checks.occupations as occupations
import builders.synthbias.checks.pairs as pairs
import builders.synthbias.checks.persons as persons
import builders.synthbias.checks.pronouns as pronouns
import builders.synthbias.checks.repetition as repetition
import builders.synthbias.checks.wording as wording
from builders.synthbias.checks.check import ENTRIES, Check, Finding, SentenceCheck
from builders.synthbias.checks.collection import Collection
from builders.synthbias.checks.profiles import Profile
from builders.synthbias.checks.sentence import Sentence

_WITH_CODE = {
    check.name: check
    for module in (case_agreement, claims, occupations, pairs, persons, pronouns, repetition, wording)
    for check in vars(module).values()
    if isinstance(check, Check)
}

CATALOGUE: Mapping[str, Check] = MappingProxyType({name: _WITH_CODE.get(name) or Check(name) for name in ENTRIES})
"""Every check by name."""


def first_finding(sentence: Sentence, profile: Profile) -> Finding | None:
    """Return the first finding about a sentence, in the order of the profile; None if there is none."""
    for check in _sentence_checks(profile):
        reason = check.find(sentence)
        if reason is not None:
            return check.finding(sentence, reason)
    return None


def all_findings(sentence: Sentence, profile: Profile) -> list[Finding]:
    """Return every finding about a sentence by itself, in the order of the profile."""
    found = ((check, check.find(sentence)) for check in _sentence_checks(profile))
    return [check.finding(sentence, reason) for check, reason in found if reason is not None]


def findings_in(collection: Collection, profile: Profile) -> list[list[Finding]]:
    """Return every finding about each sentence, also those that pairs and the whole file show.

    Returns:
        The findings of each sentence in the order of the profile, shape (n_sentences,).
    """
    findings: list[list[Finding]] = [[] for _ in collection.sentences]
    for name in profile:
        for index, reason in CATALOGUE[name].reasons(collection):
            findings[index].append(CATALOGUE[name].finding(collection.sentences[index], reason))
    return findings


@cache
def _sentence_checks(profile: Profile) -> tuple[SentenceCheck, ...]:
    return tuple(check for name in profile if isinstance(check := CATALOGUE[name], SentenceCheck))
