"""Requests in blocks that can be asked apart, one after the other or on many machines, with the same last bits.

What a model computes together decides the last bits of what it computes. A backend that plans its batches within
blocks, and the blocks as it is done here, gives a block the same answers whoever asks it, whatever else is asked.
Blocks also bound what is in memory as tokens at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from evaluators.backend import Answers, ChoiceRequest, Events, Request, Sent


class BlockLimits(NamedTuple):
    """How much one block holds; a request that is larger has one of its own."""

    n_texts: int
    """Options, or prompts to go on from."""
    n_characters: int
    """Of the prompts, counted once per text."""


@runtime_checkable
class AsksInBlocks(Protocol):
    """A backend that computes nothing together that :func:`plan_blocks` separates."""

    @property
    def block_limits(self) -> BlockLimits:
        """The limits that it plans with."""


def plan_blocks(requests: Sequence[Request], limits: BlockLimits) -> list[list[int]]:
    """Places of requests in blocks, those that begin alike beside each other.

    Planning the requests of one block again, in its order, gives that block.

    >>> asked = [ChoiceRequest(prompt=text, options=(" a", " b"), outcomes=()) for text in ("two", "one", "two", "six")]
    >>> plan_blocks(asked, BlockLimits(n_texts=4, n_characters=100))
    [[1, 3], [0, 2]]
    """
    blocks: list[list[int]] = []
    n_texts = n_characters = 0
    for place in sorted(range(len(requests)), key=lambda place: (requests[place].prompt, place)):
        request = requests[place]
        weight = len(request.options) if isinstance(request, ChoiceRequest) else 1
        n_texts += weight
        n_characters += weight * len(request.prompt)
        if not blocks or n_texts > limits.n_texts or n_characters > limits.n_characters:
            blocks.append([])
            n_texts, n_characters = weight, weight * len(request.prompt)
        blocks[-1].append(place)
    return blocks


def ask_in_blocks(
    ask: Callable[[Sequence[Request], frozenset[int]], Events],
    limits: BlockLimits,
    requests: Sequence[Request],
    missing: frozenset[int],
) -> Events:
    """``Backend.ask`` of a backend that asks one block after the other.

    Args:
        ask: Asks what is missing of one block.
        limits: Of a block.
        requests: All requests of the run.
        missing: Places of those that need an answer.
    """
    for places in plan_blocks(requests, limits):
        wanted = frozenset(index for index, place in enumerate(places) if place in missing)
        if wanted:
            for event in ask([requests[place] for place in places], wanted):
                yield in_run(event, places)


def in_run(event: Sent | Answers, places: Sequence[int]) -> Sent | Answers:
    """An event of a block as one of the run."""
    if isinstance(event, Sent):
        return event
    return event._replace(responses={places[index]: response for index, response in event.responses.items()})
