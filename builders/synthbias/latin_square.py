"""Spreads frames over occupation pairs so that each occupation meets each frame once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def shuffled(names: Sequence[str], seed: int, purpose: str) -> list[str]:
    """Names in an order that depends on the seed alone.

    Sorted by hash and not by a random generator: the streams of generators may change with their library, and the
    same seed must give the same data set in every environment.
    """
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{purpose}/{name}".encode()).digest())


def latin_square(
    rows: Sequence[str], columns: Sequence[str], symbols: Sequence[T], *, seed: int, purpose: str
) -> Mapping[tuple[str, str], T]:
    """One symbol for each pair of row and column: none stands twice in a row or in a column.

    Args:
        rows: Distinct names, shape (n,).
        columns: Distinct names, shape (n,).
        symbols: Shape (n,).
        seed: Chooses the square.
        purpose: Names the square, so that those of one seed differ.

    Returns:
        A symbol for each (row, column).

    Raises:
        ValueError: the three differ in length.

    >>> square = latin_square(["a", "b"], ["x", "y"], "01", seed=0, purpose="doc")
    >>> sorted([square["a", "x"], square["a", "y"]]), square["a", "x"] == square["b", "y"]
    (['0', '1'], True)
    """
    n = len(symbols)
    if len(rows) != n or len(columns) != n:
        raise ValueError(f"a square needs as many rows ({len(rows)}) and columns ({len(columns)}) as symbols ({n})")
    order = [int(number) for number in shuffled([str(number) for number in range(n)], seed, f"{purpose}/symbols")]
    return {
        (row, column): symbols[order[(i + j) % n]]
        for i, row in enumerate(shuffled(rows, seed, f"{purpose}/rows"))
        for j, column in enumerate(shuffled(columns, seed, f"{purpose}/columns"))
    }
