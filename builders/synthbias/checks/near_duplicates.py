"""Finds texts that share most of their wording with an earlier one.

A MinHash signature proposes earlier texts, as in locality-sensitive hashing; the exact Jaccard similarity of the word
shingles decides. The index of ``datasketch`` keeps several kilobytes per text, so that only its signatures are used.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from biasboard.ground.errors import import_extra

SHINGLE_WORDS = 2
"""Number of neighbouring words in a shingle. Exchanging one of 13 words leaves a similarity of 0.71."""
N_BANDS = 6
PROPOSED_SHARE = 0.9
"""Smallest share of the pairs at the threshold that the signatures propose; above it, the share is larger."""

_SCHEME = "affine32"
"""Scheme of permutations, named so that a later version of the library gives the same signatures."""
_SEED = 1
_MOST_ROWS = 20
_FIRST_SLOTS = 1024
_NONE = 0


class Neighbour(NamedTuple):
    """An earlier text and its Jaccard similarity."""

    number: int
    """Number of texts that were added before it."""
    similarity: float


class NearDuplicates:
    """Remembers texts as hashed shingles and finds the first earlier one that is too similar.

    Args:
        threshold: Jaccard similarity of shingles, in (0, 1], from which two texts are near-duplicates.

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
        self._shingles = array("I")
        self._starts = array("I", [0])
        self._bands = array("I")
        self._next = array("I")
        self._heads = [array("I", bytes(4 * _FIRST_SLOTS)) for _ in range(N_BANDS)]

    def __len__(self) -> int:
        return len(self._starts) - 1

    def add(self, shingles: frozenset[int]) -> Neighbour | None:
        """Remember a text, or return the earliest one that is too similar among those that its signature proposes."""
        bands = self._signature(shingles)
        for number in sorted(set(self._proposed(bands))):
            similarity = jaccard(shingles, self._shingles[self._starts[number] : self._starts[number + 1]])
            if similarity >= self._threshold:
                return Neighbour(number, similarity)
        self._shingles.extend(shingles)
        self._starts.append(len(self._shingles))
        self._bands.extend(bands)
        self._next.extend([_NONE] * N_BANDS)
        if len(self) > 2 * len(self._heads[0]):
            self._heads = [array("I", bytes(8 * len(heads))) for heads in self._heads]
            for number in range(len(self)):
                self._link(number, self._bands[number * N_BANDS : (number + 1) * N_BANDS])
        else:
            self._link(len(self) - 1, bands)
        return None

    def _link(self, number: int, bands: Sequence[int]) -> None:
        """Put a text at the head of the chain of its slot in each band; numbers in chains begin at 1."""
        for place, (heads, band) in enumerate(zip(self._heads, bands, strict=True)):
            slot = band % len(heads)
            self._next[number * N_BANDS + place] = heads[slot]
            heads[slot] = number + 1

    def _proposed(self, bands: Sequence[int]) -> Iterator[int]:
        for place, (heads, band) in enumerate(zip(self._heads, bands, strict=True)):
            follows = heads[band % len(heads)]
            while follows != _NONE:
                at = (follows - 1) * N_BANDS + place
                if self._bands[at] == band:
                    yield follows - 1
                follows = self._next[at]

    def _signature(self, shingles: frozenset[int]) -> Sequence[int]:
        """Return a digest of each band of the MinHash of a text."""
        minhash = self._minhash(self._n_rows * N_BANDS, permutations=self._permutations, hashfunc=int, scheme=_SCHEME)
        minhash.update_batch(shingles)
        values = minhash.hashvalues.tobytes()
        width = len(values) // N_BANDS
        return [crc32(values[band * width : (band + 1) * width]) for band in range(N_BANDS)]


def shingles_of(words: Sequence[str]) -> frozenset[int]:
    """Return the shingles of a text as numbers of 32 bits; a text shorter than a shingle is one."""
    if len(words) < SHINGLE_WORDS:
        return frozenset({crc32(" ".join(words).encode())})
    pieces = zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False)
    return frozenset(crc32(" ".join(piece).encode()) for piece in pieces)


def jaccard(one: frozenset[int], other: Sequence[int]) -> float:
    """Return the Jaccard similarity of two sets of shingles.

    >>> jaccard(frozenset({1, 2, 3}), [2, 3, 4])
    0.5
    """
    n_shared = len(one.intersection(other))
    return n_shared / (len(one) + len(other) - n_shared)


def rows_per_band(threshold: float) -> int:
    """Return the largest number of rows per band with which enough pairs at the threshold are proposed.

    Two texts of similarity s agree in a band of r rows with probability s^r.
    """
    shares = {rows: 1 - (1 - threshold**rows) ** N_BANDS for rows in range(1, _MOST_ROWS + 1)}
    return max((rows for rows, share in shares.items() if share >= PROPOSED_SHARE), default=1)
