"""Splits requests into blocks that can be asked one by one, or on many machines, with bit-identical results.

The last bits of a log-probability depend on what a model computes in the same batch. A backend that plans its batches
within blocks therefore gives a block the same responses on every machine, whatever else is asked. Blocks also limit how
many requests are held in memory as tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluators.backend import Answers, BlockLimits, ChoiceRequest, Events, Request, Sent


def plan_blocks(requests: Sequence[Request], limits: BlockLimits) -> list[list[int]]:
    """Return the indices of requests in blocks, in which prompts with a common beginning are neighbours.

    All requests of a block have the same adapter. Planning the requests of a block again, in its order, gives the same
    block.

    >>> asked = [ChoiceRequest(prompt=text, options=(" a", " b"), outcomes=()) for text in ("two", "one", "two", "six")]
    >>> plan_blocks(asked, BlockLimits(n_texts=4, n_characters=100))
    [[1, 3], [0, 2]]
    """
    blocks: list[list[int]] = []
    n_texts = n_characters = 0
    for index in sorted(range(len(requests)), key=lambda at: (requests[at].adapter or "", requests[at].prompt, at)):
        request = requests[index]
        weight = len(request.options) if isinstance(request, ChoiceRequest) else 1
        n_texts += weight
        n_characters += weight * len(request.prompt)
        is_other = not blocks or requests[blocks[-1][-1]].adapter != request.adapter
        if is_other or n_texts > limits.n_texts or n_characters > limits.n_characters:
            blocks.append([])
            n_texts, n_characters = weight, weight * len(request.prompt)
        blocks[-1].append(index)
    return blocks


def ask_in_blocks(
    ask: Callable[[Sequence[Request], frozenset[int]], Events],
    limits: BlockLimits,
    requests: Sequence[Request],
    missing: frozenset[int],
) -> Events:
    """Ask one block after the other, as an implementation of ``Backend.ask``.

    Args:
        ask: Function that answers the missing requests of one block.
        limits: Largest size of a block.
        requests: All requests of the run.
        missing: Indices of the requests that need an answer.

    Yields:
        The events of all blocks, with indices into ``requests``.
    """
    for block in plan_blocks(requests, limits):
        missing_in_block = frozenset(position for position, index in enumerate(block) if index in missing)
        if missing_in_block:
            for event in ask([requests[index] for index in block], missing_in_block):
                yield in_run(event, block)


def in_run(event: Sent | Answers, block: Sequence[int]) -> Sent | Answers:
    """Convert an event of a block to one of the run."""
    if isinstance(event, Sent):
        return event
    return event._replace(responses={block[position]: response for position, response in event.responses.items()})
