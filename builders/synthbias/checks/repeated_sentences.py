"""Detects candidates that repeat earlier ones, in a single pass.

Of each candidate only numbers are remembered, in less than 200 bytes. Near-duplicates take more: they are proposed by
MinHash signatures, as in locality-sensitive hashing, and confirmed by the exact Jaccard similarity of their word
shingles.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from zlib import crc32

from biasboard.ground.errors import import_extra
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
        near: Jaccard similarity of word shingles, in (0, 1], at or above which a candidate counts as a near-duplicate
            of an earlier one; None disables the check. Pronouns are masked before comparing.

    Raises:
        MissingExtraError: ``near`` is given, and the extra 'build' is not installed.
    """

    def __init__(self, *, template_cap: int | None = None, near: float | None = None) -> None:
        self._template_cap = template_cap
        self._wordings: dict[int, int] = {}
        """Checksums of each wording, by its digest."""
        self._templates: Counter[int] = Counter()
        self._near = None if near is None else NearDuplicates(near)

    def __len__(self) -> int:
        return len(self._wordings)

    def add(self, sentence: Sentence) -> SentenceFinding | None:
        """Remember a candidate, or return the reason why it is not new."""
        masked = wording(sentence.masked)
        key = _digest(masked)
        earlier = self._wordings.get(key)
        if earlier is not None:
            return _repeated(sentence, earlier)
        template, n_same = 0, 0
        if self._template_cap is not None:
            template = _digest(sentence.template)
            n_same = self._templates[template]
            if n_same >= self._template_cap:
                reason = f"differs from {n_same} earlier candidates in occupations and pronoun alone"
                return CATALOGUE["repeated_template"].finding(sentence, reason)
        if self._near is not None:
            neighbour = self._near.add(shingles_of(masked.split()))
            if neighbour is not None:
                number, similarity = neighbour
                reason = f"is too similar to candidate {number + 1} (Jaccard {similarity:.2f})"
                return CATALOGUE["near_duplicate"].finding(sentence, reason)
        if self._template_cap is not None:
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


SHINGLE_WORDS = 2
"""Number of consecutive words in a shingle. Replacing one of 13 words leaves a similarity of 0.71."""
N_BANDS = 6
PROPOSED_SHARE = 0.9
"""Minimum share of pairs at the threshold that the signatures propose; more similar pairs are proposed more often."""

_SCHEME = "affine32"
"""Permutation scheme, given explicitly so that later versions of the library compute the same signatures."""
_SEED = 1
_MOST_ROWS = 20


class NearDuplicates:
    """Remembers texts as hashed shingles, and finds the first earlier text that is too similar.

    Args:
        threshold: Jaccard similarity of shingles, in (0, 1], at or above which two texts are near-duplicates.

    Raises:
        MissingExtraError: the extra 'build' is not installed.
    """

    def __init__(self, threshold: float) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(
                f"threshold {threshold:g}: a Jaccard similarity lies between 0 and 1; choose one, such as 0.7"
            )
        self._threshold = threshold
        self._n_rows = rows_per_band(threshold)
        self._minhash = import_extra("datasketch", "build").MinHash
        self._permutations = self._minhash(self._n_rows * N_BANDS, seed=_SEED, scheme=_SCHEME).permutations
        self._texts: list[frozenset[int]] = []
        self._proposed: dict[tuple[int, int], list[int]] = defaultdict(list)
        """Indices of the texts with each digest, by band and digest."""

    def add(self, shingles: frozenset[int]) -> tuple[int, float] | None:
        """Remember a text, or find the earliest too similar one among those that its signature proposes.

        Returns:
            The index of that one, in order of addition, and its Jaccard similarity; None if there is none.
        """
        minhash = self._minhash(self._n_rows * N_BANDS, permutations=self._permutations, hashfunc=int, scheme=_SCHEME)
        minhash.update_batch(shingles)
        values = minhash.hashvalues.tobytes()
        width = len(values) // N_BANDS
        bands = [(band, crc32(values[band * width : (band + 1) * width])) for band in range(N_BANDS)]
        for number in sorted({number for band in bands for number in self._proposed.get(band, ())}):
            similarity = len(shingles & self._texts[number]) / len(shingles | self._texts[number])
            if similarity >= self._threshold:
                return number, similarity
        for band in bands:
            self._proposed[band].append(len(self._texts))
        self._texts.append(shingles)
        return None


def shingles_of(words: Sequence[str]) -> frozenset[int]:
    """Return the shingles of a text as 32-bit numbers; a text shorter than a shingle is a shingle itself."""
    if len(words) < SHINGLE_WORDS:
        return frozenset({crc32(" ".join(words).encode())})
    pieces = zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False)
    return frozenset(crc32(" ".join(piece).encode()) for piece in pieces)


def rows_per_band(threshold: float) -> int:
    """Return the largest number of rows per band with which enough pairs at the threshold are proposed.

    Two texts of similarity s agree in a band of r rows with probability s^r.
    """
    shares = {rows: 1 - (1 - threshold**rows) ** N_BANDS for rows in range(1, _MOST_ROWS + 1)}
    return max((rows for rows, share in shares.items() if share >= PROPOSED_SHARE), default=1)
