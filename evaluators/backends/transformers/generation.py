"""Generates many texts side by side (continuous batching); when one ends, the next request takes its row at once.

Each decoding step reads all weights of the model once, however many texts it extends. More texts at a time are
therefore faster, until their keys and values fill the memory or the caches of the processor.

Which texts are computed together depends on when each of them ends. This changes only the rounding of logits, because
each token is chosen for its own request (:mod:`evaluators.backends.transformers.decoding`). Models that do not support
this, or give different logits, are asked one request at a time, and the settings of the result give the reason.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.backend import Answers, Events, GenerateRequest, Request, Response, Sent
from evaluators.backends.transformers.decoding import UnfinishedText, Vocabulary, next_tokens, start
from evaluators.backends.transformers.load import OUT_OF_MEMORY
from evaluators.backends.transformers.next_logits import SingleDecoder, Slots, difference_of, plain_logits, try_sharing
from evaluators.backends.transformers.option_scoring import WantedToken, wanted_logprobs
from evaluators.models.model_files import free_memory
from evaluators.models.tokenizer import ModelTokenizer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

# Small, because a killed process loses what is not stored yet.
_MOST_ANSWERS = 32
_MOST_SECONDS = 1.0
_REFILL_SHARE = 8
"""New requests join once one row in so many is free: a pass for few new texts takes about as long as one for many."""
_LEAST_ROUNDING, _MARGIN = 1e-6, 4.0
"""The effect of the batch on a logit is assumed to be the largest measured one times the margin, or at least the
minimum."""
_FREE_DOUBTS, _DOUBTFUL_SHARE = 160, 10
"""A doubtful token is computed alone unless, after the first few, more than one token in ten is doubtful: a model whose
tokens are all about equally probable would compute most of them twice."""
_UNSURE_SETTING = "tokens_left_to_rounding"


def generate(
    network: PreTrainedModel,
    tokenizer: ModelTokenizer,
    requests: Sequence[Request],
    missing: frozenset[int],
    limits: GenerationLimits,
    *,
    settings: dict[str, str],
) -> Events:
    """Generate a text for each missing request that asks for one.

    Args:
        network: The model.
        tokenizer: Tokenizer of the model.
        requests: All requests of the run; those with options are skipped.
        missing: Indices of the requests that need an answer.
        limits: Limits on what is decoded side by side.
        settings: Settings of the result, which this function updates. ``generation`` becomes ``continuous``, or
            ``single`` for one request at a time; ``continuous_generation_left_out`` then gives the reason.
            ``ids_without_token`` becomes the number of ids that are never generated, and
            ``tokens_left_to_rounding`` the number of generated tokens that rounding may have decided, if there are any.

    Yields:
        Events as from :meth:`evaluators.backend.Backend.ask`.
    """
    drafts: list[UnfinishedText] = []
    failed: dict[int, Response] = {}
    for index, request in enumerate(requests):
        if isinstance(request, GenerateRequest):
            draft = start(index, request, network, tokenizer)
            if isinstance(draft, UnfinishedText):
                drafts.append(draft)
            elif index in missing:
                failed[index] = Response(status="failed", error=draft)
    if failed:
        yield Answers(failed, 0.0)
    # Longest first: they limit how many texts fit side by side, and a long one at the end would run alone.
    drafts.sort(key=lambda draft: (-draft.max_total, draft.index))
    waiting = deque(draft for draft in drafts if draft.index in missing)
    if not waiting:
        return
    vocabulary = Vocabulary(network, tokenizer)
    # Tried on examples of all requests, not of the missing ones, so that a resumed run decides the same.
    difference = try_sharing(network, drafts[0], drafts[-1])
    settings.pop("continuous_generation_left_out", None)
    decoder = None
    events: Iterator[UnfinishedText | Sent | None]
    if isinstance(difference, str):
        settings |= {"generation": "single", "continuous_generation_left_out": difference}
        events = _one_by_one(SingleDecoder(network, vocabulary), waiting)
    else:
        settings["generation"] = "continuous"
        rounding = max(_LEAST_ROUNDING, _MARGIN * difference)
        decoder = _Continuous(Slots(network), vocabulary, waiting, limits, rounding)
        events = decoder.run()
    n_before = int(settings.get(_UNSURE_SETTING, "0"))
    for event in _in_groups(network, events):
        if vocabulary.n_left_out:
            settings["ids_without_token"] = str(vocabulary.n_left_out)
        if decoder is not None and decoder.n_unsure:
            settings[_UNSURE_SETTING] = str(n_before + decoder.n_unsure)
        yield event


def _in_groups(network: PreTrainedModel, events: Iterable[UnfinishedText | Sent | None]) -> Events:
    """Yield answers in groups, so that they are stored often but not one by one; pass on other events.

    The log-probability of a text that was asked with it comes from one more pass over the text alone: summed up while
    decoding, its last digits would depend on the texts beside it, and so on where a run was stopped.
    """
    group: dict[int, Response] = {}
    begun = time.perf_counter()
    for event in events:
        if isinstance(event, Sent):
            yield event
        elif event is not None and event.response is not None:
            group[event.index] = event.response
            if event.request.with_logprob and event.response.status == "answered":
                group[event.index] = replace(event.response, text_logprob=_text_logprob(network, event))
        seconds = time.perf_counter() - begun
        if group and (len(group) >= _MOST_ANSWERS or seconds >= _MOST_SECONDS):
            yield Answers(group, seconds)
            group, begun = {}, time.perf_counter()
    if group:
        yield Answers(group, time.perf_counter() - begun)


def _text_logprob(network: PreTrainedModel, draft: UnfinishedText) -> float | None:
    """Return the log-probability of all generated tokens in nats; None if the pass does not fit into memory."""
    torch = import_extra("torch", "hf")
    # The last token is predicted, and predicts nothing that is asked for.
    ids = torch.tensor([draft.ids[:-1]], device=network.device)
    wanted = [
        WantedToken(0, column, token) for column, token in enumerate(draft.generated, start=len(draft.prompt) - 1)
    ]
    arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    try:
        values = wanted_logprobs(network, arguments, wanted)
    except torch.OutOfMemoryError:
        return None
    # Rounding may leave the range.
    return min(math.fsum(values), 0.0)


def _one_by_one(decoder: SingleDecoder, waiting: Iterable[UnfinishedText]) -> Iterator[UnfinishedText | Sent]:
    torch = import_extra("torch", "hf")
    for draft in waiting:
        yield Sent(1)
        try:
            decoder.decode(draft)
        except torch.OutOfMemoryError:
            draft.fail(OUT_OF_MEMORY)
        yield draft


# On two processors this generated 1.04 and 1.45 times as many texts per second as plain batches of generate().
@dataclass
class _Continuous:
    """A decoder of many texts, with a queue of requests that wait for a free row."""

    slots: Slots
    vocabulary: Vocabulary
    waiting: deque[UnfinishedText]
    limits: GenerationLimits
    """Limits on what runs side by side; reduced if it does not fit into memory."""
    rounding: float
    """Largest effect of the batch on a logit, in nats; raised if a larger one is measured."""
    n_interrupted: int = 0
    """Number of drafts at the front of the queue that lost their row because memory ran out."""
    n_decoded: int = 0
    """Number of tokens generated so far."""
    n_doubtful: int = 0
    """Number of doubtful tokens: in another batch, another token might have been chosen."""
    n_unsure: int = 0
    """Number of doubtful tokens that were not computed alone, so that rounding may have decided them."""

    def run(self) -> Iterator[UnfinishedText | Sent | None]:
        """Yield each draft when it has ended, and None after every pass, so that the caller can check the time."""
        while self.waiting or self.slots.drafts:
            group = self._next_group()
            n_new = len(group) - self.n_interrupted
            self.n_interrupted = max(0, -n_new)
            if n_new > 0:
                yield Sent(n_new)
            yield from self._ended_by_pass(group)
            yield None

    def _next_group(self) -> list[UnfinishedText]:
        """Take the next drafts that fit next to those being decoded and into one pass.

        While few rows are free, none is taken, because waiting for more is faster.
        """
        group: list[UnfinishedText] = []
        n_running = len(self.slots.drafts)
        longest = max((draft.max_total for draft in self.slots.drafts), default=0)
        n_prompt = 0
        while self.waiting:
            longest = max(longest, self.waiting[0].max_total)
            n_fit = max(1, self.limits.n_tokens // longest)
            if self.limits.n_rows is not None:
                n_fit = min(n_fit, self.limits.n_rows)
            n_free = n_fit - n_running - len(group)
            too_few = not group and n_running and n_free < min(n_fit // _REFILL_SHARE, len(self.waiting))
            n_prompt = max(n_prompt, len(self.waiting[0].ids))
            too_many = group and (len(group) + 1) * n_prompt > self.limits.n_prefilled
            if n_free <= 0 or too_few or too_many:
                break
            group.append(self.waiting.popleft())
        return group

    def _ended_by_pass(self, group: list[UnfinishedText]) -> list[UnfinishedText]:
        """Start a group of drafts or, if it is empty, add a token to every running one; return those that ended."""
        torch = import_extra("torch", "hf")
        drafts = [*self.slots.drafts, *group]
        try:
            if group:
                self._choose(group, self.slots.add(group))
            else:
                self._choose(drafts, self.slots.step())
        except torch.OutOfMemoryError:
            pass
        else:
            ended = [draft for draft in drafts if draft.response is not None]
            self.slots.release(ended)
            return ended
        # Free memory outside the except block, where the failed pass no longer holds its own.
        return self._make_room(drafts)

    def _choose(self, drafts: Sequence[UnfinishedText], logits: Tensor) -> None:
        self.n_decoded += len(drafts)
        masked = self.vocabulary.masked(logits)
        tokens = next_tokens(masked, drafts, rounding=self.rounding, exact=self._logits_alone)
        for draft, token in zip(drafts, tokens, strict=True):
            draft.take(token)

    def _logits_alone(self, draft: UnfinishedText, shared: Tensor) -> Tensor | None:
        """Return the logits of a draft computed alone, whatever else runs; None if too many tokens are doubtful."""
        network = self.slots.network
        self.n_doubtful += 1
        # In half precision, of two bytes, rounding decides too often for this to help.
        if network.dtype.itemsize < 4 or self.n_doubtful * _DOUBTFUL_SHARE > _FREE_DOUBTS + self.n_decoded:
            self.n_unsure += 1
            return None
        alone = self.vocabulary.masked(plain_logits(network, draft.ids)[None])
        self.rounding = max(self.rounding, _MARGIN * difference_of(shared[0], alone[0])[1])
        return alone

    def _make_room(self, drafts: list[UnfinishedText]) -> list[UnfinishedText]:
        """Put all drafts back into the queue and halve the limit on what runs side by side.

        A draft that is the only one fails, since it does not fit into memory even alone, and is returned.
        """
        self.slots.release(list(self.slots.drafts))
        if len(drafts) == 1:
            drafts[0].fail(OUT_OF_MEMORY)
            return drafts
        n_tokens = len(drafts) * max(draft.max_total for draft in drafts) // 2
        self.limits = GenerationLimits(n_tokens, self.limits.n_rows, min(self.limits.n_prefilled, n_tokens))
        logger.warning("out of memory with %d texts side by side; halving it", len(drafts))
        self.waiting.extendleft(reversed(drafts))
        self.n_interrupted += len(drafts)
        return []


_MOST_ROWS = {"cpu": 128, "mps": 128, "cuda": 512}
"""Maximum number of texts side by side, by type of device; chosen, not measured."""
_MEMORY_SHARE = {"cpu": 0.25, "mps": 0.25, "cuda": 0.5}
"""Share of the free memory for keys and values. Attention copies some of them, and out of memory on a CPU is no error
to recover from: the system kills the process."""
_BUFFER_FACTOR = 1.25
"""Size of the buffer of keys and values in relation to the columns in use."""


class GenerationLimits(NamedTuple):
    """The limits on what is generated side by side."""

    n_tokens: int
    """Maximum number of tokens, with every text counted at the largest possible length of the longest."""
    n_rows: int | None
    """Maximum number of texts; None if only tokens are limited."""
    n_prefilled: int
    """Maximum number of prompt tokens, padding included, in one pass; a single prompt may exceed it."""


def limits_for_texts(network: PreTrainedModel, device: str, n_scored: int, wanted: int | None) -> GenerationLimits:
    """Return the limits for a model, given the currently free memory.

    Args:
        network: The model.
        device: Device that computes, such as ``cuda:1``.
        n_scored: Maximum number of tokens in a batch of options.
        wanted: Maximum number of tokens chosen by the user; None to derive it from the free memory.
    """
    if wanted is not None:
        return GenerationLimits(wanted, None, wanted)
    # Not the budget of scoring, with which a CPU decoded only four texts at a time.
    kind = device.partition(":")[0]
    n_bytes, free = bytes_per_token(network), _free_bytes(device)
    if n_bytes is None or free is None:
        return GenerationLimits(n_scored, None, n_scored)
    n_tokens = int(free * _MEMORY_SHARE.get(kind, 0.25) / (n_bytes * _BUFFER_FACTOR))
    return GenerationLimits(max(n_scored, n_tokens), _MOST_ROWS.get(kind, 128), n_scored)


def bytes_per_token(network: PreTrainedModel) -> int | None:
    """Return the size in bytes of one token's keys and values in all layers; None if the config does not say."""
    config = network.config.get_text_config()

    def number(name: str) -> int | None:
        value = getattr(config, name, None)
        return value if isinstance(value, int) and value > 0 else None

    n_layers, n_heads, width = number("num_hidden_layers"), number("num_attention_heads"), number("hidden_size")
    if n_layers is None or n_heads is None or width is None:
        return None
    size = number("head_dim") or width // n_heads
    return 2 * n_layers * (number("num_key_value_heads") or n_heads) * size * int(network.dtype.itemsize)


def _free_bytes(device: str) -> int | None:
    """Return the free memory of a device in bytes; None if it is unknown."""
    if not device.startswith("cuda"):
        return free_memory()
    cuda = import_extra("torch", "hf").cuda
    # Memory that this process's allocator has reserved but does not use is free as well.
    unused = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return int(cuda.mem_get_info(device)[0] + unused)
