"""What stands in an answer: choices, log-probabilities, usage; checked, because servers differ and leave things out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# What servers write for a probability of zero, since JSON has no infinity.
_ZERO = -9999.0
_ROUNDING = 1e-4


class AnswerError(Exception):
    """An answer that does not hold what was asked for."""


class RefusalError(Exception):
    """An endpoint that declines to answer."""

    def __init__(self, reason: str, finish_reason: str | None):
        super().__init__(reason)
        self.reason = reason
        self.finish_reason = finish_reason


class Usage(NamedTuple):
    """Tokens that the endpoint says it took; None where it does not say."""

    n_prompt: int | None
    n_completion: int | None
    n_cached: int


def usage(data: Mapping[str, Any]) -> Usage:
    """Of one answer."""
    counts = data.get("usage")
    if not isinstance(counts, Mapping):
        return Usage(None, None, 0)
    details = counts.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    n_completion = _count(counts.get("completion_tokens"))
    n_prompt, n_total = _count(counts.get("prompt_tokens")), _count(counts.get("total_tokens"))
    if n_completion is None and n_prompt is not None and n_total is not None:
        n_completion = n_total - n_prompt
    return Usage(n_prompt, n_completion, cached or 0)


def total_usage(replies: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Prompt and completion tokens of several answers; None if one does not say."""
    found = [usage(data) for data in replies]
    prompt = [one.n_prompt for one in found if one.n_prompt is not None]
    completion = [one.n_completion for one in found if one.n_completion is not None]
    return (
        sum(prompt) if len(prompt) == len(found) else None,
        sum(completion) if len(completion) == len(found) else None,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def choices(data: Mapping[str, Any], n: int) -> list[Mapping[str, Any]]:
    """The ``n`` choices of an answer by their index, in whatever order and however often they came.

    Raises:
        AnswerError: one is missing, or came twice and differently.
    """
    found: dict[int, Mapping[str, Any]] = {}
    listed = data.get("choices")
    for choice in listed if isinstance(listed, list) else []:
        if not isinstance(choice, Mapping):
            raise AnswerError("a choice of the answer is no JSON object")
        # A single answer needs no number.
        index = _count(choice.get("index", 0 if n == 1 else None))
        if index is None or index >= n:
            raise AnswerError(f"the answer holds a choice with index {choice.get('index')!r}; {n} were asked for")
        if index in found and found[index] != choice:
            raise AnswerError(f"the answer holds choice {index} twice, with different contents")
        found[index] = choice
    missing = [index for index in range(n) if index not in found]
    if missing:
        raise AnswerError(f"the answer lacks {len(missing)} of {n} choices, the first of them with index {missing[0]}")
    return [found[index] for index in range(n)]


def logprob(value: object, *, what: str) -> float:
    """A log-probability in nats.

    Raises:
        AnswerError: it is null or none.
    """
    if value is None:
        raise AnswerError(f"the log-probability of {what} is null; the endpoint does not compute it")
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value > _ROUNDING:
        raise AnswerError(f"{value!r} is no log-probability of {what}")
    return -math.inf if value <= _ZERO else min(0.0, float(value))


class Echo(NamedTuple):
    """Tokens of a completion with ``echo``, and the log-probability of each."""

    tokens: tuple[str, ...]
    logprobs: tuple[object, ...]


def echo(choice: Mapping[str, Any]) -> Echo:
    """The tokens that a choice gives back.

    Raises:
        AnswerError: it gives none back.
    """
    held = choice.get("logprobs")
    if not isinstance(held, Mapping):
        raise AnswerError("the answer holds no log-probabilities")
    tokens, values = held.get("tokens"), held.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        raise AnswerError("the answer does not hold one log-probability per token")
    return Echo(tuple(map(str, tokens)), tuple(values))


def token_id(token: str) -> int | None:
    """The number in ``token_id:123``; None for a token's text."""
    prefix, _, number = token.partition("token_id:")
    return int(number) if prefix == "" and number.isdigit() else None


def check_refusal(choice: Mapping[str, Any]) -> None:
    """Find out whether the endpoint declined to answer.

    Raises:
        RefusalError: it did.
    """
    message = choice.get("message")
    said = message.get("refusal") if isinstance(message, Mapping) else None
    if isinstance(said, str) and said:
        raise RefusalError(said, None)
    if choice.get("finish_reason") == "content_filter":
        raise RefusalError("content filter", "content_filter")
