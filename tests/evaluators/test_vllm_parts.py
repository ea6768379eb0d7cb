"""What the backend vllm does without its engine: options as a trie, and what counts as the time of an answer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evaluators.backend import Answers, GenerateRequest, Request
from evaluators.backends.vllm.engine import Work
from evaluators.backends.vllm.pool import Event, InProcess
from evaluators.backends.vllm.vllm_backend import VllmBackend
from evaluators.models.option_trie import TokenQuestion, end_logprobs, option_logprobs, questions, split_wide
from evaluators.models.tokenizer import TokenRows

END = 2
# Options 5, 5 6 and 7 8 after the context 1 3; option 9 after the same; option 5 after another.
SHARED = TokenRows(([1, 3, 5], [1, 3, 5, 6], [1, 3, 7, 8]), 2, 0)
SAME_CONTEXT = TokenRows(([1, 3, 9], [1, 3, 5]), 2, 0)
OTHER_CONTEXT = TokenRows(([1, 4, 5], [1, 4, 6]), 2, 0)
ALL = (SHARED, SAME_CONTEXT, OTHER_CONTEXT)


def test_every_inner_node_is_asked_once_and_logprobs_are_sums_along_the_edges() -> None:
    assert questions(ALL, end_id=None, context_tokens=10) == [
        TokenQuestion((1, 3), (5, 7, 9)),
        TokenQuestion((1, 3, 5), (6,)),
        TokenQuestion((1, 3, 7), (8,)),
        TokenQuestion((1, 4), (5, 6)),
    ]
    # End tokens are asked after every option that leaves room.
    asked = {question.node: question.tokens for question in questions([SHARED], end_id=END, context_tokens=4)}
    assert asked == {(1, 3): (5, 7), (1, 3, 5): (2, 6), (1, 3, 7): (8,)}
    assert len(questions([SHARED], end_id=END, context_tokens=5)) == 5
    edges = {(1, 3): {5: -1.0, 7: -2.0}, (1, 3, 5): {6: -0.5, END: -0.25}, (1, 3, 7): {8: -math.inf}}
    assert option_logprobs(SHARED, edges) == (-1.0, -1.5, -math.inf)
    assert end_logprobs(SHARED, edges, END) == (-0.25, None, None)
    # Wide nodes are split.
    parts = split_wide([TokenQuestion((1,), tuple(range(300))), TokenQuestion((1, 2), (3,))], 128)
    assert [len(part.tokens) for part in parts] == [128, 128, 44, 1]
    assert sorted(token for part in parts[:3] for token in part.tokens) == list(range(300))


LOADING_SECONDS = 0.1


class SlowPool(InProcess):
    def __init__(self) -> None:
        time.sleep(LOADING_SECONDS)

    def run(self, works: Iterable[tuple[Any, Work]]) -> Iterator[Event]:
        for key, _ in works:
            yield key, None
            yield key, ({}, [])


class SlowToLoad(VllmBackend):
    def pool(self) -> InProcess:
        return SlowPool()

    def _prepare(self, requests: Sequence[Request], chunk: list[int]) -> tuple[tuple[list[int], list[Any]], Work]:
        return (chunk, ["too long"] * len(chunk)), Work([], [])


def test_loading_the_model_is_no_time_of_an_answer() -> None:
    unknown: Any = None
    backend = SlowToLoad(settings=unknown, environments=(), tokenizer=unknown, specs=unknown, model=unknown)
    events = list(backend.ask([GenerateRequest(prompt="The nurse", max_tokens=4)], frozenset({0})))
    (answers,) = (event for event in events if isinstance(event, Answers))
    assert answers.seconds < LOADING_SECONDS
