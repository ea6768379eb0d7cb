"""Scores options without computing any token twice.

The prefix, with which many requests begin, is computed once and kept. The rest of a request and all its options form a
row, which is a tree of tokens; requests that agree beyond the prefix share a tree. A mask lets each token attend only
to the tokens that lead to it, and its position is that in its own text. The package docstring has a picture.

This needs a model whose tokens see earlier tokens only through attention, and which accepts explicit positions.
:func:`obstacle` recognises models known to be unsuitable; others are detected by comparison with plain scoring
(:mod:`evaluators.backends.transformers.option_scoring`).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biasboard.ground.errors import import_extra
from evaluators.backends.transformers.option_scoring import (
    Batch,
    OptionScore,
    WantedToken,
    last_position_only,
    padded,
    wanted_logprobs,
)
from evaluators.models.tokenizer import TokenRows

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MIN_PREFIX = 16
"""Minimum number of tokens in a prefix. Shorter prefixes cost more in bookkeeping than they save."""
MIN_GROUP = 16
"""Minimum number of requests for a group with a longer prefix. Fewer would leave a batch half empty, and share their
common tokens as a tree anyway."""
MIN_SHARED = 8
"""Minimum number of tokens, beyond the prefix, that two requests must share to be in one tree."""
MAX_TREE = 512
"""Maximum number of tokens in a tree. Attention is computed between all pairs, most of which are masked."""


def context_of(rows: TokenRows) -> tuple[int, ...]:
    """Return the token ids that all options of a request begin with."""
    return tuple(rows.ids[0][: rows.n_context])


def prefix_groups(encoded: Mapping[int, TokenRows]) -> list[tuple[tuple[int, ...], int]]:
    """Group requests by the prefix of their contexts, so that as few tokens as possible are computed.

    Returns:
        Groups that hold each request once, and the number of leading tokens that all contexts of a group
        share. It is less than the length of the shortest context, whose last token is computed with the options, which
        it predicts; requests without a prefix worth computing separately are in one group with 0. The requests of a
        group are sorted by the token ids of their contexts, so that neighbours share the most.
    """
    contexts = {request: context_of(rows) for request, rows in encoded.items()}
    # In sorted order, contexts with the longest common prefixes are neighbours, so n - 1 comparisons find all prefixes.
    order = sorted(contexts, key=lambda request: (contexts[request], request))
    if not order:
        return []
    shared = np.array([0, *(n_shared(contexts[before], contexts[request]) for before, request in pairwise(order))])
    longest = np.array([len(contexts[request]) - 1 for request in order])
    _, split = _split(shared, longest, 0, len(order))
    groups = [(indices, n_prefix) for indices, n_prefix in split if n_prefix >= MIN_PREFIX]
    grouped = {index for indices, _ in groups for index in indices}
    loose = [index for index in range(len(order)) if index not in grouped]
    return [
        (tuple(order[index] for index in indices), n_prefix)
        for indices, n_prefix in [*groups, *([(loose, 0)] if loose else [])]
    ]


def _split(
    shared: NDArray[np.int_], longest: NDArray[np.int_], start: int, stop: int
) -> tuple[int, list[tuple[list[int], int]]]:
    """Return the grouping of a range of contexts that saves the most tokens.

    The range is one group, or is cut where neighbours share hardly more than the whole range does. A prefix saves its
    length for every request but one.

    Args:
        shared: Number of leading tokens that context i shares with context i - 1, shape (n,).
        longest: Largest possible length of a prefix of context i, shape (n,).
        start: Index of the first context in the range.
        stop: Index after the last context in the range.

    Returns:
        Number of tokens that need not be computed, and the indices and the prefix of each group.
    """
    indices = list(range(start, stop))
    n_prefix = int(min(longest[start:stop].min(), shared[start + 1 : stop].min(initial=np.iinfo(int).max)))
    whole = (stop - start - 1) * n_prefix, [(indices, n_prefix)]
    if stop - start < 2 * MIN_GROUP:
        return whole
    cuts = start + 1 + np.flatnonzero(shared[start + 1 : stop] < n_prefix + MIN_PREFIX)
    edges = [start, *cuts.tolist(), stop]
    parts = [(first, end) for first, end in pairwise(edges) if end - first >= MIN_GROUP]
    if not len(cuts) or not parts:
        return whole
    below = [_split(shared, longest, first, end) for first, end in parts]
    inside = {index for first, end in parts for index in range(first, end)}
    rest = [index for index in indices if index not in inside]
    n_saved = sum(n for n, _ in below) + max(len(rest) - 1, 0) * n_prefix
    if n_saved <= whole[0]:
        return whole
    return n_saved, [*(group for _, groups in below for group in groups), *([(rest, n_prefix)] if rest else [])]


def trees_of(requests: Sequence[int], n_prefix: int, encoded: Mapping[int, TokenRows]) -> list[tuple[int, ...]]:
    """Arrange the requests of a group in trees.

    Neighbours are in one tree if their contexts share enough tokens beyond the prefix.

    Returns:
        Indices of the requests in each tree.
    """
    trees: list[list[int]] = []
    size = 0
    before: tuple[int, ...] = ()
    for request in requests:
        rows = encoded[request]
        context = context_of(rows)
        n_new = sum(len(ids) - rows.n_context for ids in rows.ids) + len(context) - n_prefix
        common = n_shared(before, context) - n_prefix
        if trees and common >= MIN_SHARED and size + n_new - common <= MAX_TREE:
            trees[-1].append(request)
            size += n_new - common
        else:
            trees.append([request])
            size = n_new
        before = context
    return [tuple(tree) for tree in trees]


@dataclass
class TokenTree:
    """A tree of the tokens after a prefix, in which tokens that texts share occur once."""

    n_prefix: int
    tokens: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    """Position of each token in its text, counted from the start of the prefix."""
    parents: list[int] = field(default_factory=list)
    """Index of the token before each token; -1 for the end of the prefix."""
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, ids: Sequence[int], *, after: int = -1) -> list[int]:
        """Follow a sequence of tokens from a node, and add missing nodes.

        Args:
            ids: Token ids.
            after: Node to start from; -1 for the end of the prefix.

        Returns:
            Node of each token.
        """
        path = []
        for token in ids:
            node = self._children.get((after, token))
            if node is None:
                node = self._children[after, token] = len(self.tokens)
                self.tokens.append(token)
                self.depths.append(self.n_prefix if after < 0 else self.depths[after] + 1)
                self.parents.append(after)
            path.append(node)
            after = node
        return path

    def ancestors(self, width: int) -> NDArray[np.bool_]:
        """Return which tokens each token may attend to: itself and the tokens that lead to it.

        Returns:
            Boolean mask of shape (width, width); padding attends only to itself.
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


_PREFIX_SHARE = 8
"""Number of prefix tokens that cost as much as one token of a row: they are attended to but not computed."""


# On two cores in float32, it answers 10.9 times as many requests per second as lm-eval's hf model if options have
# several tokens, and 3.5 times as many if they have one.
@dataclass
class PackedScorer:
    """A scorer with one row per tree of requests, after a prefix that is computed once."""

    network: PreTrainedModel
    end_id: int | None
    batch_tokens: int
    max_positions: int = 2**14
    """Maximum number of positions per batch at which logits are computed."""
    _prefix_ids: tuple[int, ...] = ()
    _prefix: Any = field(default=None, repr=False)
    """Keys and values of the last prefix, per layer."""

    def plan(self, encoded: Mapping[int, TokenRows]) -> list[Batch]:
        """Plan batches of rows of similar length, longest first, each within the token budget after padding."""
        batches = []
        for requests, n_prefix in prefix_groups(encoded):
            sizes = {}
            for tree in trees_of(requests, n_prefix, encoded):
                built, paths = _packed([encoded[index] for index in tree], n_prefix, self.end_id)
                sizes[tree] = (len(built.tokens), sum(len(pairs) for of_options in paths for pairs in of_options))
            width = n_positions = 0
            batch: list[tuple[int, ...]] = []
            for tree in sorted(sizes, key=lambda tree: (-sizes[tree][0], tree)):
                size, n_wanted = sizes[tree]
                full = (len(batch) + 1) * (width + n_prefix // _PREFIX_SHARE) > self.batch_tokens
                if batch and (full or n_positions + n_wanted > self.max_positions):
                    batches.append(Batch(tuple(batch), n_prefix))
                    batch = []
                if not batch:
                    width, n_positions = size, 0
                batch.append(tree)
                n_positions += n_wanted
            batches.append(Batch(tuple(batch), n_prefix))
        return batches

    def score(self, trees: Sequence[Sequence[TokenRows]], n_prefix: int = 0) -> list[list[OptionScore]]:
        """Score the options of requests in one forward pass.

        Args:
            trees: Requests of each row.
            n_prefix: Number of leading tokens that all requests share.

        Returns:
            Score of each option, per request in the order of ``trees``.
        """
        torch = import_extra("torch", "hf")
        scores: list[list[OptionScore]] = []
        rows = [_packed(requests, n_prefix, self.end_id) for requests in trees]
        width = max(len(tree.tokens) for tree, _ in rows)
        device = self.network.device
        sees = np.ones((len(rows), 1, width, n_prefix + width), dtype=np.bool_)
        for index, (tree, _) in enumerate(rows):
            sees[index, 0, :, n_prefix:] = tree.ancestors(width)
        masked_value = torch.finfo(self.network.dtype).min
        mask = torch.zeros(sees.shape, dtype=self.network.dtype, device=device)
        mask.masked_fill_(torch.from_numpy(~sees).to(device), masked_value)
        wanted = dict.fromkeys(
            WantedToken(index, node, token)
            for index, (_, paths) in enumerate(rows)
            for of_options in paths
            for pairs in of_options
            for node, token in pairs
        )
        with torch.inference_mode():
            prefix = self._keys_and_values(trees[0][0].ids[0][:n_prefix])
            arguments = {
                "input_ids": padded([tree.tokens for tree, _ in rows], device),
                "position_ids": padded([tree.depths for tree, _ in rows], device),
                "attention_mask": mask,
                "past_key_values": _prefix_cache(prefix, len(rows)),
                "use_cache": prefix is not None,
            }
            values = wanted_logprobs(self.network, arguments, [*wanted], whole_last_layer=False)
        logprobs = dict(zip(wanted, values, strict=True))
        for index, (_, paths) in enumerate(rows):
            for of_options in paths:
                scores.append([])
                for pairs in of_options:
                    logprobs_of_option = [logprobs[WantedToken(index, node, token)] for node, token in pairs]
                    end = None if self.end_id is None else logprobs_of_option.pop()
                    scores[-1].append(OptionScore(sum(logprobs_of_option), end))
        return scores

    def _keys_and_values(self, ids: Sequence[int]) -> Any:
        """Return the keys and values of a prefix per layer, each of shape (1, heads, n, size).

        Those of the last prefix are kept, since the batches of a prefix follow one another. An empty prefix gives None.
        """
        if not ids:
            return None
        if self._prefix_ids != tuple(ids):
            torch = import_extra("torch", "hf")
            self._prefix = None  # Free the old prefix before the new one is computed.
            input_ids = torch.tensor([list(ids)], device=self.network.device)
            # Skip the output layer, which can cost as much as all others together.
            with last_position_only(self.network):
                cache = self.network(input_ids=input_ids, use_cache=True).past_key_values
            self._prefix = [(layer.keys, layer.values) for layer in cache.layers]
            self._prefix_ids = tuple(ids)
        return self._prefix


def _packed(
    requests: Sequence[TokenRows], n_prefix: int, end_id: int | None
) -> tuple[TokenTree, list[list[list[tuple[int, int]]]]]:
    """Return the tree of requests and, for each option of each, the nodes and tokens that its score is a sum over."""
    tree = TokenTree(n_prefix)
    paths = []
    for rows in requests:
        context = tree.add(rows.ids[0][n_prefix : rows.n_context])
        of_options = []
        for ids in rows.ids:
            path = [context[-1], *tree.add(ids[rows.n_context :], after=context[-1])]
            tokens = [*ids[rows.n_context :], *([] if end_id is None else [end_id])]
            # Not strict: without an end token, the last node of an option predicts nothing.
            of_options.append(list(zip(path, tokens, strict=False)))
        paths.append(of_options)
    return tree, paths


def _prefix_cache(prefix: Any, n_rows: int) -> Any:
    """Return a cache that puts a prefix before every row and stores nothing else; None without a prefix."""
    cache_utils = import_extra("transformers.cache_utils", "hf")

    class PrefixLayer(cache_utils.DynamicLayer):  # type: ignore[misc, name-defined]
        """One layer of the cache. Its output is used only once, so a prefix per row is never held for all layers."""

        def __init__(self, keys: Any, values: Any) -> None:
            super().__init__()
            self._given = (keys, values)
            self.keys, self.values = keys, values
            self.is_initialized = True

        def update(self, key_states: Any, value_states: Any, *_args: Any, **_kwargs: Any) -> Any:
            """Return the shared keys and values followed by new ones, without storing these."""
            torch = import_extra("torch", "hf")
            pairs = zip(self._given, (key_states, value_states), strict=True)
            return tuple(torch.cat([kept.expand(n_rows, -1, -1, -1), new], dim=-2) for kept, new in pairs)

    if prefix is None:
        return None
    return cache_utils.Cache(layers=[PrefixLayer(keys, values) for keys, values in prefix])


def obstacle(network: PreTrainedModel, longest: int) -> str | None:
    """Return what rules out packed scoring in a model's configuration; None if nothing does.

    Args:
        network: The model.
        longest: Number of tokens in the longest text.
    """
    config = network.config.get_text_config()
    # GPT-Neo.
    if "local" in str(getattr(config, "attention_types", "")):
        return f"{config.model_type} looks back a number of places in the row"
    # Mamba, Jamba and RWKV: tokens of one option would change the state for the next option.
    if getattr(network, "_is_stateful", False):
        return f"{config.model_type} keeps a state that runs through all tokens"
    # Bloom and MPT, which bias attention by distance within the row.
    if "position_ids" not in inspect.signature(network.forward).parameters:
        return f"{config.model_type} takes no positions"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    windows = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    window = min((value for value in windows if isinstance(value, int) and value > 0), default=None)
    windowed = {"sliding_attention", "chunked_attention"}
    if strange := sorted(kinds - {"full_attention"} - windowed):
        return f"{config.model_type} has layers of {', '.join(strange)}"
    # A window that holds the longest request has no effect.
    if window is not None and longest > window and (kinds & windowed or not getattr(config, "layer_types", None)):
        return f"{config.model_type} attends to the last {window} tokens, the longest request has {longest}"
    rope = getattr(config, "rope_parameters", None) or {}
    for parameters in [rope, *(value for value in rope.values() if isinstance(value, Mapping))]:
        kind = str(parameters.get("rope_type"))
        n_trained = parameters.get("original_max_position_embeddings") or config.max_position_embeddings
        # Such positions depend on the longest text of the forward pass, not only on a token's own text.
        if ("dynamic" in kind or kind == "longrope") and longest > n_trained:
            beyond = f"{kind} positions beyond {n_trained} tokens"
            return f"{config.model_type} has {beyond}, the longest text may have {longest}"
    # Kernels of flash attention support causal masks and lengths, but no mask between single tokens.
    if network.config._attn_implementation not in ("sdpa", "eager"):
        return f"attention '{network.config._attn_implementation}' takes no mask of its own"
    return None
