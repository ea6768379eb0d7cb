"""Finds prefixes of requests that are worth computing once, and arranges the rest of each request in a token tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluators.models.tokenizer import Rows

MIN_PREFIX = 16
"""Minimum number of tokens in a prefix. Shorter prefixes cost more in bookkeeping than they save."""
MIN_GROUP = 16
"""Minimum number of requests that are split off with a longer prefix. Fewer would leave a batch half empty; as a tree,
they still share what they have in common."""
MIN_SHARED = 8
"""Minimum number of tokens, beyond the prefix, that two requests must share to be in one tree."""
MAX_TREE = 512
"""Maximum number of tokens in a tree. Attention is computed between all of them, and most of it is masked."""


class PrefixGroup(NamedTuple):
    """A group of requests whose contexts begin alike."""

    places: tuple[int, ...]
    """Indices of the requests, sorted by the token ids of their contexts, so that neighbours share the most."""
    n_prefix: int
    """Number of leading tokens that all contexts share. It is less than the length of the shortest context, because the
    last token of a context predicts the options."""


def context_of(rows: Rows) -> tuple[int, ...]:
    """Return the token ids that all options of a request begin with."""
    return tuple(rows.ids[0][: rows.n_context])


def prefix_groups(encoded: Sequence[Rows | None]) -> list[PrefixGroup]:
    """Group requests by the prefix of their contexts, so that the fewest tokens have to be computed.

    Args:
        encoded: Token ids of each request; None for a request that is left out.

    Returns:
        Groups that hold each of the other requests once. Requests without a prefix worth computing separately are in
        one group with a prefix of 0 tokens.
    """
    contexts = {place: context_of(rows) for place, rows in enumerate(encoded) if rows is not None}
    order = sorted(contexts, key=lambda place: (contexts[place], place))
    if not order:
        return []
    shared = np.array([0, *(n_shared(contexts[before], contexts[place]) for before, place in pairwise(order))])
    room = np.array([len(contexts[place]) - 1 for place in order])
    split = _split(shared, room, 0, len(order))
    groups = [(indices, n_prefix) for indices, n_prefix in split.groups if n_prefix >= MIN_PREFIX]
    grouped = {index for indices, _ in groups for index in indices}
    loose = [index for index in range(len(order)) if index not in grouped]
    return [
        PrefixGroup(tuple(order[index] for index in indices), n_prefix)
        for indices, n_prefix in [*groups, *([(loose, 0)] if loose else [])]
    ]


class _Split(NamedTuple):
    n_saved: int
    """Number of tokens that need not be computed."""
    groups: list[tuple[list[int], int]]


def _split(shared: NDArray[np.int_], room: NDArray[np.int_], start: int, stop: int) -> _Split:
    """Return the grouping of a range of contexts that saves the most tokens.

    The range is one group, or is cut where neighbours share hardly more than the whole range does. A prefix that is
    computed once saves its length for every request but one.

    Args:
        shared: Number of leading tokens that context i shares with context i - 1, shape (n,).
        room: Number of tokens of context i that can be in a prefix, shape (n,).
        start: Index of the first context in the range.
        stop: Index after the last context in the range.
    """
    indices = list(range(start, stop))
    n_prefix = int(min(room[start:stop].min(), shared[start + 1 : stop].min(initial=np.iinfo(int).max)))
    whole = _Split((stop - start - 1) * n_prefix, [(indices, n_prefix)])
    if stop - start < 2 * MIN_GROUP:
        return whole
    cuts = start + 1 + np.flatnonzero(shared[start + 1 : stop] < n_prefix + MIN_PREFIX)
    edges = [start, *cuts.tolist(), stop]
    parts = [(first, end) for first, end in pairwise(edges) if end - first >= MIN_GROUP]
    if not len(cuts) or not parts:
        return whole
    below = [_split(shared, room, first, end) for first, end in parts]
    inside = {index for first, end in parts for index in range(first, end)}
    rest = [index for index in indices if index not in inside]
    n_saved = sum(part.n_saved for part in below) + max(len(rest) - 1, 0) * n_prefix
    if n_saved <= whole.n_saved:
        return whole
    return _Split(n_saved, [*(group for part in below for group in part.groups), *([(rest, n_prefix)] if rest else [])])


def trees_of(group: PrefixGroup, encoded: Sequence[Rows | None]) -> list[tuple[int, ...]]:
    """Arrange the requests of a group in trees.

    Neighbours are in one tree if their contexts share enough tokens beyond the prefix.

    Returns:
        Indices of the requests in each tree.
    """
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
    """A tree of the tokens after a prefix. Tokens that several texts have in common occur once."""

    n_prefix: int
    tokens: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    """Number of tokens before each token, prefix included: its position in the text."""
    parents: list[int] = field(default_factory=list)
    """Index of the token before each token; -1 for the end of the prefix."""
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, ids: Sequence[int], *, after: int = -1) -> list[int]:
        """Follow tokens down from a node, and add the nodes that the tree lacks.

        Args:
            ids: Token ids.
            after: Node to start from; -1 for the end of the prefix.

        Returns:
            Node of each token.
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
        """Return which tokens each token may look at: itself and the tokens that lead to it.

        Returns:
            Boolean mask of shape (width, width); padding looks only at itself.
        """
        sees = np.eye(width, dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                sees[node, : parent + 1] |= sees[parent, : parent + 1]
        return sees


def n_shared(ids: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of leading tokens that two sequences have in common."""
    n = min(len(ids), len(other))
    if ids[:n] == other[:n]:
        return n
    return next(index for index in range(n) if ids[index] != other[index])
