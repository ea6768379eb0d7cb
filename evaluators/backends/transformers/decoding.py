"""Decodes one text: chooses each next token, detects the end of the text, and extracts the answer.

Nothing here depends on batches: a token is determined by the logits of its text and the random numbers of its request.
Apart from rounding of the logits, neither the order of the requests nor the other texts of a batch change a sample.

Tokens are drawn such that rounding hardly ever decides between two. The token ids are halved repeatedly, and a random
number decides which half the token is in. Each of these choices (15 for 32,000 ids) depends on the ratio of two
probability masses, which rounding changes by no more than its own size. A single random number looked up in the
cumulative distribution would have a border at every token. Where a model has no preference, these borders are so close
together that rounding would decide most tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from biasboard.ground.errors import import_extra
from evaluators.backend import GenerateRequest, Response
from evaluators.backends.transformers.load import context_tokens_of, n_embedded
from evaluators.models.tokenizer import ModelTokenizer, unknown_token

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

_N_ANCHOR = 8
"""Number of prompt tokens decoded together with the answer, because some tokenizers drop the space at the start of a
text."""
# 128 MiB of float64.
_CHUNK_PROBABILITIES = 2**24
"""Maximum number of float64 probabilities held in memory at a time."""


@dataclass(eq=False)
class UnfinishedText:
    """A request and the tokens generated for it so far."""

    index: int
    """Index of the request among all requests."""
    request: GenerateRequest
    prompt: list[int]
    max_new: int
    """Maximum number of tokens to generate: that of the request, or what the model's context leaves."""
    end_ids: frozenset[int]
    tokenizer: ModelTokenizer
    generated: list[int] = field(default_factory=list)
    response: Response | None = None
    """The response; None until the text has ended."""
    _next_numbers: tuple[int, np.ndarray[Any, np.dtype[np.float64]]] | None = field(default=None, repr=False)

    @property
    def ids(self) -> list[int]:
        """The token ids of the prompt and of the text generated so far."""
        return self.prompt + self.generated

    @property
    def max_total(self) -> int:
        """The maximum number of tokens in prompt and answer together."""
        return len(self.prompt) + self.max_new

    def random_numbers(self, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return ``n`` random numbers in [0, 1) for the next token, the same ones until that token is taken."""
        # A token may be chosen twice: from the logits of the batch and, if rounding may decide, from those of its text
        # alone. Both choices must use the same numbers.
        if self._next_numbers is None or self._next_numbers[0] != len(self.generated):
            self._next_numbers = (len(self.generated), self._generator.random(n))
        return self._next_numbers[1]

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.request.sampling_seed)

    def take(self, token: int | None) -> None:
        """Add a token, and end the text if it is complete.

        Args:
            token: Token id; None if the logits are not finite, which ends the text without an answer.
        """
        if token is None:
            self.fail("a logit is not a number; use --dtype float32 or bfloat16")
            return
        self.generated.append(token)
        if token in self.end_ids:
            self._finish(self._text(self.generated[:-1]), "stop")
            return
        stops = [stop for stop in self.request.stop if stop]
        text = self._text(self.generated) if stops else ""
        ends = [at for stop in stops if (at := text.find(stop)) >= 0]
        if ends:
            self._finish(text[: min(ends)], "stop")
        elif len(self.generated) >= self.max_new:
            self._finish(self._text(self.generated), "length")

    def fail(self, reason: str) -> None:
        """End the text without an answer."""
        self.response = Response(status="failed", error=reason)

    def _finish(self, text: str, reason: str) -> None:
        self.response = Response(
            status="answered",
            text=text,
            finish_reason=reason,
            n_prompt_tokens=len(self.prompt),
            # Includes the end token, which was computed like any other.
            n_completion_tokens=len(self.generated),
        )

    def _text(self, generated: Sequence[int]) -> str:
        anchor = self.prompt[-_N_ANCHOR:]
        before, whole = self._decoded(anchor), self._decoded([*anchor, *generated])
        return whole[len(before) :] if whole.startswith(before) else self._decoded(generated)

    def _decoded(self, ids: Sequence[int]) -> str:
        text = self.tokenizer.pretrained.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


def start(
    index: int, request: GenerateRequest, network: PreTrainedModel, tokenizer: ModelTokenizer
) -> UnfinishedText | str:
    """Return an empty draft, or an error message if the request cannot be answered."""
    prompt = tokenizer.context_ids(request.prompt)
    context_tokens = context_tokens_of(network)
    max_new = request.max_tokens
    if not prompt:
        return "the prompt is empty, and the tokenizer puts nothing before it; give it a word to go on from"
    if (reason := unknown_token([prompt], n_embedded(network))) is not None:
        return reason
    if max_new < 1:
        return f"max_tokens is {max_new}, so nothing can be generated; ask for at least 1"
    if request.temperature < 0 or not 0 < request.top_p <= 1:
        return f"temperature {request.temperature} or top_p {request.top_p} makes no sense; use >= 0 and (0, 1]"
    if context_tokens is not None:
        if len(prompt) >= context_tokens:
            return f"the prompt takes {len(prompt)} tokens, the model {context_tokens}; nothing is left for an answer"
        max_new = min(max_new, context_tokens - len(prompt))
    return UnfinishedText(index, request, prompt, max_new, end_tokens(network, tokenizer), tokenizer)


def end_tokens(network: PreTrainedModel, tokenizer: ModelTokenizer) -> frozenset[int]:
    """Return the tokens that end a text: the tokenizer's own, and those in the model's generation config."""
    ends = getattr(network.generation_config, "eos_token_id", None)
    configured = ends if isinstance(ends, list) else [ends]
    return frozenset(end for end in [tokenizer.end_id, *configured] if end is not None)


def next_tokens(
    logits: Tensor,
    drafts: Sequence[UnfinishedText],
    *,
    rounding: float = 0.0,
    exact: Callable[[UnfinishedText, Tensor], Tensor | None] | None = None,
) -> list[int | None]:
    """Return the next token of each draft; None if its logits are not finite.

    Rounding differs between batches. Where it could decide between two tokens, ``exact`` makes the choice independent
    of the batch.

    Args:
        logits: Logits of the next token of each draft, shape (n, vocabulary).
        drafts: Drafts in the order of the rows. Each one that samples draws random numbers.
        rounding: Largest effect of the batch on a logit, in nats.
        exact: Function that takes a draft and its logits of shape (1, vocabulary), and returns the logits of the text
            computed alone, or None if that would take too long; None to trust the given logits.
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
        near = (part >= highest[greedy] - 2 * rounding).sum(dim=-1) > 1
        for index, token, is_near in zip(greedy, best, near.tolist(), strict=True):
            tokens[index] = token
            doubtful += [index] if is_near else []
    step = max(1, _CHUNK_PROBABILITIES // logits.shape[-1])
    for begin in range(0, len(sampled), step):
        chunk = sampled[begin : begin + step]
        drawn = _drawn(logits[chunk], [drafts[index] for index in chunk], rounding)
        for index, token, is_doubtful in zip(chunk, *drawn, strict=True):
            tokens[index] = token
            doubtful += [index] if is_doubtful else []
    for index in doubtful:
        alone = None if exact is None else exact(drafts[index], logits[index : index + 1])
        if alone is not None:
            tokens[index] = next_tokens(alone, [drafts[index]])[0]
    is_finite = torch.isfinite(highest[:, 0].float()).tolist()
    return [token if finite else None for token, finite in zip(tokens, is_finite, strict=True)]


def _drawn(logits: Tensor, drafts: Sequence[UnfinishedText], rounding: float) -> tuple[list[int], list[bool]]:
    """Draw the next token of each draft with its own random numbers."""
    torch = import_extra("torch", "hf")
    if logits.device.type == "mps":  # MPS has no float64.
        logits = logits.cpu()
    n = n_choices(logits.shape[-1])
    temperature = torch.tensor(
        [[draft.request.temperature] for draft in drafts], dtype=torch.float64, device=logits.device
    )
    top_p = torch.tensor([[draft.request.top_p] for draft in drafts], dtype=torch.float64, device=logits.device)
    numbers = torch.from_numpy(np.stack([draft.random_numbers(n) for draft in drafts])).to(logits.device)
    return draw(logits, temperature, top_p, numbers, rounding)


# With one number per token, rounding decided about 650 of 40,865 tokens of a real model; with one per choice, at most
# about 44.
def n_choices(n_tokens: int) -> int:
    """Return how many random numbers draw one of ``n_tokens`` tokens."""
    return max(1, (n_tokens - 1).bit_length())


def draw(
    logits: Tensor, temperature: Tensor, top_p: Tensor, numbers: Tensor, rounding: float
) -> tuple[list[int], list[bool]]:
    """Draw a token per row.

    Args:
        logits: Logits of the next token, shape (n, vocabulary).
        temperature: Temperature of each row, above 0, shape (n, 1).
        top_p: Mass of the most probable tokens to draw from, shape (n, 1).
        numbers: Random numbers in [0, 1) as float64, shape (n, :func:`n_choices` of the vocabulary).
        rounding: Largest error of a logit, in nats.

    Returns:
        Token of each row, and whether rounding may have decided it.
    """
    # In double precision, sums over a vocabulary round far less than the logits themselves.
    torch = import_extra("torch", "hf")
    probabilities = torch.softmax(logits.double() / temperature, dim=-1)
    error = rounding / temperature
    kept, unsure, bounds = _most_probable(probabilities, top_p, error)
    sums = kept.cumsum(dim=-1)
    tokens, doubtful = _halve(numbers, error, sums, sums, sums)
    if unsure:
        # Only for these rows: the sums of all rows would take as long as everything else.
        part = probabilities[unsure]
        fewest, most = (part.masked_fill(part < least, 0).cumsum(dim=-1) for least in bounds)
        _, again = _halve(numbers[unsure], error[unsure], sums[unsure], fewest, most)
        for row, is_doubtful in zip(unsure, again, strict=True):
            doubtful[row] = is_doubtful
    return tokens, doubtful


def _halve(numbers: Tensor, error: Tensor, kept: Tensor, fewest: Tensor, most: Tensor) -> tuple[list[int], list[bool]]:
    """Draw a token per row by choosing between halves of the ids.

    Args:
        numbers: Random number of each choice, shape (n, choices).
        error: Rounding of the logarithm of a probability, shape (n, 1).
        kept: Running sums of the probabilities over ids, shape (n, vocabulary).
        fewest: Running sums over the tokens that are kept whatever the rounding.
        most: Running sums over the tokens that are kept under some rounding.
    """
    torch = import_extra("torch", "hf")
    n_choices, n_tokens = numbers.shape[-1], kept.shape[-1]
    growth = 1 + 2 * error
    low = torch.zeros_like(numbers[:, :1], dtype=torch.long)
    doubtful = torch.zeros_like(low, dtype=torch.bool)
    range_of_kept = _Range(kept)
    ranges = [range_of_kept] if fewest is most is kept else [range_of_kept, _Range(fewest), _Range(most)]
    for choice in range(n_choices):
        number = numbers[:, choice, None]
        middle = (low + (1 << (n_choices - 1 - choice))).clamp(max=n_tokens)
        halves = [each.halves(middle) for each in ranges]
        (left, right), (fewest_left, fewest_right), (most_left, most_right) = halves[0], halves[-2:][0], halves[-1]
        # Could either half be chosen if rounding moved every probability in its favour?
        may_be_right = (number * (fewest_left + most_right * growth) >= fewest_left) & (most_right > 0)
        may_be_left = number * (most_left * growth + fewest_right) < most_left * growth
        doubtful |= may_be_right & may_be_left
        is_right = number * (left + right) >= left
        for each in ranges:
            each.choose(is_right)
        low = torch.where(is_right, middle, low)
    return low[:, 0].tolist(), doubtful[:, 0].tolist()


class _Range:
    """A range of token ids per row, initially all of them, and the running sums at its ends."""

    def __init__(self, sums: Tensor) -> None:
        self._sums = sums
        self._at_low = sums.new_zeros((len(sums), 1))
        self._at_middle = self._at_low
        self._at_high = sums[:, -1:]

    def halves(self, middle: Tensor) -> tuple[Tensor, Tensor]:
        """Return the masses of the ids before ``middle`` and from ``middle`` on, each of shape (n, 1)."""
        self._at_middle = self._sums.gather(-1, middle - 1)
        return self._at_middle - self._at_low, self._at_high - self._at_middle

    def choose(self, is_right: Tensor) -> None:
        """Narrow each row to one half."""
        torch = import_extra("torch", "hf")
        self._at_low = torch.where(is_right, self._at_middle, self._at_low)
        self._at_high = torch.where(is_right, self._at_high, self._at_middle)


def _most_probable(
    probabilities: Tensor, top_p: Tensor, error: Tensor
) -> tuple[Tensor, list[int], tuple[Tensor, Tensor]]:
    """Set all probabilities to zero except those of the fewest tokens that together hold ``top_p`` of the mass.

    Among equally probable tokens, those with lower ids are kept first.

    Args:
        probabilities: Probability of each token, shape (n, vocabulary).
        top_p: Mass to keep in each row, shape (n, 1).
        error: Rounding of the logarithm of a probability, shape (n, 1).

    Returns:
        The probabilities, shape (n, vocabulary); the rows in which rounding could have kept other tokens; and in each
        of these, the least probability of the tokens that are kept whatever the rounding, and of those that are kept
        under some rounding, shapes (k, 1).
    """
    torch = import_extra("torch", "hf")
    if bool((top_p >= 1).all()):
        return probabilities, [], (top_p[:0], top_p[:0])
    # On a CPU, numpy sorts with vector instructions, an order of magnitude faster than torch, which also sorts indices.
    if probabilities.device.type == "cpu":
        ordered = torch.from_numpy(np.sort(probabilities.numpy(), axis=-1)).flip(-1)
    else:
        ordered = torch.sort(probabilities, dim=-1, descending=True).values
    n_tokens = ordered.shape[-1]
    mass = ordered.cumsum(dim=-1)

    def least_of(top_p: Tensor, is_all: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return number and least probability of the tokens that hold a mass, and the next lower probability."""
        n = torch.where(is_all, n_tokens, torch.searchsorted(mass, top_p) + 1).clamp(max=n_tokens)
        following = ordered.gather(-1, n.clamp(max=n_tokens - 1)).masked_fill(n == n_tokens, 0)
        return n, ordered.gather(-1, n - 1), following

    n_kept, least, following = least_of(top_p, top_p >= 1)
    kept = probabilities.masked_fill(probabilities < least, 0)
    if bool((following == least).any()):
        tied = probabilities == least
        n_tied = n_kept - (probabilities > least).sum(dim=-1, keepdim=True)
        kept.masked_fill_(tied & (tied.cumsum(dim=-1) > n_tied), 0)
    n_fewest, least_of_fewest, after_fewest = least_of(top_p * (1 - 2 * error), top_p >= 1)
    n_most, least_of_most, after_most = least_of(top_p * (1 + 2 * error), top_p >= 1)
    near = 4 * error
    # Rounding may swap the last kept token with the next one.
    swaps_fewest, swaps_most = after_fewest >= least_of_fewest * (1 - near), after_most >= least_of_most * (1 - near)
    least_of_fewest = torch.where(swaps_fewest, least_of_fewest * (1 + near), least_of_fewest)
    least_of_most = torch.where(swaps_most, least_of_most * (1 - near), least_of_most)
    is_unsure = (n_fewest != n_most) | ((n_most < n_tokens) & (swaps_fewest | swaps_most))
    rows = is_unsure[:, 0].nonzero()[:, 0].tolist()
    return kept, rows, (least_of_fewest[rows], least_of_most[rows])


_IDS_PER_LEFT_OUT = 10
"""A warning is given if more than one id in so many has no token: the tokenizer may not be the model's."""


@dataclass
class Vocabulary:
    """The token ids that a model may generate."""

    network: PreTrainedModel
    tokenizer: ModelTokenizer
    n_left_out: int | None = None
    """Number of ids that are not generated; None before the first logits."""
    _is_left_out: Tensor | None = field(default=None, repr=False)
    """True for each id that is not generated, shape (vocabulary,); None if all are generated."""

    def masked(self, logits: Tensor) -> Tensor:
        """Set the logits of ids that have no token to minus infinity.

        Args:
            logits: Logits of shape (n, vocabulary).
        """
        if self.n_left_out is None:
            self._find_ids_without_token(logits)
        return logits if self._is_left_out is None else logits.masked_fill(self._is_left_out, float("-inf"))

    def _find_ids_without_token(self, logits: Tensor) -> None:
        torch = import_extra("torch", "hf")
        width = logits.shape[-1]
        # The logits of untrained ids are arbitrary: a made-up model with large weights there generated almost only such
        # ids. End tokens are kept even where the tokenizer lacks them.
        usable = {*self.tokenizer.pretrained.get_vocab().values(), *end_tokens(self.network, self.tokenizer)}
        kept = torch.tensor(sorted(token for token in usable if 0 <= token < width), dtype=torch.long)
        self.n_left_out = width - len(kept)
        if not self.n_left_out:
            return
        left_out = torch.ones(width, dtype=torch.bool)
        left_out[kept] = False
        self._is_left_out = left_out.to(logits.device)
        if self.n_left_out * _IDS_PER_LEFT_OUT > width:
            logger.warning(
                "the tokenizer has no token for %d of the model's %d ids, and these are never generated; if it is not "
                "the one that the model was trained with, name that one with --tokenizer",
                self.n_left_out,
                width,
            )
