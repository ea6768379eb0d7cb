"""All checks by name, the profiles that select from them, and functions that run a profile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from biasboard.ground.errors import DataError
from builders.synthbias.checks import case_checks, collection_checks, sentence_checks
from builders.synthbias.checks.check import ENTRIES, Check, SentenceCheck, SentenceFinding
from builders.synthbias.checks.sentence import Collection, Sentence

Profile: TypeAlias = tuple[str, ...]
"""The names of the checks that one use of the catalogue runs, in order."""


def _profile(names: str) -> Profile:
    return tuple(names.split())


EMBEDDED: Profile = _profile(
    """
    one_sentence spelling length two_occupations articles one_pronoun pronoun_last other_pronoun gendered_noun
    listed_person name
    """
)
"""Sentences that are filled from the frames of this project."""

GENERATED: Profile = _profile(
    """
    spelling one_sentence doubled_word length unknown_occupation two_occupations same_list gap_too_small
    wrong_referent articles one_pronoun wrong_pronoun wrong_gender pronoun_last other_pronoun gendered_noun
    listed_person name wrong_article pronoun_case_error pronoun_case_review
    """
)
"""Sentences that a language model wrote; findings for review come last.

What may stand in a sentence is what the instruction says: letters, commas and one full stop.
"""

OWN_FLAGS: Profile = _profile("length non_ascii pronoun_case_review")
"""Peculiarities for which no sentence of a researcher is rejected."""

OWN: Profile = (
    *_profile("unknown_type unknown_pronoun spacing"),
    *(name for name in GENERATED if name not in ("spelling", "wrong_referent", *OWN_FLAGS)),
)
"""Sentences that a researcher wrote: a model's rules but for apostrophes and the like, and what the file says."""

REFUSED: Profile = _profile(
    """
    unknown_type unknown_pronoun unknown_occupation missing_occupation repeated_occupation same_list wrong_pronoun
    one_pronoun wrong_label
    """
)
"""Contradictions for which a published file is refused."""

PUBLISHED_FLAGS: Profile = _profile(
    """
    third_occupation first_person multi_sentence duplicate_text cross_type_text shared_template cross_type_template
    occupation_possessive coordinated_without_article other_person dative_or_possessive pronoun_case_error
    pronoun_case_review
    """
)
"""Peculiarities of the published SynthBias, in the order in which items are flagged."""

WINOBIAS_FLAGS: Profile = _profile(
    """
    not_minimal_pair other_pronoun_marked several_pronouns unmarked_pronoun mixed_gender_pronouns plural_pronoun
    third_occupation repeated_occupation gendered_noun gap_too_small duplicate_text markup_repaired
    """
)
"""Peculiarities of WinoBias, in the order in which items are flagged."""

LINT: Profile = _profile(
    """
    unknown_type unknown_pronoun unknown_occupation missing_occupation repeated_occupation third_occupation
    same_list gap_too_small wrong_pronoun wrong_label one_pronoun pronoun_last other_pronoun mixed_gender_pronouns
    one_sentence spacing doubled_word articles wrong_article length
    non_ascii gendered_noun listed_person name occupation_possessive dative_or_possessive
    pronoun_case_error pronoun_case_review not_minimal_pair other_pronoun_marked unpaired duplicate_text
    repeated_wording one_word_apart cross_type_text shared_template cross_type_template
    """
)
"""Anybody's sentences: what their dataset would be built without, and what a reader should look at."""

ABOUT_OCCUPATIONS: Profile = _profile(
    """
    unknown_occupation missing_occupation repeated_occupation same_list gap_too_small wrong_label
    """
)
"""Checks that mean nothing where it is unknown which two occupations a sentence is about."""

OLDER_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "synthbias": {
            "listed_person": "other_person",
            "repeated_text": "duplicate_text",
            "repeated_wording": "duplicate_text",
            "repeated_apart_from_pronoun": "duplicate_text",
        },
        "winobias": {"gap_too_small": "within_10_points"},
    }
)
"""Names of checks in datasets that are older than the catalogue: renaming a rule would change a dataset's files."""


_WITH_CODE = {
    check.name: check
    for module in (case_checks, collection_checks, sentence_checks)
    for check in vars(module).values()
    if isinstance(check, Check)
}

CATALOGUE: Mapping[str, Check] = MappingProxyType({name: _WITH_CODE.get(name) or Check(name) for name in ENTRIES})
"""Every check by name."""


def first_finding(sentence: Sentence, profile: Profile) -> SentenceFinding | None:
    """Return the first finding about a sentence, in the order of the profile; None if there is none."""
    for check in _sentence_checks(profile):
        if (reason := check.find(sentence)) is not None:
            return check.finding(sentence, reason)
    return None


def all_findings(sentence: Sentence, profile: Profile) -> list[SentenceFinding]:
    """Return every finding about a single sentence, in the order of the profile."""
    return [
        check.finding(sentence, reason)
        for check in _sentence_checks(profile)
        if (reason := check.find(sentence)) is not None
    ]


def check_sentence(sentence: Sentence, refused: Profile, *, remedy: str) -> None:
    """Check that nothing is found about a sentence of a published file.

    Raises:
        DataError: there is a finding; the message is about the first.
    """
    finding = first_finding(sentence, refused)
    if finding is not None:
        raise DataError(f"{sentence.id}: {finding.reason}; {remedy}")


def findings_in(collection: Collection, profile: Profile) -> list[list[SentenceFinding]]:
    """Return every finding about each sentence, including those of pair and file checks.

    Returns:
        The findings of each sentence in the order of the profile, shape (n_sentences,).
    """
    findings: list[list[SentenceFinding]] = [[] for _ in collection.sentences]
    for name in profile:
        for index, reason in CATALOGUE[name].reasons(collection):
            findings[index].append(CATALOGUE[name].finding(collection.sentences[index], reason))
    return findings


@cache
def _sentence_checks(profile: Profile) -> tuple[SentenceCheck, ...]:
    return tuple(check for name in profile if isinstance(check := CATALOGUE[name], SentenceCheck))
