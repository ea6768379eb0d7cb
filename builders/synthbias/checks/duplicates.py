"""Finds candidates that repeat earlier ones, as they come and in little memory."""

from __future__ import annotations

from hashlib import blake2b
from zlib import crc32

from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import Finding
from builders.synthbias.checks.digest_table import DigestTable
from builders.synthbias.checks.near_duplicates import NearDuplicates, shingles_of
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.mentions import wording

_HALF = 1 << 16


class Duplicates:
    """Remembers the candidates that it is given, and finds those that repeat one of them, of either type.

    Give it one side of each minimal pair, since the two sides are the same apart from the pronoun. A candidate with a
    finding is not remembered, so that a rejected one rejects no other. It takes less than 200 bytes per candidate.

    Args:
        template_cap: Largest number of candidates with one template, which is the wording without its occupations and
            pronouns; None for any number.
        near: Jaccard similarity of word shingles, in (0, 1], from which a candidate is too similar to an earlier one;
            None to allow any. It is measured on the wording with the pronouns masked.

    Raises:
        MissingExtraError: ``near`` is given, and the extra 'build' is not installed.
    """

    def __init__(self, *, template_cap: int | None = None, near: float | None = None) -> None:
        self._template_cap = template_cap
        self._wordings = DigestTable()
        self._templates = DigestTable()
        self._near = None if near is None else NearDuplicates(near)

    def __len__(self) -> int:
        return len(self._wordings)

    def add(self, sentence: Sentence) -> Finding | None:
        """Remember a candidate, or return the reason why it is not new."""
        masked = wording(sentence.masked)
        key = _digest(masked)
        earlier = self._wordings.get(key)
        if earlier is not None:
            return _repeated(sentence, earlier)
        template, n_alike = 0, 0
        if self._template_cap is not None:
            template = _digest(sentence.template)
            n_alike = self._templates.get(template) or 0
            if n_alike >= self._template_cap:
                reason = f"differs from {n_alike} earlier candidates in occupations and pronoun alone"
                return CATALOGUE["repeated_template"].finding(sentence, reason)
        if self._near is not None:
            neighbour = self._near.add(shingles_of(masked.split()))
            if neighbour is not None:
                reason = f"is too similar to candidate {neighbour.number + 1} (Jaccard {neighbour.similarity:.2f})"
                return CATALOGUE["near_duplicate"].finding(sentence, reason)
        if self._template_cap is not None:
            self._templates[template] = n_alike + 1
        self._wordings[key] = _print_of(sentence)
        return None


def _repeated(sentence: Sentence, earlier: int) -> Finding:
    """Return the finding about a candidate that equals an earlier one apart from the pronoun.

    Args:
        sentence: The candidate.
        earlier: Print of the earlier candidate.
    """
    same = _print_of(sentence) ^ earlier
    if same == 0:
        return CATALOGUE["repeated_text"].finding(sentence, "an earlier candidate has the same text")
    if same < _HALF:
        reason = "an earlier candidate has the same text apart from capitals and punctuation"
        return CATALOGUE["repeated_wording"].finding(sentence, reason)
    reason = "an earlier candidate has the same text apart from the pronoun"
    return CATALOGUE["repeated_apart_from_pronoun"].finding(sentence, reason)


def _print_of(sentence: Sentence) -> int:
    """Return 16 bits of a checksum of the words and 16 of one of the text, which only tell how texts are equal."""
    words = " ".join(sentence.words)
    return crc32(words.encode()) % _HALF * _HALF + crc32(sentence.text.encode()) % _HALF


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
