"""All checks by name, the profiles that select from them, and functions that run a profile.

Repetitions are found in a single pass: of each candidate only numbers are remembered, in less than 200 bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from types import MappingProxyType
from typing import TypeAlias
from zlib import crc32

from biasboard.ground.errors import DataError
from builders.synthbias.checks import case_checks, collection_checks, sentence_checks
from builders.synthbias.checks.check import ENTRIES, Check, Collection, Sentence, SentenceCheck, SentenceFinding
from builders.synthbias.minimal_pairs import wording

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


_HALF = 1 << 16


class Duplicates:
    """Remembers candidates of both types, and finds those that repeat an earlier one.

    Add one side of each minimal pair, since the two sides are the same apart from the pronoun. A candidate with a
    finding is not remembered, so that rejected candidates do not cause further rejects.

    Args:
        template_cap: Maximum number of candidates per template, which is the wording with occupations and pronouns
            masked; None for any number.
    """

    def __init__(self, *, template_cap: int | None = None) -> None:
        self._template_cap = template_cap
        self._wordings: dict[int, int] = {}
        """Checksums of each wording, by its digest."""
        self._templates: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._wordings)

    def add(self, sentence: Sentence) -> SentenceFinding | None:
        """Remember a candidate, or return the reason why it is not new."""
        key = _digest(wording(sentence.masked))
        earlier = self._wordings.get(key)
        if earlier is not None:
            return _repeated(sentence, earlier)
        if self._template_cap is not None:
            template = _digest(sentence.template)
            n_same = self._templates[template]
            if n_same >= self._template_cap:
                reason = f"differs from {n_same} earlier candidates in occupations and pronoun alone"
                return CATALOGUE["repeated_template"].finding(sentence, reason)
            self._templates[template] = n_same + 1
        self._wordings[key] = _checksums(sentence)
        return None


def _repeated(sentence: Sentence, earlier: int) -> SentenceFinding:
    """Return the finding about a candidate whose wording with masked pronouns is that of an earlier one."""
    difference = _checksums(sentence) ^ earlier
    if difference == 0:
        return CATALOGUE["repeated_text"].finding(sentence, "an earlier candidate has the same text")
    # The upper half is the checksum of the words: it is equal.
    if difference < _HALF:
        reason = "an earlier candidate has the same text apart from capitals and punctuation"
        return CATALOGUE["repeated_wording"].finding(sentence, reason)
    reason = "an earlier candidate has the same text apart from the pronoun"
    return CATALOGUE["repeated_apart_from_pronoun"].finding(sentence, reason)


def _checksums(sentence: Sentence) -> int:
    """Return 16-bit checksums of the words and of the text, which only show in what respect equal wordings differ."""
    words = " ".join(sentence.words)
    return crc32(words.encode()) % _HALF * _HALF + crc32(sentence.text.encode()) % _HALF


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
