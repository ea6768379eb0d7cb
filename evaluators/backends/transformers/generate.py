"""Generates many texts side by side; when one ends, the next request takes its place at once.

Which texts are computed together depends on when each of them ends. This changes the rounding of logits and nothing
else, because each token is chosen for its own request (:mod:`evaluators.backends.transformers.decoding`). Some models
cannot be asked in this way, or give different logits. They are asked one request at a time, and the settings of the
result give the reason.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.backend import Answers, Events, GenerateRequest, Request, Response, Sent
from evaluators.backends.transformers.budget import Room
from evaluators.backends.transformers.decoding import Draft, next_tokens, start
from evaluators.backends.transformers.single import SingleDecoder, difference_of, plain_logits, try_sharing
from evaluators.backends.transformers.slots import Slots
from evaluators.backends.transformers.vocabulary import Vocabulary
from evaluators.models.tokenizer import ModelTokenizer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

_MOST_ANSWERS = 32
_MOST_SECONDS = 1.0
_REFILL_SHARE = 8
"""Number of rows per row that must be free before requests join those being decoded. A pass for few new texts takes
about as long as one for many, and computing a few free rows in vain costs less than that."""
_FLOAT32 = 4
_LEAST_ROUNDING, _MARGIN = 1e-6, 4.0
"""The difference that a batch makes to a logit is taken to be this many times the largest one measured, at least."""
_FREE, _USUAL = 160, 10
"""A token in doubt is computed alone unless, after the first few, more than one token in ten is in doubt. Models whose
tokens are all equally probable would otherwise compute most of them twice."""
_UNSURE = "tokens_left_to_rounding"
_OUT_OF_MEMORY = "out of memory on a single request; use a smaller model, --dtype bfloat16 or another device"


def generate(
    network: PreTrainedModel,
    tokenizer: ModelTokenizer,
    requests: Sequence[Request],
    missing: frozenset[int],
    room: Room,
    *,
    settings: dict[str, str],
) -> Events:
    """Generate a text for each missing request that asks for one.

    Args:
        network: The model.
        tokenizer: Tokenizer of the model.
        requests: All requests of the run; those with options are skipped.
        missing: Indices of the requests that need an answer.
        room: Limits on what is decoded side by side.
        settings: Settings of the result, which this function updates. ``generation`` becomes ``continuous``, or
            ``single`` for one request at a time; ``continuous_generation_left_out`` then gives the reason.
            ``ids_without_token`` becomes the number of ids that are never generated, and
            ``tokens_left_to_rounding`` the number of generated tokens that rounding may have decided, if there are any.

    Yields:
        Events as from :meth:`evaluators.backend.Backend.ask`.
    """
    begin = _Beginner(network, tokenizer)
    planned, unfit = _plan(begin, requests)
    failed = {place: Response(status="failed", error=reason) for place, reason in unfit.items() if place in missing}
    if failed:
        yield Answers(failed, 0.0)
    waiting = deque(entry for entry in planned if entry.place in missing)
    if not waiting:
        return
    vocabulary = Vocabulary(network, tokenizer)
    sharing = try_sharing(network, [begin(planned[0]), begin(planned[-1])])
    settings["generation"] = "continuous" if sharing.obstacle is None else "single"
    settings.pop("continuous_generation_left_out", None)
    if sharing.obstacle is None:
        rounding = max(_LEAST_ROUNDING, _MARGIN * sharing.difference)
        decoder = _Continuous(Slots(network), vocabulary, begin, waiting, room, rounding)
        finished = decoder.run()
    else:
        settings["continuous_generation_left_out"] = sharing.obstacle
        decoder = None
        finished = _one_by_one(SingleDecoder(network, vocabulary), begin, waiting)
    n_before = int(settings.get(_UNSURE, "0"))
    for event in _grouped(finished):
        if vocabulary.n_left_out:
            settings["ids_without_token"] = str(vocabulary.n_left_out)
        if decoder is not None and decoder.n_unsure:
            settings[_UNSURE] = str(n_before + decoder.n_unsure)
        yield event


class _Waiting(NamedTuple):
    """A request that waits for its turn."""

    place: int
    request: GenerateRequest
    n_at_most: int
    """Maximum number of tokens that prompt and answer may have together."""
    n_prompt: int


@dataclass(frozen=True)
class _Beginner:
    """A factory that makes the draft of a request when its turn comes.

    It saves memory: the token ids of all prompts at once would need much.
    """

    network: PreTrainedModel
    tokenizer: ModelTokenizer

    def __call__(self, waiting: _Waiting) -> Draft:
        draft = self.draft(waiting.place, waiting.request)
        if isinstance(draft, str):
            raise TypeError(f"request {waiting.place} was planned and cannot be begun: {draft}")
        return draft

    def draft(self, place: int, request: GenerateRequest) -> Draft | str:
        """Return a draft, or an error message if the request cannot be answered."""
        return start(place, request, self.network, self.tokenizer)


def _plan(begin: _Beginner, requests: Sequence[Request]) -> tuple[list[_Waiting], dict[int, str]]:
    """Order the requests for generation, and find those that cannot be answered.

    The longest come first: they decide how many texts fit side by side, and none of them is left for the end.

    Returns:
        The requests in the order in which they begin, and an error message by index for each of the others.
    """
    planned: list[_Waiting] = []
    unfit: dict[int, str] = {}
    for place, request in enumerate(requests):
        if isinstance(request, GenerateRequest):
            draft = begin.draft(place, request)
            if isinstance(draft, str):
                unfit[place] = draft
            else:
                planned.append(_Waiting(place, request, draft.n_at_most, len(draft.prompt)))
    return sorted(planned, key=lambda entry: (-entry.n_at_most, entry.place)), unfit


def _grouped(finished: Iterator[Draft | Sent | None]) -> Events:
    """Yield answers in groups, so that they are stored often but not one by one, and pass on other events."""
    group: dict[int, Response] = {}
    begun = time.perf_counter()
    for draft in finished:
        if isinstance(draft, Sent):
            yield draft
        elif draft is not None and draft.response is not None:
            group[draft.place] = draft.response
        seconds = time.perf_counter() - begun
        if group and (len(group) >= _MOST_ANSWERS or seconds >= _MOST_SECONDS):
            yield Answers(group, seconds)
            group, begun = {}, time.perf_counter()
    if group:
        yield Answers(group, time.perf_counter() - begun)


def _one_by_one(decoder: SingleDecoder, begin: _Beginner, waiting: Iterable[_Waiting]) -> Iterator[Draft | Sent]:
    torch = import_extra("torch", "hf")
    for entry in waiting:
        yield Sent(1)
        draft = begin(entry)
        try:
            decoder.decode(draft)
        except torch.OutOfMemoryError:
            draft.fail(_OUT_OF_MEMORY)
        yield draft


@dataclass
class _Continuous:
    """A decoder of many texts, with a queue of requests that wait for a free row."""

    slots: Slots
    vocabulary: Vocabulary
    begin: _Beginner
    waiting: deque[_Waiting]
    room: Room
    """Limits on what runs side by side; reduced if it does not fit into memory."""
    rounding: float
    """Largest difference that a batch makes to a logit, in nats; raised if a larger one is met."""
    n_decoded: int = 0
    """Number of tokens generated so far."""
    n_doubtful: int = 0
    """Number of tokens in doubt: with the logits of another batch, another one might have been chosen."""
    n_unsure: int = 0
    """Number of tokens that rounding may have decided, since they were not computed alone."""
    interrupted: deque[Draft] = field(default_factory=deque)
    """Drafts that lost their row because memory ran out; they continue where they were."""

    def run(self) -> Iterator[Draft | Sent | None]:
        """Yield each draft when it has ended, and None after every pass, so that the caller can check the time."""
        while True:
            group, n_new = self._next_group()
            if n_new:
                yield Sent(n_new)
            if not group and not self.slots.drafts:
                return
            yield from self._computed(group)
            yield None

    def _next_group(self) -> tuple[list[Draft], int]:
        """Take the next drafts that fit beside those being decoded and into one pass.

        None are taken while so few rows are free that it is faster to wait for more.

        Returns:
            The drafts, and how many of them are asked for the first time.
        """
        group: list[Draft] = []
        n_new = 0
        longest = max((draft.n_at_most for draft in self.slots.drafts), default=0)
        n_rows, n_prompt = len(self.slots.drafts), 0
        while self.interrupted or self.waiting:
            longest = max(longest, (self.interrupted or self.waiting)[0].n_at_most)
            n_fit = max(1, self.room.n_tokens // longest)
            if self.room.n_rows is not None:
                n_fit = min(n_fit, self.room.n_rows)
            n_left = len(self.interrupted) + len(self.waiting)
            if n_rows >= n_fit or (not group and n_rows and n_fit - n_rows < min(n_fit // _REFILL_SHARE, n_left)):
                break
            n_prompt = max(n_prompt, len(self.interrupted[0].ids) if self.interrupted else self.waiting[0].n_prompt)
            if group and (len(group) + 1) * n_prompt > self.room.n_prefilled:
                break
            if self.interrupted:
                group.append(self.interrupted.popleft())
            else:
                group.append(self.begin(self.waiting.popleft()))
                n_new += 1
            n_rows += 1
        return group, n_new

    def _computed(self, group: list[Draft]) -> list[Draft]:
        """Begin a group of drafts or, if it is empty, compute the next token of every draft.

        Returns:
            The drafts that ended.
        """
        torch = import_extra("torch", "hf")
        drafts = [*self.slots.drafts, *group]
        try:
            if group:
                self._begin(group)
            else:
                self._advance(*self.slots.step())
        except torch.OutOfMemoryError:
            failed = True
        else:
            failed = False
        ended = [draft for draft in drafts if draft.response is not None]
        if failed:
            # Make room outside the except block, where the failed pass no longer holds its memory.
            return [*ended, *self._make_room([draft for draft in drafts if draft.response is None])]
        if ended and not group:
            self.slots.release(ended)
        return ended

    def _begin(self, group: list[Draft]) -> None:
        logits, prefilled = self.slots.begin(group)
        self._advance(group, logits)
        going = [index for index, draft in enumerate(group) if draft.response is None]
        self.slots.add(group, prefilled, going)

    def _advance(self, drafts: Sequence[Draft], logits: Tensor) -> None:
        """Choose the next token of each draft."""
        self.n_decoded += len(drafts)
        masked = self.vocabulary.masked(logits)
        tokens = next_tokens(masked, drafts, rounding=self.rounding, exact=self._alone)
        for draft, token in zip(drafts, tokens, strict=True):
            draft.take(token)

    def _alone(self, draft: Draft, shared: Tensor) -> Tensor | None:
        """Return the logits of a draft computed alone; None if most tokens are in doubt.

        They do not depend on what runs side by side. In half precision, rounding decides too often for this to help.
        """
        network = self.slots.network
        self.n_doubtful += 1
        if network.dtype.itemsize < _FLOAT32 or self.n_doubtful * _USUAL > _FREE + self.n_decoded:
            self.n_unsure += 1
            return None
        alone = self.vocabulary.masked(plain_logits(network, draft.ids)[None])
        self.rounding = max(self.rounding, _MARGIN * difference_of(shared[0], alone[0]).largest)
        return alone

    def _make_room(self, going: list[Draft]) -> list[Draft]:
        """Take all drafts out of their rows, so that half as many can continue at a time.

        Returns:
            The draft that failed because it does not fit into memory even alone, if there is one.
        """
        self.slots.release(self.slots.drafts)
        if len(going) == 1:
            going[0].fail(_OUT_OF_MEMORY)
            return going
        n_tokens = len(going) * max((draft.n_at_most for draft in going), default=0) // 2
        self.room = Room(n_tokens, self.room.n_rows, min(self.room.n_prefilled, n_tokens))
        logger.warning("out of memory with %d texts side by side; halving it", len(going))
        self.interrupted.extend(going)
        return []
