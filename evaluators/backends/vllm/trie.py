"""Options as edges of a trie, so that an engine is asked once for what several of them need.

A node is the context and the option tokens so far; an edge is the token that an option has next. The log-probability of
an option is the sum over its edges. Requests with the same context share their nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from evaluators.models.tokenizer import Rows

Node: TypeAlias = tuple[int, ...]
"""Token ids from the beginning of the text."""
EdgeLogprobs: TypeAlias = Mapping[Node, Mapping[int, float]]
"""Log-probability of a token after a node."""


class Question(NamedTuple):
    """What an engine is asked: how probable is each of these tokens after the node?"""

    node: Node
    tokens: tuple[int, ...]


def questions(encoded: Iterable[Rows], *, end_id: int | None, room: int) -> list[Question]:
    """Every node that options branch from, once, with the tokens that follow it.

    Args:
        encoded: Options of the requests.
        end_id: The end token, where its log-probability after every option is wanted; else None.
        room: Most tokens of a text; an end token that would lie beyond it is not asked for.

    Returns:
        Sorted, so that nodes that begin alike stand together and an engine still holds what they share.
    """
    edges: dict[Node, set[int]] = {}
    for rows in encoded:
        for ids in rows.ids:
            whole = tuple(ids)
            for place in range(rows.n_context, len(whole)):
                edges.setdefault(whole[:place], set()).add(whole[place])
            if end_id is not None and len(whole) < room:
                edges.setdefault(whole, set()).add(end_id)
    return [Question(node, tuple(sorted(edges[node]))) for node in sorted(edges)]


def split_wide(asked: Sequence[Question], most: int) -> list[Question]:
    """The same questions with at most so many tokens each."""
    return [
        Question(node, tokens[start : start + most]) for node, tokens in asked for start in range(0, len(tokens), most)
    ]


def paths(asked: Sequence[Question]) -> list[Node]:
    """The fewest texts that run over every edge: each the beginning of no other."""
    whole = sorted((*question.node, token) for question in asked for token in question.tokens)
    # In sorted order a text that begins others stands right before one of them.
    return [path for path, after in zip(whole, [*whole[1:], ()], strict=True) if after[: len(path)] != path]


def option_logprobs(rows: Rows, edges: EdgeLogprobs) -> tuple[float, ...]:
    """Log-probability of each option."""
    return tuple(
        math.fsum(edges[tuple(ids[:place])][ids[place]] for place in range(rows.n_context, len(ids)))
        for ids in rows.ids
    )


def end_logprobs(rows: Rows, edges: EdgeLogprobs, end_id: int) -> tuple[float | None, ...]:
    """Log-probability of the end token after each option; None where it was not asked for."""
    return tuple(edges.get(tuple(ids), {}).get(end_id) for ids in rows.ids)
