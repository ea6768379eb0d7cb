"""Decodes texts of different lengths side by side, with their keys and values in one buffer, one row per text.

::

    row 0   The nurse met the guard [.]           6 tokens kept; the pass puts the next one into column 6
    row 1   Who is [a]                            columns behind the next token are masked
    row 2   The clerk gave the guard a [small]

Each forward pass adds a token at the end of every row, with its position given explicitly. When a text ends, the last
row moves to its place, so that no row is computed in vain. New texts are computed by themselves, and their keys and
values are copied to rows behind those in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from biasboard.ground.errors import import_extra
from evaluators.backends.transformers.decoding import Draft
from evaluators.backends.transformers.head import output_layer_at
from evaluators.backends.transformers.plain import padded

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

_MIN_SLACK = 16
_SLACK_SHARE = 4
"""Number of columns in use per spare column, so that the buffer is copied rarely and is not much too large."""


@dataclass
class Slots:
    """A set of drafts that are decoded together."""

    network: PreTrainedModel
    drafts: list[Draft] = field(default_factory=list)
    """Draft of each row."""
    _lengths: list[int] = field(default_factory=list)
    """Number of tokens of each row whose keys and values are kept: all but the last token of its text."""
    _buffers: list[list[Tensor]] = field(default_factory=list, repr=False)
    """Keys and values per layer, each of shape (rows, heads, columns, size); there may be more rows than drafts."""

    def add(self, drafts: Sequence[Draft]) -> Tensor:
        """Give rows to drafts, and return the logits of the next token of each, shape (n, vocabulary)."""
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
                    # Zeros, because the mask of a later pass does not remove a NaN of the padding.
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
                past_key_values=import_extra("transformers.cache_utils", "hf").Cache(layers=layers),
                use_cache=True,
            )
            logits: Tensor = output.logits[:, -1]
        # Count the tokens only now, so that a forward pass that fails leaves the rows as they were.
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def release(self, drafts: Sequence[Draft]) -> None:
        """Take drafts out of their rows."""
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
    """Compute texts from their first token on.

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
        return logits_at(output.logits), output.past_key_values


@cache
def _layer_class() -> Any:
    torch = import_extra("torch", "hf")
    cache_utils = import_extra("transformers.cache_utils", "hf")

    class SlotLayer(cache_utils.DynamicLayer):  # type: ignore[misc, name-defined]
        """Keys and values of one layer in one forward pass. DynamicLayer itself would copy all of them."""

        def __init__(self, keys: Any, values: Any, lengths: Any, width: int) -> None:
            """Put the next token of each row behind the tokens it has.

            Args:
                keys: Buffer of keys, which the pass writes to; there may be more rows than lengths.
                values: Buffer of values.
                lengths: Number of tokens in each row, shape (n,).
                width: Number of tokens in the longest row after the pass.
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
