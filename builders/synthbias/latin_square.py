"""Assigns frames to occupation pairs by Latin squares, so that no occupation meets a frame with two partners."""

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


_STEPS = (3, 7, 19)
"""Steps of the three squares. Those of twenty rows differ by 2 or 6 from the step 1 by which groups are left out, so
that every symbol of a group is left out about equally often."""


def two_of_three(
    rows: Sequence[str], columns: Sequence[str], groups: Sequence[Sequence[T]], *, seed: int, purpose: str
) -> Mapping[tuple[str, str], tuple[T, T]]:
    """Assign to each pair of row and column one symbol from each of two out of three groups.

    Each group has a Latin square of its own, in which no symbol occurs twice in a row or in a column. Which group a
    pair does without follows the diagonals of the grid, so that each row and each column does without each group in a
    third of its pairs.

    Args:
        rows: Distinct row names, shape (n,), where n is no multiple of 3, 7 or 19.
        columns: Distinct column names, shape (n,).
        groups: Three groups of distinct symbols, shape (3, n).
        seed: Seed that selects the squares.
        purpose: Name of the assignment, so that assignments with the same seed differ.

    Returns:
        The two symbols of each (row, column).

    Raises:
        ValueError: rows, columns and the symbols of each group are not equally many, or there are not three groups.

    >>> found = two_of_three(["a", "b"], ["x", "y"], ["01", "23", "45"], seed=0, purpose="doc")
    >>> sorted(set(found["a", "x"]) & set(found["a", "y"])), len(found["a", "x"])
    ([], 2)
    """
    n = len(rows)
    sizes = [len(columns), *map(len, groups)]
    if len(groups) != len(_STEPS) or any(size != n for size in sizes):
        raise ValueError(
            f"{n} rows need as many columns ({sizes[0]}) and three groups of as many symbols ({sizes[1:]})"
        )
    orders = [
        [int(number) for number in shuffled([str(place) for place in range(n)], seed, f"{purpose}/symbols/{group}")]
        for group in range(len(groups))
    ]
    found = {}
    for i, row in enumerate(shuffled(rows, seed, f"{purpose}/rows")):
        for j, column in enumerate(shuffled(columns, seed, f"{purpose}/columns")):
            symbols = [groups[g][orders[g][(i + step * j) % n]] for g, step in enumerate(_STEPS)]
            left_out = (i + j) % n % len(_STEPS)
            one, other = (symbol for g, symbol in enumerate(symbols) if g != left_out)
            found[row, column] = (one, other)
    return found
