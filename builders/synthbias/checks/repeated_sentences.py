"""Detects candidates that repeat earlier ones, in a single pass.

Of each candidate only numbers are remembered, in less than 200 bytes.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from zlib import crc32

from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import SentenceFinding
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.mentions import wording

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
