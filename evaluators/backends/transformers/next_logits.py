"""Computes the logits of next tokens: of one text at a time, or of many side by side where the model allows it.

Side by side, the keys and values of all texts are in one buffer, one row per text::

    row 0   The nurse met the guard [.]           6 tokens kept; the pass puts the next one into column 6
    row 1   Who is [a]                            columns after the next token are masked
    row 2   The clerk gave the guard a [small]

Each forward pass adds a token at the end of every row, with its position given explicitly. When a text ends, the last
row replaces it, so that no row is computed in vain. New texts are computed by themselves, and their keys and values are
copied to rows after those in use. :func:`try_sharing` compares this with decoding one text at a time before a run
relies on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from biasboard.ground.errors import import_extra
from biasboard.ground.plain_text import one_line
from evaluators.backends.transformers.decoding import UnfinishedText, Vocabulary, next_tokens
from evaluators.backends.transformers.load import precision_of
from evaluators.backends.transformers.option_scoring import (
    STATES,
    last_position_only,
    obstacle,
    output_layer_at,
    padded,
    state_name,
    state_of,
)

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

_MIN_SLACK = 16
_SLACK_SHARE = 4
"""Number of columns in use per spare column, so that the buffer is rarely copied and wastes little memory."""


@dataclass
class Slots:
    """A set of drafts that are decoded together."""

    network: PreTrainedModel
    drafts: list[UnfinishedText] = field(default_factory=list)
    """Draft of each row."""
    _lengths: list[int] = field(default_factory=list)
    """Number of tokens in each row whose keys and values are kept: all but the last token of the text."""
    _buffers: list[list[Tensor]] = field(default_factory=list, repr=False)
    """Keys and values per layer, each of shape (rows, heads, columns, size); there may be more rows than drafts."""
    # Texts begin at the first column. When they were aligned at their ends, a longer new text moved all others to the
    # right, and free rows had to be computed too.

    def add(self, drafts: Sequence[UnfinishedText]) -> Tensor:
        """Assign rows to drafts; return the logits of the next token of each, shape (n, vocabulary)."""
        torch = import_extra("torch", "hf")
        texts = list(dict.fromkeys(tuple(draft.ids) for draft in drafts))
        index_of = {text: index for index, text in enumerate(texts)}
        # Samples of one prompt are computed once.
        rows = [index_of[tuple(draft.ids)] for draft in drafts]
        lengths = [len(texts[row]) for row in rows]
        logits, prefilled = prefill(self.network, texts)
        first, last = len(self.drafts), len(self.drafts) + len(drafts)
        with torch.inference_mode():
            if not self._buffers:
                self._buffers = [[layer.keys[:0], layer.values[:0]] for layer in prefilled.layers]
            self._reserve(last, max([*self._lengths, *lengths]))
            width = max(lengths)
            is_padding = torch.arange(width)[None] >= torch.tensor(lengths)[:, None]
            hidden = is_padding.to(logits.device)[:, None, :, None]
            for buffers, layer in zip(self._buffers, prefilled.layers, strict=True):
                for buffer, states in zip(buffers, (layer.keys, layer.values), strict=True):
                    # Zeros, because the mask of a later pass does not remove NaN values in the padding.
                    buffer[first:last, :, :width] = states[rows].masked_fill(hidden, 0)
        self.drafts.extend(drafts)
        self._lengths.extend(lengths)
        return logits[rows]

    def step(self) -> Tensor:
        """Return the logits of the next token of every draft, shape (n, vocabulary)."""
        torch = import_extra("torch", "hf")
        device = self.network.device
        width = max(self._lengths) + 1
        with torch.inference_mode():
            self._reserve(len(self.drafts), width)
            lengths = torch.tensor(self._lengths, device=device)
            layers = [_layer_class()(keys, values, lengths, width) for keys, values in self._buffers]
            output = self.network(
                input_ids=torch.tensor([[draft.generated[-1]] for draft in self.drafts], device=device),
                position_ids=lengths[:, None],
                attention_mask=(torch.arange(width, device=device)[None] <= lengths[:, None]).long(),
                use_cache=True,
                **{state_name(self.network): import_extra("transformers.cache_utils", "hf").Cache(layers=layers)},
            )
            logits: Tensor = output.logits[:, -1]
        # Only now, so that a forward pass that fails leaves the rows as they were.
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def release(self, drafts: Sequence[UnfinishedText]) -> None:
        """Free the rows of drafts."""
        torch = import_extra("torch", "hf")
        with torch.inference_mode():
            for draft in drafts:
                row, last = self.drafts.index(draft), len(self.drafts) - 1
                if row != last:
                    for buffer in (buffer for buffers in self._buffers for buffer in buffers):
                        buffer[row] = buffer[last]
                    self.drafts[row], self._lengths[row] = self.drafts[last], self._lengths[last]
                del self.drafts[last], self._lengths[last]
        if not self.drafts:
            self._buffers = []

    def _reserve(self, n_rows: int, n_columns: int) -> None:
        """Copy the rows in use to a larger buffer if the present one lacks rows or columns."""
        present = self._buffers[0][0].shape
        if present[0] >= n_rows and present[2] >= n_columns:
            return
        in_use = slice(len(self.drafts)), slice(None), slice(max(self._lengths, default=0))
        capacity = n_columns + max(_MIN_SLACK, n_columns // _SLACK_SHARE)
        for buffers in self._buffers:
            for index, old in enumerate(buffers):
                # Zeros instead of uninitialised memory, because a mask does not remove NaN values.
                buffers[index] = old.new_zeros((n_rows, old.shape[1], capacity, old.shape[3]))
                buffers[index][in_use] = old[in_use]


def prefill(network: PreTrainedModel, texts: Sequence[Sequence[int]]) -> tuple[Tensor, Any]:
    """Compute whole texts.

    Returns:
        Logits of the next token of each text, shape (n, vocabulary), and the model's cache with a row for each text.
    """
    torch = import_extra("torch", "hf")
    device = network.device
    ids = padded(texts, device)
    rows = torch.arange(len(texts), device=device)
    columns = torch.tensor([len(text) - 1 for text in texts], device=device)
    with torch.inference_mode(), output_layer_at(network, rows, columns, tuple(ids.shape)) as logits_at:
        output = network(input_ids=ids, use_cache=True)
        return logits_at(output.logits), state_of(output)


# Cached: a new class for each generated token is garbage that only the cyclic collector removes.
@cache
def _layer_class() -> Any:
    torch = import_extra("torch", "hf")
    cache_utils = import_extra("transformers.cache_utils", "hf")

    class SlotLayer(cache_utils.DynamicLayer):  # type: ignore[misc, name-defined]
        """Keys and values of one layer in one forward pass. DynamicLayer itself would copy all of them."""

        def __init__(self, keys: Any, values: Any, lengths: Any, width: int) -> None:
            """Prepare to append the next token of each row to buffers, which may have more rows.

            There are ``lengths`` tokens in each row, shape (n,), and ``width`` in the longest after the pass.
            """
            super().__init__()
            self.keys, self.values = keys, values
            self.is_initialized = True
            self._lengths, self._width = lengths, width

        def update(self, key_states: Any, value_states: Any, *_args: Any, **_kwargs: Any) -> Any:
            """Store the keys and values of the next token of each row, and return those of all tokens."""
            n = len(self._lengths)
            rows = torch.arange(n, device=self._lengths.device)
            self.keys[rows, :, self._lengths] = key_states[:, :, 0]
            self.values[rows, :, self._lengths] = value_states[:, :, 0]
            return self.keys[:n, :, : self._width], self.values[:n, :, : self._width]

        def get_seq_length(self) -> int:
            """Return the number of columns before that of the longest row's next token."""
            return self._width - 1

    return SlotLayer


_N_COMPARED_TOKENS = 16
_TOLERANCES = {"float32": 1e-3, "float16": 0.02, "bfloat16": 0.15}
"""Tolerated mean difference in nats between log-probabilities of the most probable tokens, by precision. It allows for
rounding, and is far below the effect of a wrong mask or position."""
_N_TRIED = 4
"""Number of tokens by which the examples are continued."""


@dataclass
class SingleDecoder:
    """A decoder of one text at a time. It reuses the model's state if this does not change the logits."""

    network: PreTrainedModel
    vocabulary: Vocabulary
    _keeps_state: bool | None = None
    """True if the state can be reused; None until tested at the second token of the first text."""

    def decode(self, draft: UnfinishedText) -> None:
        """Generate tokens until the text ends."""
        torch = import_extra("torch", "hf")
        kept: dict[str, Any] = {}
        with torch.inference_mode():
            while draft.response is None:
                if self._keeps_state is None and draft.generated:
                    self._keeps_state = self._state_is_sound(draft.ids, kept)
                if not self._keeps_state and draft.generated:
                    logits = plain_logits(self.network, draft.ids)
                else:
                    logits, kept = self._continue(draft.ids, kept)
                draft.take(next_tokens(self.vocabulary.masked(logits[None]), [draft])[0])

    def _continue(self, ids: Sequence[int], kept: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        torch = import_extra("torch", "hf")
        input_ids = torch.tensor([ids[-1:] if kept else list(ids)], device=self.network.device)
        with last_position_only(self.network):
            output = self.network(input_ids=input_ids, use_cache=True, **kept)
        states = ((name, getattr(output, name, None)) for name in STATES)
        # The first only: a later version gives one state under several names.
        return output.logits[0, -1], dict(next(((pair,) for pair in states if pair[1] is not None), ()))

    def _state_is_sound(self, ids: Sequence[int], kept: dict[str, Any]) -> bool:
        if not kept:
            return False
        # Using a state can change it, so test with a new one, not with the one that decoding continues from.
        try:
            _, fresh = self._continue(ids[:-1], {})
            reused, _ = self._continue(ids, fresh)
        # A model that does not support this may raise any exception, and may still work without a state.
        except Exception:
            return False
        return difference_of(reused, plain_logits(self.network, ids))[0] <= _tolerance(self.network)


def plain_logits(network: PreTrainedModel, ids: Sequence[int]) -> Tensor:
    """Return the logits of the token after a text, shape (vocabulary,), from one pass over the whole text."""
    torch = import_extra("torch", "hf")
    with torch.inference_mode(), last_position_only(network):
        output = network(input_ids=torch.tensor([list(ids)], device=network.device), use_cache=False)
        logits: Tensor = output.logits[0, -1]
    return logits


def try_sharing(network: PreTrainedModel, longest: UnfinishedText, shortest: UnfinishedText) -> float | str:
    """Decode a few tokens side by side and alone, and compare their logits.

    Returns:
        Largest difference to the log-probability of a token, in nats; or why texts must be decoded one by one.
    """
    config = network.config.get_text_config()
    reason = obstacle(network, longest.max_total)
    if reason is None and "chunked_attention" in (getattr(config, "layer_types", None) or []):
        reason = f"{config.model_type} attends to chunks that begin at fixed positions"
    if reason is not None:
        return reason
    # A model that does not support this may raise any exception. Decoding one by one shows whether it works at all.
    try:
        return _compare_sharing(network, longest, shortest)
    except Exception as error:
        return f"{type(network).__name__} fails on it ({one_line(error, most=100)})"


def _compare_sharing(network: PreTrainedModel, longest: UnfinishedText, shortest: UnfinishedText) -> float | str:
    """Compare a long and a short text decoded together with each of them decoded alone."""
    long, short, replacement = _without_end(longest), _without_end(shortest), _without_end(longest)
    _, cache = prefill(network, [long.prompt])
    if reason := _obstacle_in_cache(cache, len(long.prompt), longest.max_total):
        return reason
    slots = Slots(network)
    differences: list[tuple[float, float]] = []
    # All that can happen to a text: the short one joins while the long one is decoded, and then another one replaces
    # the long one.
    for newcomer in (long, short, replacement):
        if newcomer is replacement:
            slots.release([long])
        (logits,) = slots.add([newcomer])
        differences.append(_compare_and_extend(network, newcomer, logits))
        logits = slots.step()
        differences.extend(
            _compare_and_extend(network, draft, row) for draft, row in zip(slots.drafts, logits, strict=True)
        )
    largest = max((of_top for of_top, _ in differences), key=lambda value: (value != value, value))
    # Every comparison with NaN is false. Written with "not", the condition treats NaN as a difference.
    if not largest <= _tolerance(network):
        return f"it differs by {largest:.2g} nats from decoding one text at a time on the first requests"
    return max(of_any for _, of_any in differences)


def _without_end(draft: UnfinishedText) -> UnfinishedText:
    """Return a draft of the same text that continues for a few tokens without ending."""
    prompt = draft.prompt[: max(1, draft.max_total - _N_TRIED)]
    request = replace(draft.request, stop=(), temperature=0.0)
    return UnfinishedText(draft.index, request, prompt, _N_TRIED + 1, frozenset(), draft.tokenizer)


def _compare_and_extend(network: PreTrainedModel, draft: UnfinishedText, logits: Tensor) -> tuple[float, float]:
    """Return the difference of logits from those of the text alone, and add a token to the draft."""
    expected = plain_logits(network, draft.ids)
    draft.take(int(expected.argmax()))
    return difference_of(logits, expected)


def _tolerance(network: PreTrainedModel) -> float:
    return _TOLERANCES.get(precision_of(network), _TOLERANCES["float32"])


def difference_of(logits: Tensor, expected: Tensor) -> tuple[float, float]:
    """Compare two computations of the logits of the next token, each of shape (vocabulary,).

    Returns:
        Mean difference of the log-probabilities of the most probable tokens, and the largest of any token, in nats.
    """
    torch = import_extra("torch", "hf")
    computed, reference = (torch.log_softmax(values.float(), dim=-1) for values in (logits, expected))
    top = reference.topk(min(_N_COMPARED_TOKENS, len(reference))).indices
    # Equal values include minus infinity, whose difference is no number.
    differences = torch.where(computed == reference, 0.0, (computed - reference).abs())
    return float(differences[top].mean()), float(differences.max())


def _obstacle_in_cache(cache: Any, n_tokens: int, longest: int) -> str | None:
    """Return why the model's cache rules out sharing; None if it does not.

    Sharing puts the keys and values of several texts together, so each layer must keep those of all tokens and nothing
    else.
    """
    cache_utils = import_extra("transformers.cache_utils", "hf")
    for layer in getattr(cache, "layers", None) or [None]:
        plain = type(layer) is cache_utils.DynamicLayer
        # A window that holds the longest text has no effect.
        wide = type(layer) is cache_utils.DynamicSlidingWindowLayer and layer.sliding_window >= longest
        if not (plain or wide) or layer.keys is None or layer.keys.shape[2] != n_tokens:
            return f"the model keeps a {type(layer).__name__} of its texts"
    return None
