"""Leaves out the token ids that a tokenizer cannot decode, so that no model generates them.

The output layer of many models is wider than the vocabulary, for example 50,304 ids for 50,257 tokens, because round
numbers compute faster. An id without a token stands for no text: a model that generates it goes on to the maximum
length, and its answer lacks what it seems to have said.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from biasboard.ground.errors import import_extra
from evaluators.backends.transformers.decoding import end_tokens
from evaluators.models.tokenizer import ModelTokenizer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

_USUAL_SHARE = 10
"""Number of ids per id without a token, at least, where the tokenizer fits the model."""


@dataclass
class Vocabulary:
    """The token ids that a model may generate."""

    network: PreTrainedModel
    tokenizer: ModelTokenizer
    n_left_out: int | None = None
    """Number of ids that are not generated; None before the first logits."""
    _left_out: Tensor | None = field(default=None, repr=False)
    """True for each id that is not generated, shape (vocabulary,); None if all are generated."""

    def masked(self, logits: Tensor) -> Tensor:
        """Return logits of the next token with minus infinity for the ids that have no token.

        Args:
            logits: Logits of shape (n, vocabulary).
        """
        if self.n_left_out is None:
            self._look(logits)
        return logits if self._left_out is None else logits.masked_fill(self._left_out, float("-inf"))

    def _look(self, logits: Tensor) -> None:
        torch = import_extra("torch", "hf")
        width = logits.shape[-1]
        # A model may end texts with an id that its tokenizer lacks.
        usable = {*self.tokenizer.pretrained.get_vocab().values(), *end_tokens(self.network, self.tokenizer)}
        kept = torch.tensor(sorted(token for token in usable if 0 <= token < width), dtype=torch.long)
        self.n_left_out = width - len(kept)
        if not self.n_left_out:
            return
        left_out = torch.ones(width, dtype=torch.bool)
        left_out[kept] = False
        self._left_out = left_out.to(logits.device)
        if self.n_left_out * _USUAL_SHARE > width:
            logger.warning(
                "the tokenizer has no token for %d of the model's %d ids, and these are never generated; if it is not "
                "the one that the model was trained with, name that one with --tokenizer",
                self.n_left_out,
                width,
            )
