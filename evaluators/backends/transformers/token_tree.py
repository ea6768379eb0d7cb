"""Requests that begin alike: which prefix is worth computing once, and what is left of them as one tree of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluators.models.tokenizer import Rows

MIN_PREFIX = 16
"""Tokens; shorter prefixes cost more in bookkeeping than they save."""
MIN_GROUP = 16
"""Requests; fewer would leave a batch half empty, and share what they have in common as a tree."""
MIN_SHARED = 8
"""Tokens, beyond the prefix, from which two requests become one tree."""
MAX_TREE = 512
"""Tokens of a tree: every one of them looks at all others, most of them masked."""


class PrefixGroup(NamedTuple):
    """Requests whose contexts begin alike."""

    places: tuple[int, ...]
    """Sorted by their context's token ids, so that neighbours share the most."""
    n_prefix: int
    """Tokens that all of them share; always less than the shortest context, whose last token predicts the options."""


def context_of(rows: Rows) -> tuple[int, ...]:
    """Token ids of what all options of a request share."""
    return tuple(rows.ids[0][: rows.n_context])


def prefix_groups(encoded: Sequence[Rows | None]) -> list[PrefixGroup]:
    """Split requests where their contexts part, so that the fewest tokens have to be computed.

    Args:
        encoded: Per request; None for what is left out.

    Returns:
        Every other place once. Requests without a prefix worth the effort are in one group with a prefix of 0.
    """
    contexts = {place: context_of(rows) for place, rows in enumerate(encoded) if rows is not None}
    order = sorted(contexts, key=lambda place: (contexts[place], place))
    if not order:
        return []
    shared = np.array([0, *(n_shared(contexts[one], contexts[other]) for one, other in pairwise(order))])
    room = np.array([len(contexts[place]) - 1 for place in order])
    found = _split(shared, room, 0, len(order))
    groups = [(places, n_prefix) for places, n_prefix in found.groups if n_prefix >= MIN_PREFIX]
    grouped = {index for indices, _ in groups for index in indices}
    loose = [index for index in range(len(order)) if index not in grouped]
    return [
        PrefixGroup(tuple(order[index] for index in indices), n_prefix)
        for indices, n_prefix in [*groups, *([(loose, 0)] if loose else [])]
    ]


class _Split(NamedTuple):
    n_saved: int
    """Tokens that need not be computed."""
    groups: list[tuple[list[int], int]]


def _split(shared: NDArray[np.int_], room: NDArray[np.int_], start: int, stop: int) -> _Split:
    """The grouping of a range that saves the most: as one, or cut where its contexts share the least.

    ``shared[i]`` is what context i shares with context i - 1, ``room[i]`` what of context i can be prefix. Computed
    once, a prefix saves its length for every request but one.
    """
    indices = list(range(start, stop))
    n_prefix = int(min(room[start:stop].min(), shared[start + 1 : stop].min(initial=np.iinfo(int).max)))
    whole = _Split((stop - start - 1) * n_prefix, [(indices, n_prefix)])
    if stop - start < 2 * MIN_GROUP:
        return whole
    cuts = start + 1 + np.flatnonzero(shared[start + 1 : stop] < n_prefix + MIN_PREFIX)
    edges = [start, *cuts.tolist(), stop]
    parts = [(one, other) for one, other in pairwise(edges) if other - one >= MIN_GROUP]
    if not len(cuts) or not parts:
        return whole
    below = [_split(shared, room, one, other) for one, other in parts]
    inside = {index for one, other in parts for index in range(one, other)}
    rest = [index for index in indices if index not in inside]
    n_saved = sum(part.n_saved for part in below) + max(len(rest) - 1, 0) * n_prefix
    if n_saved <= whole.n_saved:
        return whole
    return _Split(n_saved, [*(group for part in below for group in part.groups), *([(rest, n_prefix)] if rest else [])])


def trees_of(group: PrefixGroup, encoded: Sequence[Rows | None]) -> list[tuple[int, ...]]:
    """Places of a group, those together whose contexts share enough beyond the prefix to be one tree."""
    trees: list[list[int]] = []
    size = 0
    before: tuple[int, ...] = ()
    for place in group.places:
        rows = encoded[place]
        assert rows is not None
        context = context_of(rows)
        n_new = sum(len(ids) - rows.n_context for ids in rows.ids) + len(context) - group.n_prefix
        common = n_shared(before, context) - group.n_prefix
        if trees and common >= MIN_SHARED and size + n_new - common <= MAX_TREE:
            trees[-1].append(place)
            size += n_new - common
        else:
            trees.append([place])
            size = n_new
        before = context
    return [tuple(tree) for tree in trees]


@dataclass
class TokenTree:
    """Tokens after a prefix; what two texts have in common stands in it once."""

    n_prefix: int
    tokens: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    """Tokens before each one, those of the prefix counted: its position in the text."""
    parents: list[int] = field(default_factory=list)
    """-1 where the prefix comes before."""
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, ids: Sequence[int], *, after: int = -1) -> list[int]:
        """Walk down from a node, growing the tree where it ends.

        Args:
            ids: Tokens.
            after: Where to start; -1 is the end of the prefix.

        Returns:
            The node of each token.
        """
        path = []
        children = self._children
        for token in ids:
            node = children.get((after, token))
            if node is None:
                node = children[after, token] = len(self.tokens)
                self.tokens.append(token)
                self.depths.append(self.n_prefix if after < 0 else self.depths[after] + 1)
                self.parents.append(after)
            path.append(node)
            after = node
        return path

    def ancestors(self, width: int) -> NDArray[np.bool_]:
        """What each token may look at: itself and what leads to it; shape (width, width), padding sees itself."""
        sees = np.eye(width, dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                sees[node, : parent + 1] |= sees[parent, : parent + 1]
        return sees


def n_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Leading tokens that two sequences have in common."""
    n = min(len(one), len(other))
    if one[:n] == other[:n]:
        return n
    return next(place for place in range(n) if one[place] != other[place])
