"""Arranges options as a trie, so that an engine computes only once what several options share.

A node is the context and the option tokens so far; an edge is the next token of an option. The log-probability of an
option is the sum over its edges. Requests with the same context share their nodes. With the context "The nurse called"
and the options " the engineer" and " the nurse", two nodes are asked::

    The nurse called       how probable is "the"?
    The nurse called the   how probable are "engineer" and "nurse"?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from evaluators.models.tokenizer import TokenRows

Node: TypeAlias = tuple[int, ...]
"""Token ids from the beginning of the text."""
EdgeLogprobs: TypeAlias = Mapping[Node, Mapping[int, float]]
"""Log-probability in nats of each token that follows a node."""
MOST_TOKEN_IDS = 128
"""Largest number of ``logprob_token_ids`` that vLLM accepts, in its engine and its server."""


class TokenQuestion(NamedTuple):
    """A question to an engine: how probable is each of these tokens after the node?"""

    node: Node
    tokens: tuple[int, ...]


def edges_of(
    encoded: Iterable[TokenRows], *, end_id: int | None, context_tokens: int | None = None
) -> dict[Node, set[int]]:
    """Return the option tokens that follow each inner node of the trie, with nodes in the order of the options.

    Args:
        encoded: Token ids of the options of each request.
        end_id: Id of the end token to score after every option; None to skip it.
        context_tokens: Maximum number of tokens in a text; an end token beyond it is not asked for. None for no limit.
    """
    edges: dict[Node, set[int]] = {}
    for rows in encoded:
        for ids in rows.ids:
            whole = tuple(ids)
            for index in range(rows.n_context, len(whole)):
                edges.setdefault(whole[:index], set()).add(whole[index])
            if end_id is not None and (context_tokens is None or len(whole) < context_tokens):
                edges.setdefault(whole, set()).add(end_id)
    return edges


def questions(encoded: Iterable[TokenRows], *, end_id: int | None, context_tokens: int) -> list[TokenQuestion]:
    """Return the edges as one question for each node, in the order of the nodes; see :func:`edges_of`."""
    edges = edges_of(encoded, end_id=end_id, context_tokens=context_tokens)
    # Sorted, nodes with common prefixes are neighbours, so that the engine still has these in its cache.
    return [TokenQuestion(node, tuple(sorted(edges[node]))) for node in sorted(edges)]


def split_wide(asked: Iterable[TokenQuestion], most: int = MOST_TOKEN_IDS) -> list[TokenQuestion]:
    """Split questions so that each has at most ``most`` tokens."""
    return [
        TokenQuestion(node, tokens[start : start + most])
        for node, tokens in asked
        for start in range(0, len(tokens), most)
    ]


def option_logprobs(rows: TokenRows, edges: EdgeLogprobs) -> tuple[float, ...]:
    """Return the log-probability of each option in nats."""
    return tuple(
        math.fsum(edges[tuple(ids[:index])][ids[index]] for index in range(rows.n_context, len(ids)))
        for ids in rows.ids
    )


def end_logprobs(rows: TokenRows, edges: EdgeLogprobs, end_id: int) -> tuple[float | None, ...]:
    """Return the log-probability in nats of the end token after each option; None if it was not asked for."""
    return tuple(edges.get(tuple(ids), {}).get(end_id) for ids in rows.ids)
