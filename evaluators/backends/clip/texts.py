"""Turns the texts of options into embeddings, once for each distinct set of options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from biasboard.ground.errors import import_extra
from evaluators.backend import ChoiceRequest, Request

if TYPE_CHECKING:
    from transformers import CLIPModel, PreTrainedTokenizerBase

_AT_A_TIME = 128
"""Number of texts that are embedded together."""


def features(output: Any) -> Any:
    """Return the embeddings that a model gives, which some versions of transformers wrap in an object."""
    return getattr(output, "pooler_output", output)


def of_length_one(embeddings: Any) -> Any:
    """Return embeddings in float32, each divided by its length."""
    exact = embeddings.float()
    return exact / exact.norm(dim=-1, keepdim=True)


@dataclass
class OptionEmbeddings:
    """The embeddings of options by their texts, shape (k, d) for each set of k options."""

    network: CLIPModel
    tokenizer: PreTrainedTokenizerBase
    device: str
    most_tokens: int
    """Largest number of tokens of a text, with those that mark its ends."""
    _known: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)
    _lengths: dict[tuple[str, ...], int] = field(default_factory=dict, repr=False)

    def longest(self, request: Request) -> int:
        """Return the largest number of tokens of any text that a request compares with its image."""
        texts = request.options if isinstance(request, ChoiceRequest) else (request.prompt,)
        if texts not in self._lengths:
            lines = [line for text in texts for line in text.split("\n")]
            self._lengths[texts] = max(map(len, self.tokenizer(lines, verbose=False).input_ids))
        return self._lengths[texts]

    def of(self, options: tuple[str, ...]) -> Any:
        """Return the embeddings of options, each of length one.

        An option of several lines has the mean of their embeddings, of length one again, as the authors of CLIP take
        several templates together.
        """
        if options not in self._known:
            lines = [option.split("\n") for option in options]
            embedded = self._embedded([line for of_option in lines for line in of_option])
            means, start = [], 0
            for of_option in lines:
                means.append(embedded[start : start + len(of_option)].mean(dim=0))
                start += len(of_option)
            self._known[options] = of_length_one(import_extra("torch", "hf").stack(means))
        return self._known[options]

    def _embedded(self, texts: Sequence[str]) -> Any:
        """Return the embeddings of texts, each of length one, shape (n, d)."""
        torch = import_extra("torch", "hf")
        parts = []
        for start in range(0, len(texts), _AT_A_TIME):
            inputs = self.tokenizer(list(texts[start : start + _AT_A_TIME]), padding=True, return_tensors="pt")
            with torch.inference_mode():
                output = self.network.get_text_features(
                    input_ids=inputs.input_ids.to(self.device), attention_mask=inputs.attention_mask.to(self.device)
                )
            parts.append(of_length_one(features(output)))
        return torch.cat(parts)
