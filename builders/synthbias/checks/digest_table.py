"""A table of numbers by digest that needs little memory."""

from __future__ import annotations

from array import array

_FIRST_SIZE = 1000
_MOST_FULL = 0.75
_GROWTH = 1.5
_FREE = 0


class DigestTable:
    """Keeps a number of 32 bits for each digest of 64 bits, in 16 to 24 bytes per digest.

    A dictionary takes about five times as much. Two texts with the same digest are as rare as one in 10^7 in a table
    of a million.

    >>> table = DigestTable()
    >>> table[7] = 3
    >>> table.get(7), table.get(8), len(table)
    (3, None, 1)
    """

    def __init__(self) -> None:
        self._digests = array("Q", bytes(8 * _FIRST_SIZE))
        self._numbers = array("I", bytes(4 * _FIRST_SIZE))
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def get(self, digest: int) -> int | None:
        """Return the number of a digest, or None if it has none."""
        slot = self._slot(digest or 1)
        return None if self._digests[slot] == _FREE else self._numbers[slot]

    def __setitem__(self, digest: int, number: int) -> None:
        digest = digest or 1
        slot = self._slot(digest)
        if self._digests[slot] == _FREE:
            if self._n >= _MOST_FULL * len(self._digests):
                self._grow()
                slot = self._slot(digest)
            self._n += 1
        self._digests[slot] = digest
        self._numbers[slot] = number

    def _slot(self, digest: int) -> int:
        """Return the slot of a digest, or the free slot where it belongs; zero marks a free slot."""
        digests = self._digests
        size = len(digests)
        slot = digest % size
        while digests[slot] not in (digest, _FREE):
            slot = slot + 1 if slot + 1 < size else 0
        return slot

    def _grow(self) -> None:
        old_digests, old_numbers = self._digests, self._numbers
        size = int(len(old_digests) * _GROWTH)
        self._digests = array("Q", bytes(8 * size))
        self._numbers = array("I", bytes(4 * size))
        for digest, number in zip(old_digests, old_numbers, strict=True):
            if digest != _FREE:
                slot = self._slot(digest)
                self._digests[slot] = digest
                self._numbers[slot] = number
