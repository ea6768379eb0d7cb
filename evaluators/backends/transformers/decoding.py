"""One text being generated: which token comes next, where it ends, and what the answer is.

Nothing here knows of batches. A token follows from the logits of its own text and from the random numbers of its own
request, so that neither the order of requests nor what is computed beside them changes a sample, beyond the rounding of
the logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evaluators.backend import GenerateRequest, Response
from evaluators.models.tokenizer import ModelTokenizer
from schemas.errors import import_extra

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

_N_ANCHOR = 8
"""Tokens of the prompt that are decoded with the answer: some tokenizers drop the space that a text begins with."""
_CHUNK_ELEMENTS = 2**24
"""Probabilities in float64 that are held at a time."""


@dataclass
class Draft:
    """A request and what was generated for it so far."""

    place: int
    """Among all requests."""
    request: GenerateRequest
    prompt: list[int]
    n_most: int
    """Tokens after which it ends: as many as were asked for, or as the model has room for."""
    end_ids: frozenset[int]
    tokenizer: ModelTokenizer
    generated: list[int] = field(default_factory=list)
    _numbers: list[float] = field(default_factory=list)
    _response: Response | None = None

    @property
    def ids(self) -> list[int]:
        """Prompt and answer."""
        return self.prompt + self.generated

    @property
    def n_at_most(self) -> int:
        """Tokens that it may come to."""
        return len(self.prompt) + self.n_most

    @property
    def response(self) -> Response | None:
        """The answer; None until it ends."""
        return self._response

    def random_number(self) -> float:
        """The random number of the next token, in [0, 1): the same one however often it is asked for."""
        while len(self._numbers) <= len(self.generated):
            self._numbers.append(float(self._generator.random()))
        return self._numbers[-1]

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.request.sampling_seed)

    def take(self, token: int | None) -> bool:
        """Go on by a token, and say whether the text ends with it.

        Args:
            token: None where the logits are not numbers.
        """
        if token is None:
            reason = "a logit is not a number; use --dtype float32 or bfloat16"
            self._response = Response(status="failed", error=reason)
            return True
        self.generated.append(token)
        if token in self.end_ids:
            self._finish(self._text(self.generated[:-1]), "stop")
        elif (stopped := self._stopped()) is not None:
            self._finish(stopped, "stop")
        elif len(self.generated) >= self.n_most:
            self._finish(self._text(self.generated), "length")
        return self._response is not None

    def fail(self, reason: str) -> None:
        """End without an answer."""
        self._response = Response(status="failed", error=reason)

    def _finish(self, text: str, reason: str) -> None:
        self._response = Response(
            status="answered",
            text=text,
            finish_reason=reason,
            n_prompt_tokens=len(self.prompt),
            # An end token was computed like any other.
            n_completion_tokens=len(self.generated),
        )

    def _stopped(self) -> str | None:
        """The text before the first stop text; None if there is none in it."""
        if not any(self.request.stop):
            return None
        text = self._text(self.generated)
        found = [place for stop in self.request.stop if stop and (place := text.find(stop)) >= 0]
        return text[: min(found)] if found else None

    def _text(self, generated: Sequence[int]) -> str:
        anchor = self.prompt[-_N_ANCHOR:]
        before, whole = self._decoded(anchor), self._decoded([*anchor, *generated])
        return whole[len(before) :] if whole.startswith(before) else self._decoded(generated)

    def _decoded(self, ids: Sequence[int]) -> str:
        text = self.tokenizer.pretrained.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


def start(place: int, request: GenerateRequest, network: PreTrainedModel, tokenizer: ModelTokenizer) -> Draft | str:
    """A draft with nothing generated yet, or why this request cannot be answered."""
    prompt = tokenizer.context_ids(request.prompt)
    room = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    n_most = request.max_tokens
    if not prompt:
        return "the prompt is empty, and the tokenizer puts nothing before it; give it a word to go on from"
    if n_most < 1:
        return f"max_tokens is {n_most}, so nothing can be generated; ask for at least 1"
    if request.temperature < 0 or not 0 < request.top_p <= 1:
        return f"temperature {request.temperature} or top_p {request.top_p} makes no sense; use >= 0 and (0, 1]"
    if isinstance(room, int) and room > 0:
        if len(prompt) >= room:
            return f"the prompt takes {len(prompt)} tokens, the model {room}; nothing is left for an answer"
        n_most = min(n_most, room - len(prompt))
    return Draft(place, request, prompt, n_most, end_tokens(network, tokenizer), tokenizer)


def end_tokens(network: PreTrainedModel, tokenizer: ModelTokenizer) -> frozenset[int]:
    """Tokens that end a text: the tokenizer's, and those that the model is published with."""
    ends = getattr(network.generation_config, "eos_token_id", None)
    listed = ends if isinstance(ends, list) else [ends]
    return frozenset(end for end in [tokenizer.end_id, *listed] if end is not None)


def next_tokens(logits: Tensor, drafts: Sequence[Draft]) -> list[int | None]:
    """The next token of each draft; None where the logits are not numbers.

    Args:
        logits: One row per draft, shape (n, vocabulary).
        drafts: Each draws one random number if it samples.
    """
    torch = import_extra("torch", "hf")
    best = logits.argmax(dim=-1)  # Of several that are highest the first.
    highest = logits.amax(dim=-1).float()
    tokens: list[int | None] = best.tolist()
    sampled = [index for index, draft in enumerate(drafts) if draft.request.temperature > 0]
    step = max(1, _CHUNK_ELEMENTS // logits.shape[-1])
    for at in range(0, len(sampled), step):
        part = sampled[at : at + step]
        for index, token in zip(part, _sample(logits[part], [drafts[index] for index in part]), strict=True):
            tokens[index] = token
    sound = torch.isfinite(highest).tolist()
    return [token if fine else None for token, fine in zip(tokens, sound, strict=True)]


def _sample(logits: Tensor, drafts: Sequence[Draft]) -> list[int]:
    """Inverse of the cumulative distribution, in the order of token ids.

    In the order of probability two tokens that are all but equally probable would change places with the rounding of
    another batch, and everything behind them with them; in the order of ids rounding moves a border by what it is.
    """
    torch = import_extra("torch", "hf")
    if logits.device.type == "mps":  # It has no float64.
        logits = logits.cpu()
    options = {"dtype": torch.float64, "device": logits.device}
    temperature = torch.tensor([draft.request.temperature for draft in drafts], device=logits.device)
    top_p = torch.tensor([draft.request.top_p for draft in drafts], **options)
    uniform = torch.tensor([draft.random_number() for draft in drafts], **options)
    probabilities = torch.log_softmax(logits.float() / temperature[:, None], dim=-1).double().exp()
    if bool((top_p < 1).any()):
        probabilities = _most_probable(probabilities, top_p[:, None])
    cumulative = probabilities.cumsum(dim=-1)
    wanted = uniform[:, None] * cumulative[:, -1:]
    found = torch.searchsorted(cumulative, wanted, right=True)[:, 0]
    # Rounding must not lead behind the last token that has a probability.
    tokens: list[int] = torch.minimum(found, cumulative.argmax(dim=-1)).tolist()
    return tokens


def _most_probable(probabilities: Tensor, top_p: Tensor) -> Tensor:
    """Zero but for the fewest tokens that hold ``top_p`` of the mass, of equally probable ones those of lower id."""
    torch = import_extra("torch", "hf")
    ordered, ids = torch.sort(probabilities, dim=-1, descending=True, stable=True)
    mass_before = ordered.cumsum(dim=-1) - ordered
    kept = (mass_before < top_p) | (top_p >= 1)
    result: Tensor = torch.zeros_like(probabilities).scatter(-1, ids, ordered * kept)
    return result
