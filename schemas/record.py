"""Rows of ``records.parquet``: an item, its requests, their responses, and what the task read from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RequestKind: TypeAlias = Literal["choice", "generate"]
ExchangeStatus: TypeAlias = Literal["answered", "refused", "failed"]
RecordStatus: TypeAlias = Literal["scored", "refused", "unparsed", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its response, with log-probabilities in nats."""

    kind: RequestKind
    request_sha256: str
    """SHA-256 of the request without the model, so that it is the same for every model that was sent the request."""
    prompt: str | None
    """Text of the prompt; None if the dataset's licence forbids showing it. The item and the prompt id rebuild it."""
    outcomes: tuple[str, ...]
    """Outcome that each option stands for, in the order in which they are offered; empty if there are no options."""
    options: tuple[str, ...]
    """Continuations of the prompt whose log-probabilities are computed; empty for generations."""
    option_logprobs: tuple[float | None, ...]
    """Log-probability of each option: the sum over its tokens, given the prompt. -inf is a probability of zero; None
    means that no value was returned. The last ``n_moved_tokens`` tokens of the prompt count as part of the option."""
    option_end_logprobs: tuple[float | None, ...]
    """Log-probability of the end token after each option; None if the model has no end token."""
    option_token_counts: tuple[int | None, ...]
    option_byte_counts: tuple[int, ...]
    option_is_bound: tuple[bool, ...]
    """True for each option whose log-probability is only an upper bound, because the endpoint returns just the most
    probable tokens; empty if all values are exact."""
    n_moved_tokens: int | None
    """Number of tokens at the end of the prompt that count as part of every option, because the tokenizer merges them
    with the start of an option; 0 if the prompt ends between two tokens, None if unknown."""
    text: str | None
    """Generated text; None for choices."""
    finish_reason: str | None
    sample: int | None
    """Number of the sample if a prompt is sampled several times; None if one answer is requested."""
    n_prompt_tokens: int | None
    n_completion_tokens: int | None
    status: ExchangeStatus
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The answer that a task read from the responses to one item."""

    outcomes: tuple[str, ...]
    probabilities: tuple[float, ...]
    """Probability of each outcome, or its share of the parsed answers, summing to 1; empty if there are no outcomes."""
    answers: tuple[str, ...]
    """Answer parsed from the text of each exchange; empty if the task reads probabilities instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything that is needed to recompute a metric without the model and without the dataset."""

    item_id: str
    config: str
    split: str
    status: RecordStatus
    truncated: bool
    reason: str | None
    """Reason why the record has no reading; None if it is scored."""
    cluster: str
    pair_id: str | None
    target: str | None
    """Correct outcome; None if the item has none."""
    reference: str | None
    """Outcome from which desirability is measured; None if the task has no such outcome."""
    groups: dict[str, str]
    exchanges: tuple[Exchange, ...]
    reading: Reading | None
