"""Decodes texts of different lengths side by side, with their keys and values in one buffer, one row per text.

All rows end at the same column, so that one forward pass adds a column to each of them. A mask hides the columns before
a row begins, and positions are given explicitly. When a text ends, its row becomes free for the next one, whose keys
and values are computed separately and copied into the buffer. When the buffer is full, leading columns that no text
uses any more are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from biasboard.ground.errors import import_extra
from evaluators.backends.transformers.decoding import Draft

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

_MIN_SLACK = 16
_SLACK_SHARE = 4
"""Number of columns in use per spare column, so that the buffer is copied rarely and is not much too large."""
_DEAD_SHARE = 8
"""Minimum number of rows per free row. If there are fewer, the free rows are removed, as they are computed in vain. The
same goes for leading columns that no row uses."""


@dataclass
class Slots:
    """A set of drafts that are decoded together."""

    network: PreTrainedModel
    _rows: list[Draft | None] = field(default_factory=list)
    """Draft of each row; None if the row is free."""
    _lengths: list[int] = field(default_factory=list)
    """Number of tokens in each row whose keys and values are kept: all but the last token of its text."""
    _cache: Any = field(default=None, repr=False)

    @property
    def drafts(self) -> list[Draft]:
        """The drafts that are being decoded."""
        return [draft for draft in self._rows if draft is not None]

    def begin(self, drafts: Sequence[Draft]) -> tuple[Tensor, Prefilled]:
        """Compute the first logits of drafts, without giving the drafts a row yet.

        Returns:
            Logits of the next token of each draft, shape (n, vocabulary), and the keys and values that :meth:`add`
            needs.
        """
        torch = import_extra("torch", "hf")
        texts = list(dict.fromkeys(tuple(draft.ids) for draft in drafts))
        where = {text: index for index, text in enumerate(texts)}
        rows = [where[tuple(draft.ids)] for draft in drafts]
        lengths = [len(text) for text in texts]
        width = max(lengths)
        device = self.network.device
        # Pad on the right, where a causal model never looks.
        ids = torch.tensor([[*text, *[0] * (width - len(text))] for text in texts], device=device)
        with torch.inference_mode():
            output = _with_logits_at(self.network, {"input_ids": ids, "use_cache": True}, [n - 1 for n in lengths])
            return output.logits[rows], Prefilled(output.past_key_values, rows, [lengths[row] for row in rows])

    def add(self, drafts: Sequence[Draft], prefilled: Prefilled, chosen: Sequence[int]) -> None:
        """Give a row to each draft that continues.

        Args:
            drafts: All drafts that were begun together.
            prefilled: Their keys and values, from :meth:`begin`.
            chosen: Indices of the drafts that continue.
        """
        torch = import_extra("torch", "hf")
        if not chosen:
            return
        lengths = [prefilled.lengths[index] for index in chosen]
        width = max(lengths)
        free = [row for row, draft in enumerate(self._rows) if draft is None]
        layers = prefilled.cache.layers
        with torch.inference_mode():
            if len(free) < len(chosen) or self._cache is None or width > self._n_columns or not self._n_spare:
                free = self._rebuild(len(chosen), width, layers)
            rows = free[: len(chosen)]
            source = [prefilled.rows[index] for index in chosen]
            for layer, new in zip(self._cache.layers, layers, strict=True):
                layer.put(rows, _right_aligned(new.keys, source, lengths), _right_aligned(new.values, source, lengths))
        for row, index, length in zip(rows, chosen, lengths, strict=True):
            self._rows[row], self._lengths[row] = drafts[index], length

    def step(self) -> tuple[list[Draft], Tensor]:
        """Compute the logits of the next token of every draft.

        Returns:
            The drafts, and their logits of shape (n, vocabulary).
        """
        torch = import_extra("torch", "hf")
        self._drop_dead()
        device = self.network.device
        with torch.inference_mode():
            if not self._n_spare:
                self._rebuild(0, 0, self._cache.layers)
            n = self._n_columns
            # A free row sees the token that it is given and nothing else.
            lengths = torch.tensor([0 if draft is None else self._lengths[row] for row, draft in self._numbered])
            last = [0 if draft is None else draft.generated[-1] for draft in self._rows]
            seen = torch.arange(n + 1)[None] >= n - lengths[:, None]
            output = self.network(
                input_ids=torch.tensor(last, device=device)[:, None],
                position_ids=lengths[:, None].to(device),
                attention_mask=seen.long().to(device),
                past_key_values=self._cache,
                use_cache=True,
            )
            live = [row for row, draft in self._numbered if draft is not None]
            logits = output.logits[:, -1] if len(live) == len(self._rows) else output.logits[live, -1]
        # Update the state only now, so that a forward pass that fails leaves it as it was.
        for layer in self._cache.layers:
            layer.n_columns += 1
        self._lengths = [length + 1 for length in self._lengths]
        return self.drafts, logits

    def release(self, drafts: Sequence[Draft]) -> None:
        """Free the rows of drafts."""
        ended = {id(draft) for draft in drafts}
        self._rows = [None if id(draft) in ended else draft for draft in self._rows]
        if not self.drafts:
            self._rows, self._lengths, self._cache = [], [], None

    @property
    def _numbered(self) -> list[tuple[int, Draft | None]]:
        return list(enumerate(self._rows))

    @property
    def _n_columns(self) -> int:
        n: int = self._cache.layers[0].n_columns
        return n

    @property
    def _n_spare(self) -> int:
        n: int = self._cache.layers[0].n_spare
        return n

    def _drop_dead(self) -> None:
        n_dead = len(self._rows) - len(self.drafts)
        used = [length for length, draft in zip(self._lengths, self._rows, strict=True) if draft is not None]
        n_unused = self._n_columns - max(used)
        if n_dead * _DEAD_SHARE > len(self._rows) or n_unused > max(_MIN_SLACK, self._n_columns // _SLACK_SHARE):
            self._rebuild(0, 0, self._cache.layers)

    def _rebuild(self, n_new: int, width: int, like: Sequence[Any]) -> list[int]:
        """Copy the rows in use to a new buffer with free rows, and return the indices of the free rows.

        Args:
            n_new: Number of free rows to add.
            width: Minimum number of columns in use.
            like: Layers whose number of heads, head size, precision and device the new buffer gets.
        """
        kept = [row for row, draft in self._numbered if draft is not None]
        longest = max((self._lengths[row] for row in kept), default=0)
        width = max(width, longest)
        capacity = width + max(_MIN_SLACK, width // _SLACK_SHARE)
        # Some models hold a mask with one column per position that they know. No text has more tokens.
        room = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)
        if isinstance(room, int) and room > width:
            capacity = min(capacity, room)
        old = self._cache.layers if kept else [None] * len(like)
        shape = (len(kept) + n_new, capacity)
        if self._cache is None:
            self._cache = _empty_cache(len(like))
        for layer, before, model in zip(self._cache.layers, old, like, strict=True):
            layer.rebuild(shape, width, model, kept if before is not None else [], longest)
        self._rows = [*(self._rows[row] for row in kept), *[None] * n_new]
        self._lengths = [*(self._lengths[row] for row in kept), *[0] * n_new]
        return list(range(len(kept), len(kept) + n_new))


@dataclass(frozen=True)
class Prefilled:
    """Keys and values of texts that have no row yet."""

    cache: Any = field(repr=False)
    rows: list[int]
    """Row of the cache for each draft; drafts with the same text share a row."""
    lengths: list[int]
    """Number of tokens of each draft."""


def _right_aligned(states: Tensor, rows: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Return rows of keys or values, each moved to the right end of the columns.

    A mask hides the columns before a row begins.

    Args:
        states: Keys or values with rows that begin at the first column, shape (n, heads, longest, size).
        rows: Row to take for each draft.
        lengths: Number of tokens of each draft.
    """
    torch = import_extra("torch", "hf")
    width = max(lengths)
    shifts = width - torch.tensor(lengths, device=states.device)
    columns = (torch.arange(width, device=states.device)[None] - shifts[:, None]).clamp(min=0)
    taken = states[list(rows)]
    index = columns[:, None, :, None].expand(-1, taken.shape[1], -1, taken.shape[3])
    result: Tensor = taken.gather(2, index)
    return result


def _empty_cache(n_layers: int) -> Any:
    """Return a cache whose layers append in place to a buffer with spare columns."""
    torch = import_extra("torch", "hf")
    cache_utils = import_extra("transformers.cache_utils", "hf")

    class SlotLayer(cache_utils.DynamicLayer):  # type: ignore[misc, name-defined]
        """Keys and values of one layer; the first ``n_columns`` of the buffer are in use."""

        def __init__(self) -> None:
            super().__init__()
            self.keys: Any = None
            self.values: Any = None
            self.n_columns = 0
            self.is_initialized = True

        @property
        def n_spare(self) -> int:
            """The number of columns that are not in use yet."""
            return int(self.keys.shape[2]) - self.n_columns

        def rebuild(self, shape: tuple[int, int], width: int, like: Any, kept: list[int], longest: int) -> None:
            """Make a new buffer with the last ``longest`` columns of the rows to keep, ending at column ``width``."""
            n_rows, capacity = shape
            old, end = (self.keys, self.values), self.n_columns
            new = []
            for model, before in zip((like.keys, like.values), old, strict=True):
                # Use zeros instead of uninitialised memory, because a mask does not remove NaN values.
                buffer = model.new_zeros((n_rows, model.shape[1], capacity, model.shape[3]))
                if kept:
                    buffer[: len(kept), :, width - longest : width] = before[kept, :, end - longest : end]
                new.append(buffer)
            self.keys, self.values = new
            self.n_columns = width

        def put(self, rows: list[int], keys: Any, values: Any) -> None:
            """Fill rows with keys and values up to the last column in use."""
            columns = slice(self.n_columns - keys.shape[2], self.n_columns)
            self.keys[rows, :, columns] = keys
            self.values[rows, :, columns] = values

        def update(self, key_states: Any, value_states: Any, *_args: Any, **_kwargs: Any) -> Any:
            """Store keys and values behind the columns in use and return all of them."""
            end = self.n_columns + key_states.shape[2]
            self.keys[:, :, self.n_columns : end] = key_states
            self.values[:, :, self.n_columns : end] = value_states
            return self.keys[:, :, :end], self.values[:, :, :end]

        def get_seq_length(self) -> int:
            """Return the number of columns in use."""
            return self.n_columns

    with torch.inference_mode():
        return cache_utils.Cache(layers=[SlotLayer() for _ in range(n_layers)])


def _with_logits_at(network: PreTrainedModel, arguments: dict[str, Any], columns: Sequence[int]) -> Any:
    """Run a forward pass with logits at one column per row, and return its output.

    The logits have shape (n, vocabulary). The output layer runs only at these positions if the model makes it
    accessible.

    Args:
        network: The model.
        arguments: Keyword arguments of the forward pass.
        columns: Column of each row, shape (n,).
    """
    torch = import_extra("torch", "hf")
    head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    shape = tuple(arguments["input_ids"].shape)
    rows, at = torch.arange(shape[0], device=network.device), torch.tensor(columns, device=network.device)
    selected = False

    def select(_module: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        nonlocal selected
        hidden, *rest = given
        if selected or tuple(hidden.shape[:2]) != shape:
            return given
        selected = True
        return (hidden[rows, at][:, None], *rest)

    handle = None if head is None else head.register_forward_pre_hook(select)
    try:
        output = network(**arguments)
    finally:
        if handle is not None:
            handle.remove()
    output.logits = output.logits[:, 0] if selected else output.logits[rows, at]
    return output
