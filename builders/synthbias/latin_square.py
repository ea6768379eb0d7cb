"""Assigns frames to occupation pairs by Latin squares, so that each occupation is used with each frame once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def shuffled(names: Sequence[str], seed: int, purpose: str) -> list[str]:
    """Return names in an order that depends only on the seed and the purpose.

    The names are sorted by hash, not shuffled by a random generator: the numbers of a generator may change with its
    library, and the same seed must give the same dataset in every environment.
    """
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{purpose}/{name}".encode()).digest())


def latin_square(
    rows: Sequence[str], columns: Sequence[str], symbols: Sequence[T], *, seed: int, purpose: str
) -> Mapping[tuple[str, str], T]:
    """Assign a symbol to each pair of row and column, so that none occurs twice in a row or in a column.

    Args:
        rows: Distinct row names, shape (n,).
        columns: Distinct column names, shape (n,).
        symbols: Distinct symbols, shape (n,).
        seed: Seed that selects the square.
        purpose: Name of the square, so that squares with the same seed differ.

    Returns:
        The symbol of each (row, column).

    Raises:
        ValueError: rows, columns and symbols are not equally many.

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
