"""Scores texts with masked models: the log-probability of hidden tokens, many rows per pass.

The backend ``masked`` says what is hidden, and why.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.backend import ChoiceRequest
from evaluators.backends.transformers.last_layers import WantedToken, wanted_logprobs
from evaluators.backends.transformers.plain_scoring import padded
from evaluators.models.encoding import encode

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)


class MaskedText(NamedTuple):
    """The token ids of a text, and what is hidden to score each of its tokens."""

    ids: list[int]
    hidden: tuple[tuple[int, ...], ...]
    """Positions that are hidden together, for each scored token: its own, and those of the rest of its word."""


class HiddenRow(NamedTuple):
    """A text with some tokens hidden, of which the first is predicted."""

    text: MaskedText
    hidden: tuple[int, ...]


def masked_texts(tokenizer: PreTrainedTokenizerBase, request: ChoiceRequest) -> list[MaskedText]:
    """Return the text of each option: the prompt with the option, of which the tokens of the option are scored.

    A token that lies in both is scored, as for causal models.
    """
    texts = [request.prompt + option for option in request.options]
    encoded = encode(tokenizer, texts, return_offsets_mapping=True)
    return [
        MaskedText(
            encoded["input_ids"][index], tuple(_hidden(encoded.word_ids(index), offsets, after=len(request.prompt)))
        )
        for index, offsets in enumerate(encoded["offset_mapping"])
    ]


def _hidden(
    words: Sequence[int | None], offsets: Sequence[tuple[int, int]], *, after: int
) -> Iterator[tuple[int, ...]]:
    """Yield the positions to hide for each token that ends after a number of characters.

    Args:
        words: Number of the word of each token; None for special tokens.
        offsets: First and last character of each token.
        after: Number of characters that are not scored.
    """
    for position, word in enumerate(words):
        # A sign for the beginning of a word can be a token without characters.
        if word is not None and (not after or offsets[position][1] > after):
            end = position
            while end < len(words) and words[end] == word:
                end += 1
            yield tuple(range(position, end))


@dataclass(frozen=True)
class MaskedScorer:
    """Predicts hidden tokens, each row padded on the right."""

    network: PreTrainedModel
    mask_id: int
    """Id of the token that stands for a hidden one."""
    batch_tokens: int
    """Maximum number of tokens in a pass, padding included."""

    def logprobs(self, rows: Sequence[HiddenRow]) -> list[float] | None:
        """Return the log-probability of the first hidden token of each row, in nats, in passes within the token budget.

        Returns:
            One value per row; None if the memory does not suffice for a single row.
        """
        values: list[float] = []
        start = 0
        while start < len(rows):
            end, width = start, 0
            while end < len(rows):
                width = max(width, len(rows[end].text.ids))
                if end > start and (end + 1 - start) * width > self.batch_tokens:
                    break
                end += 1
            of_pass = self._pass(rows[start:end])
            if of_pass is None:
                return None
            values += of_pass
            start = end
        return values

    def _pass(self, rows: Sequence[HiddenRow]) -> list[float] | None:
        """Return the log-probabilities of one pass; if memory runs out, of two halves."""
        torch = import_extra("torch", "hf")
        device = self.network.device
        masked = [
            [self.mask_id if at in row.hidden else token for at, token in enumerate(row.text.ids)] for row in rows
        ]
        ids = padded(masked, device)
        wanted = [WantedToken(index, row.hidden[0], row.text.ids[row.hidden[0]]) for index, row in enumerate(rows)]
        arguments = {"input_ids": ids, "attention_mask": padded([[1] * len(row) for row in masked], device)}
        shape = (ids.shape[0], ids.shape[1])
        try:
            with torch.inference_mode():
                return wanted_logprobs(self.network, arguments, wanted, shape=shape, whole_last_layer=True)
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                return None
            logger.warning("out of memory with %d texts in a batch; halving it", len(rows))
        # Retry outside the except block, where the failed pass no longer holds its memory.
        middle = len(rows) // 2
        halves = self._pass(rows[:middle]), self._pass(rows[middle:])
        return None if halves[0] is None or halves[1] is None else [*halves[0], *halves[1]]
