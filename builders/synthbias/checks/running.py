"""Runs the checks of a profile on a sentence, or on all sentences of a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import FileCheck, Finding, PairCheck, SentenceCheck
from builders.synthbias.checks.collection import Collection
from builders.synthbias.checks.profiles import Profile
from builders.synthbias.checks.sentence import Sentence


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
    found: list[list[Finding]] = [[] for _ in collection.sentences]
    for name in profile:
        for index, reason in _reasons(collection, name):
            found[index].append(CATALOGUE[name].finding(collection.sentences[index], reason))
    return found


def _reasons(collection: Collection, name: str) -> Iterator[tuple[int, str]]:
    """Yield the index of each sentence with a finding of one check, and the reason."""
    check = CATALOGUE[name]
    sentences = collection.sentences
    match check:
        case SentenceCheck():
            for index, sentence in enumerate(sentences):
                if (reason := check.find(sentence)) is not None:
                    yield index, reason
        case PairCheck():
            for one, other in collection.pairs:
                if (reason := check.find(sentences[one], sentences[other])) is not None:
                    yield from ((one, reason), (other, reason))
        case FileCheck():
            yield from check.find(collection)


@cache
def _sentence_checks(profile: Profile) -> tuple[SentenceCheck, ...]:
    checks = (CATALOGUE[name] for name in profile)
    return tuple(check for check in checks if isinstance(check, SentenceCheck))
