"""Generation of texts, many side by side: where one ends, the next request takes its place at once.

What is computed together depends on which texts end when. That moves logits by their rounding and nothing else: tokens
are chosen per request (:mod:`evaluators.backends.transformers.decoding`). Models that this is not possible with, or
that give other logits in this way, are asked one request at a time; the settings of the result say so, and why.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evaluators.backend import Answers, Events, GenerateRequest, Request, Response, Sent
from evaluators.backends.transformers.decoding import Draft, next_tokens, start
from evaluators.backends.transformers.single import SingleDecoder, obstacle_to_sharing
from evaluators.backends.transformers.slots import Slots
from evaluators.models.tokenizer import ModelTokenizer
from schemas.errors import import_extra

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

_MOST_ANSWERS = 32
_MOST_SECONDS = 1.0
_OUT_OF_MEMORY = "out of memory on a single request; use a smaller model, --dtype bfloat16 or another device"


def generate(
    network: PreTrainedModel,
    tokenizer: ModelTokenizer,
    requests: Sequence[Request],
    missing: frozenset[int],
    batch_tokens: int,
    *,
    settings: dict[str, str],
) -> Events:
    """Answer the requests for a text.

    Args:
        network: The model.
        tokenizer: Its tokenizer.
        requests: All requests of the run; those for options are passed over.
        missing: Places of those that need an answer.
        batch_tokens: Tokens that are decoded side by side at most, each text counted as long as the longest may become.
        settings: Takes ``generation``: ``continuous``, or ``single`` for one request at a time, which
            ``continuous_generation_left_out`` then gives the reason of.

    Yields:
        As :meth:`evaluators.backend.Backend.ask`.
    """
    begin = _Beginner(network, tokenizer)
    planned, unfit = _plan(begin, requests)
    failed = {place: Response(status="failed", error=reason) for place, reason in unfit.items() if place in missing}
    if failed:
        yield Answers(failed, 0.0)
    waiting = deque(entry for entry in planned if entry.place in missing)
    if not waiting:
        return
    reason = obstacle_to_sharing(network, [begin(planned[0]), begin(planned[-1])])
    settings["generation"] = "continuous" if reason is None else "single"
    settings.pop("continuous_generation_left_out", None)
    if reason is None:
        finished = _Continuous(Slots(network), begin, waiting, batch_tokens).run()
    else:
        settings["continuous_generation_left_out"] = reason
        finished = _one_by_one(SingleDecoder(network), begin, waiting)
    yield from _grouped(finished)


class _Waiting(NamedTuple):
    """A request that has its turn to come."""

    place: int
    request: GenerateRequest
    n_at_most: int
    """Tokens that its text may come to."""


@dataclass(frozen=True)
class _Beginner:
    """Makes drafts of requests when their turn comes: the token ids of all prompts would take much memory."""

    network: PreTrainedModel
    tokenizer: ModelTokenizer

    def __call__(self, waiting: _Waiting) -> Draft:
        draft = self.draft(waiting.place, waiting.request)
        if isinstance(draft, str):
            raise TypeError(f"request {waiting.place} was planned and cannot be begun: {draft}")
        return draft

    def draft(self, place: int, request: GenerateRequest) -> Draft | str:
        """A draft, or why there is none."""
        return start(place, request, self.network, self.tokenizer)


def _plan(begin: _Beginner, requests: Sequence[Request]) -> tuple[list[_Waiting], dict[int, str]]:
    """Requests in the order in which they are begun, and by place why the others cannot be answered.

    The longest first: they decide how many fit beside each other, and none of them is left for the end.
    """
    planned: list[_Waiting] = []
    unfit: dict[int, str] = {}
    for place, request in enumerate(requests):
        if isinstance(request, GenerateRequest):
            draft = begin.draft(place, request)
            if isinstance(draft, str):
                unfit[place] = draft
            else:
                planned.append(_Waiting(place, request, draft.n_at_most))
    return sorted(planned, key=lambda entry: (-entry.n_at_most, entry.place)), unfit


def _grouped(finished: Iterator[Draft | Sent | None]) -> Events:
    """Answers in groups, so that they are stored often and not one by one."""
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
    """Decoding with a queue of requests that wait for a free row."""

    slots: Slots
    begin: _Beginner
    waiting: deque[_Waiting]
    budget: int
    """Tokens side by side; halved when they do not fit into memory."""
    interrupted: deque[Draft] = field(default_factory=deque)
    """Drafts that lost their row for want of memory; they go on where they were."""

    def run(self) -> Iterator[Draft | Sent | None]:
        """Every draft when it has ended; None after every pass, so that the caller can look at the clock."""
        while True:
            group, n_new = self._next_group()
            if n_new:
                yield Sent(n_new)
            if not group and not self.slots.drafts:
                return
            yield from self._computed(group)
            yield None

    def _next_group(self) -> tuple[list[Draft], int]:
        """Drafts that fit beside those being decoded, and how many of them are asked for the first time."""
        group: list[Draft] = []
        n_new = 0
        longest = max((draft.n_at_most for draft in self.slots.drafts), default=0)
        n_rows = len(self.slots.drafts) + 1
        while self.interrupted or self.waiting:
            longest = max(longest, (self.interrupted or self.waiting)[0].n_at_most)
            if n_rows > 1 and n_rows * longest > self.budget:
                break
            if self.interrupted:
                group.append(self.interrupted.popleft())
            else:
                group.append(self.begin(self.waiting.popleft()))
                n_new += 1
            n_rows += 1
        return group, n_new

    def _computed(self, group: list[Draft]) -> list[Draft]:
        """Begin a group, or where there is none compute the next token of every draft; those that ended."""
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
            # Outside the handler, where the failed pass no longer holds its memory.
            return [*ended, *self._make_room([draft for draft in drafts if draft.response is None])]
        if ended and not group:
            self.slots.release(ended)
        return ended

    def _begin(self, group: list[Draft]) -> None:
        logits, prefilled = self.slots.begin(group)
        self._advance(group, logits)
        going = [index for index, draft in enumerate(group) if draft.response is None]
        self.slots.add(group, prefilled, going)

    @staticmethod
    def _advance(drafts: Sequence[Draft], logits: Tensor) -> None:
        """Choose the next token of each."""
        for draft, token in zip(drafts, next_tokens(logits, drafts), strict=True):
            draft.take(token)

    def _make_room(self, going: list[Draft]) -> list[Draft]:
        """Take all drafts out of their rows, so that half as many go on; those that cannot, even alone."""
        self.slots.release(self.slots.drafts)
        if len(going) == 1:
            going[0].fail(_OUT_OF_MEMORY)
            return going
        self.budget = len(going) * max((draft.n_at_most for draft in going), default=0) // 2
        logger.warning("out of memory with %d texts side by side; halving it", len(going))
        self.interrupted.extend(going)
        return []
