"""Scores options without computing any token twice.

Of requests that begin alike, such as those with one instruction::

    context                                                       options
    ────────────────────────────────────────────────────────────  ─────────
    Who is meant? Ann: The nurse thanked the guard. "She" is the   nurse      plain scoring: one row for each option,
    Who is meant? Ann: The nurse thanked the guard. "She" is the   guard      and all of its tokens are computed
    Who is meant? Ann: The clerk saw the driver. "He" is the       clerk
    Who is meant? Ann: The clerk saw the driver. "He" is the       driver

    Who is meant? Ann: The ┬─ nurse thanked the guard. "She" is the ─┬─ nurse
    (prefix: its keys and  │                                         └─ guard      one row, as a tree of tokens
    values are computed    └─ clerk saw the driver. "He" is the ─────┬─ clerk
    once, and kept)                                                  └─ driver

The tokens that many requests begin with are computed once and kept. The rest of a request and all its options form one
row: a tree of tokens. A mask lets each token see only the tokens that lead to it, and its position is the one in its
own text. This needs a model whose tokens see earlier tokens only through attention, and which accepts explicit
positions. :func:`obstacle` names what a model is known to lack. The caller compares packed and plain scoring on real
requests before it relies on packed scoring.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from biasboard.ground.errors import import_extra
from evaluators.backends.transformers.head import Wanted, last_position_only, wanted_logprobs
from evaluators.backends.transformers.plain import Batch, Score, padded
from evaluators.backends.transformers.token_tree import TokenTree, prefix_groups, trees_of
from evaluators.models.tokenizer import Rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_PREFIX_SHARE = 8
"""Number of prefix tokens that count as one token of a row, because they are attended to but not computed."""


@dataclass
class PackedScorer:
    """A scorer with one row per tree of requests, after a prefix that is computed once."""

    network: PreTrainedModel
    end_id: int | None
    batch_tokens: int
    max_places: int = 2**14
    """Maximum number of positions per batch at which logits are computed."""
    _prefix_ids: tuple[int, ...] = ()
    _prefix: Any = field(default=None, repr=False)
    """Keys and values of the last prefix, per layer."""

    def plan(self, encoded: Sequence[Rows | None]) -> list[Batch]:
        """Plan batches of rows of similar length, longest first, each within the token budget after padding.

        Args:
            encoded: Token ids of each request; None for a request that is not scored.

        Returns:
            Batches that hold every request with token ids once.
        """
        batches = []
        for group in prefix_groups(encoded):
            sizes = {}
            for tree in trees_of(group, encoded):
                built = _Row(
                    [rows for index in tree if (rows := encoded[index]) is not None], group.n_prefix, self.end_id
                )
                sizes[tree] = (len(built.tree.tokens), len(built.wanted))
            width = n_places = 0
            batch: list[tuple[int, ...]] = []
            for tree in sorted(sizes, key=lambda tree: (-sizes[tree][0], tree)):
                size, n_wanted = sizes[tree]
                full = (len(batch) + 1) * (width + group.n_prefix // _PREFIX_SHARE) > self.batch_tokens
                if batch and (full or n_places + n_wanted > self.max_places):
                    batches.append(Batch(tuple(batch), group.n_prefix))
                    batch = []
                if not batch:
                    width, n_places = size, 0
                batch.append(tree)
                n_places += n_wanted
            batches.append(Batch(tuple(batch), group.n_prefix))
        return batches

    def score(self, trees: Sequence[Sequence[Rows]], n_prefix: int = 0) -> list[list[Score]]:
        """Score the options of requests in one forward pass.

        Args:
            trees: Requests of each row.
            n_prefix: Number of leading tokens that all requests share.

        Returns:
            Score of each option, per request in the order of ``trees``.
        """
        torch = import_extra("torch", "hf")
        rows = [_Row(requests, n_prefix, self.end_id) for requests in trees]
        width = max(len(row.tree.tokens) for row in rows)
        device = self.network.device
        sees = np.ones((len(rows), 1, width, n_prefix + width), dtype=np.bool_)
        for index, row in enumerate(rows):
            sees[index, 0, :, n_prefix:] = row.tree.ancestors(width)
        closed = torch.finfo(self.network.dtype).min
        mask = torch.zeros(sees.shape, dtype=self.network.dtype, device=device)
        mask.masked_fill_(torch.from_numpy(~sees).to(device), closed)
        wanted = [
            Wanted(index, node, token) for index, row in enumerate(rows) for node, token in dict.fromkeys(row.wanted)
        ]
        with torch.inference_mode():
            prefix = self._keys_and_values(trees[0][0].ids[0][:n_prefix])
            arguments = {
                "input_ids": padded([row.tree.tokens for row in rows], device),
                "position_ids": padded([row.tree.depths for row in rows], device),
                "attention_mask": mask,
                "past_key_values": _prefix_cache(prefix, len(rows)),
                "use_cache": prefix is not None,
            }
            shape = (len(rows), width)
            values = wanted_logprobs(self.network, arguments, wanted, shape=shape, whole_last_layer=False)
        known = dict(zip(wanted, values, strict=True))
        return [scores for index, row in enumerate(rows) for scores in row.scores(known, index)]

    def _keys_and_values(self, ids: Sequence[int]) -> Any:
        """Return the keys and values of a prefix per layer, each of shape (1, heads, n, size).

        They are kept until another prefix is asked for. An empty prefix gives None.
        """
        if not ids:
            return None
        if self._prefix_ids != tuple(ids):
            torch = import_extra("torch", "hf")
            self._prefix = None  # Free the old prefix before the new one is computed.
            given = torch.tensor([list(ids)], device=self.network.device)
            with last_position_only(self.network):
                cache = self.network(input_ids=given, use_cache=True).past_key_values
            self._prefix = [(layer.keys, layer.values) for layer in cache.layers]
            self._prefix_ids = tuple(ids)
        return self._prefix


class _Row:
    """A tree of requests, and the tokens whose log-probabilities are wanted at its nodes."""

    def __init__(self, requests: Sequence[Rows], n_prefix: int, end_id: int | None) -> None:
        self.tree = TokenTree(n_prefix)
        self._end = end_id
        self._paths: list[list[list[tuple[int, int]]]] = []
        """Per request and option, the nodes and tokens whose log-probabilities make up its score."""
        self.wanted: list[tuple[int, int]] = []
        for rows in requests:
            context = self.tree.add(rows.ids[0][n_prefix : rows.n_context])
            options = []
            for ids in rows.ids:
                path = [context[-1], *self.tree.add(ids[rows.n_context :], after=context[-1])]
                tokens = [*ids[rows.n_context :], *([] if end_id is None else [end_id])]
                options.append(list(zip(path, tokens, strict=False)))
            self._paths.append(options)
            self.wanted.extend(pair for option in options for pair in option)

    def scores(self, known: dict[Wanted, float], index: int) -> list[list[Score]]:
        """Return the score of each option, per request.

        Args:
            known: Log-probability of each wanted token in nats.
            index: Index of this row in the batch.
        """
        of_requests = []
        for options in self._paths:
            scores = []
            for pairs in options:
                values = [known[Wanted(index, node, token)] for node, token in pairs]
                end = None if self._end is None else values.pop()
                scores.append(Score(sum(values), end))
            of_requests.append(scores)
        return of_requests


def _prefix_cache(prefix: Any, n_rows: int) -> Any:
    """Return a cache that puts a prefix before every row and keeps nothing else; None without a prefix."""
    cache_utils = import_extra("transformers.cache_utils", "hf")

    class PrefixLayer(cache_utils.DynamicLayer):  # type: ignore[misc, name-defined]
        """One layer of the cache. Its output is used only once, so a prefix per row is never held for all layers."""

        def __init__(self, keys: Any, values: Any) -> None:
            super().__init__()
            self._given = (keys, values)
            self.keys, self.values = keys, values
            self.is_initialized = True

        def update(self, key_states: Any, value_states: Any, *_args: Any, **_kwargs: Any) -> Any:
            """Return the shared keys and values with new ones behind them, and keep the shared ones as they are."""
            torch = import_extra("torch", "hf")
            pairs = zip(self._given, (key_states, value_states), strict=True)
            return tuple(torch.cat([kept.expand(n_rows, -1, -1, -1), new], dim=-2) for kept, new in pairs)

    if prefix is None:
        return None
    return cache_utils.Cache(layers=[PrefixLayer(keys, values) for keys, values in prefix])


def obstacle(network: PreTrainedModel, longest: int) -> str | None:
    """Return what rules out packed scoring in a model's configuration; None if nothing is known to.

    Args:
        network: The model.
        longest: Number of tokens in the longest text.
    """
    config = network.config.get_text_config()
    if "local" in str(getattr(config, "attention_types", "")):
        return f"{config.model_type} looks back a number of places in the row"
    if getattr(network, "_is_stateful", False):
        return f"{config.model_type} keeps a state that runs through all tokens"
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
    given = getattr(config, "rope_parameters", None) or {}
    for parameters in [given, *(value for value in given.values() if isinstance(value, Mapping))]:
        kind = str(parameters.get("rope_type"))
        room = parameters.get("original_max_position_embeddings") or config.max_position_embeddings
        # Such positions depend on the longest text of the forward pass, not only on a token's own text.
        if ("dynamic" in kind or kind == "longrope") and longest > room:
            return f"{config.model_type} has {kind} positions beyond {room} tokens, the longest text may have {longest}"
    if network.config._attn_implementation not in ("sdpa", "eager"):
        return f"attention '{network.config._attn_implementation}' takes no mask of its own"
    return None
