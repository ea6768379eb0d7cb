"""Decodes one text: chooses each next token, and finds where the text ends and what the answer is.

Nothing here depends on batches. A token follows from the logits of its own text and the random numbers of its own
request. Neither the order of the requests nor the other texts of a batch change a sample, apart from the rounding of
the logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluators.backend import GenerateRequest, Response
from evaluators.models.tokenizer import ModelTokenizer
from schemas.errors import import_extra

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

_N_ANCHOR = 8
"""Number of prompt tokens decoded together with the answer, because some tokenizers drop the space at the start of a
text."""
_CHUNK_ELEMENTS = 2**24
"""Maximum number of float64 probabilities held in memory at a time."""
_DOUBT = 1e-5
"""Distance from another token, in probability or in nats, below which float32 rounding may decide between them."""
_ALIKE = 1e-5
"""Relative difference of probabilities whose order rounding may decide."""
_MOST_SWAPPED = 4
"""Number of tokens that rounding is expected to move across the border of the most probable ones, at most."""


@dataclass
class Draft:
    """A request and the tokens generated for it so far."""

    place: int
    """Index of the request among all requests."""
    request: GenerateRequest
    prompt: list[int]
    n_most: int
    """Maximum number of tokens to generate: as many as were asked for, or fewer if the model has less room."""
    end_ids: frozenset[int]
    tokenizer: ModelTokenizer
    generated: list[int] = field(default_factory=list)
    _numbers: list[float] = field(default_factory=list)
    _response: Response | None = None

    @property
    def ids(self) -> list[int]:
        """The token ids of the prompt and of the text generated so far."""
        return self.prompt + self.generated

    @property
    def n_at_most(self) -> int:
        """The maximum number of tokens that prompt and answer may have together."""
        return len(self.prompt) + self.n_most

    @property
    def response(self) -> Response | None:
        """The response; None until the text has ended."""
        return self._response

    def random_number(self) -> float:
        """Return the random number in [0, 1) for the next token. Calls before the next token give the same number."""
        while len(self._numbers) <= len(self.generated):
            self._numbers.append(float(self._generator.random()))
        return self._numbers[-1]

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.request.sampling_seed)

    def take(self, token: int | None) -> bool:
        """Add a token, and return True if the text ends with it.

        Args:
            token: Token id; None if the logits are not finite, which ends the text without an answer.
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
        """End the text without an answer."""
        self._response = Response(status="failed", error=reason)

    def _finish(self, text: str, reason: str) -> None:
        self._response = Response(
            status="answered",
            text=text,
            finish_reason=reason,
            n_prompt_tokens=len(self.prompt),
            # The end token is counted because it was computed like any other.
            n_completion_tokens=len(self.generated),
        )

    def _stopped(self) -> str | None:
        """Return the text before the first stop text; None if it contains no stop text."""
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
    """Return a draft with nothing generated yet, or an error message if the request cannot be answered."""
    prompt = tokenizer.context_ids(request.prompt)
    room = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    n_most = request.max_tokens
    if not prompt:
        return "the prompt is empty, and the tokenizer puts nothing before it; give it a word to go on from"
    embeddings: Any = network.get_input_embeddings()
    if (highest := max(prompt)) >= (n_known := len(embeddings.weight)):
        return f"token {highest} is not among the model's {n_known}; name the tokenizer that it was trained with"
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
    """Return the tokens that end a text: the tokenizer's own, and those in the model's generation config."""
    ends = getattr(network.generation_config, "eos_token_id", None)
    listed = ends if isinstance(ends, list) else [ends]
    return frozenset(end for end in [tokenizer.end_id, *listed] if end is not None)


def next_tokens(
    logits: Tensor, drafts: Sequence[Draft], exact: Callable[[Draft], Tensor | None] | None = None
) -> list[int | None]:
    """Return the next token of each draft; None if its logits are not finite.

    Rounding differs between batches. Where it may decide between two tokens, ``exact`` makes the choice independent of
    the batch.

    Args:
        logits: Logits of the next token of each draft, shape (n, vocabulary).
        drafts: Drafts in the order of the rows. Each one that samples draws one random number.
        exact: Function that returns the logits of a draft computed alone, shape (1, vocabulary), or None if that would
            take too long; None to trust the given logits.
    """
    torch = import_extra("torch", "hf")
    highest = logits.amax(dim=-1, keepdim=True)
    tokens: list[int | None] = [None] * len(drafts)
    doubtful: list[int] = []
    sampled = [index for index, draft in enumerate(drafts) if draft.request.temperature > 0]
    greedy = [index for index, draft in enumerate(drafts) if draft.request.temperature <= 0]
    if greedy:
        part = logits[greedy]
        best = part.argmax(dim=-1).tolist()  # In a tie, the first one.
        near = (part >= highest[greedy] - _DOUBT).sum(dim=-1) > 1
        for index, token in zip(greedy, best, strict=True):
            tokens[index] = token
        doubtful += [index for index, is_near in zip(greedy, near.tolist(), strict=True) if is_near]
    step = max(1, _CHUNK_ELEMENTS // logits.shape[-1])
    for at in range(0, len(sampled), step):
        places = sampled[at : at + step]
        drawn = _sample(logits[places], [drafts[index] for index in places])
        for index, token in zip(places, drawn.tokens, strict=True):
            tokens[index] = token
        doubtful += [index for index, is_doubtful in zip(places, drawn.doubtful, strict=True) if is_doubtful]
    for index in doubtful:
        alone = None if exact is None else exact(drafts[index])
        if alone is not None:
            tokens[index] = next_tokens(alone, [drafts[index]])[0]
    sound = torch.isfinite(highest[:, 0].float()).tolist()
    return [token if fine else None for token, fine in zip(tokens, sound, strict=True)]


class _Drawn(NamedTuple):
    """Tokens drawn at random, one per draft."""

    tokens: list[int]
    doubtful: list[bool]
    """True for each token that rounding may have decided."""


def _sample(logits: Tensor, drafts: Sequence[Draft]) -> _Drawn:
    """Draw tokens by inverting the cumulative distribution over token ids in ascending order.

    Rounding differs between batches. In order of probability, it could swap two tokens of nearly equal probability and
    shift all tokens after them. In order of ids, it moves each border only by the size of the rounding error.

    Args:
        logits: Logits of the next token of each draft, shape (n, vocabulary).
        drafts: Drafts that sample, in the order of the rows.
    """
    torch = import_extra("torch", "hf")
    if logits.device.type == "mps":  # MPS has no float64.
        logits = logits.cpu()
    options = {"dtype": torch.float64, "device": logits.device}
    temperature = torch.tensor([draft.request.temperature for draft in drafts], device=logits.device)
    top_p = torch.tensor([draft.request.top_p for draft in drafts], **options)
    uniform = torch.tensor([draft.random_number() for draft in drafts], **options)
    probabilities = torch.log_softmax(logits.float() / temperature[:, None], dim=-1).double().exp()
    doubt = torch.full_like(uniform, _DOUBT)[:, None]
    if bool((top_p < 1).any()):
        probabilities, moved = _most_probable(probabilities, top_p[:, None])
        doubt = doubt + moved
    cumulative = probabilities.cumsum(dim=-1)
    wanted = uniform[:, None] * cumulative[:, -1:]
    found = torch.searchsorted(cumulative, wanted, right=True)[:, 0]
    # Rounding must not select a token after the last one with a probability above 0, where the sum reaches its end.
    last = torch.searchsorted(cumulative, cumulative[:, -1:].contiguous())[:, 0]
    # Logits that are no numbers have no such token; their texts end without an answer.
    tokens = torch.minimum(found, last).clamp(max=logits.shape[-1] - 1)[:, None]
    above = cumulative.gather(-1, tokens) - wanted
    below = probabilities.gather(-1, tokens) - above
    return _Drawn(tokens[:, 0].tolist(), (torch.minimum(above, below) < doubt)[:, 0].tolist())


def _most_probable(probabilities: Tensor, top_p: Tensor) -> tuple[Tensor, Tensor]:
    """Set all probabilities to zero except those of the fewest tokens that together hold ``top_p`` of the mass.

    Among equally probable tokens, those with lower ids are kept first.

    Args:
        probabilities: Probability of each token, shape (n, vocabulary).
        top_p: Mass to keep in each row, shape (n, 1).

    Returns:
        The probabilities that are kept, and the mass that rounding may have moved in each row, shape (n, 1).
    """
    torch = import_extra("torch", "hf")
    ordered = _descending(probabilities)
    mass_before = ordered.cumsum(dim=-1) - ordered
    n_kept = ((mass_before < top_p) | (top_p >= 1)).sum(dim=-1, keepdim=True).clamp(min=1)
    least = ordered.gather(-1, n_kept - 1)
    kept = probabilities >= least
    if bool((kept.sum(dim=-1, keepdim=True) > n_kept).any()):
        tied = probabilities == least
        room = n_kept - (probabilities > least).sum(dim=-1, keepdim=True)
        kept &= ~tied | (tied.cumsum(dim=-1) <= room)
    result: Tensor = probabilities.where(kept, torch.zeros((), dtype=probabilities.dtype, device=probabilities.device))
    # The next token after the last one that is kept, if there is one.
    after = n_kept.clamp(max=ordered.shape[-1] - 1)
    is_near = (top_p - mass_before.gather(-1, n_kept - 1) < _DOUBT) | (mass_before.gather(-1, after) - top_p < _DOUBT)
    is_near |= least - ordered.gather(-1, after) < least * _ALIKE
    moved = _MOST_SWAPPED * least * (is_near & (n_kept < ordered.shape[-1]))
    return result, moved


def _descending(values: Tensor) -> Tensor:
    """Return the values of each row in descending order.

    On a CPU, numpy sorts them: it uses vector instructions, and is an order of magnitude faster than torch, which also
    sorts indices.
    """
    torch = import_extra("torch", "hf")
    if values.device.type != "cpu":
        found: Tensor = torch.sort(values, dim=-1, descending=True).values
        return found
    ordered: Tensor = torch.from_numpy(np.sort(values.numpy(), axis=-1)).flip(-1)
    return ordered
