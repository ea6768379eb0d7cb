"""One row of ``records.parquet``: an item, what was asked, what came back and what was read from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RequestKind: TypeAlias = Literal["choice", "generate"]
ExchangeStatus: TypeAlias = Literal["answered", "refused", "failed"]
RecordStatus: TypeAlias = Literal["scored", "refused", "unparsed", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its response. Log-probabilities are in nats."""

    kind: RequestKind
    request_sha256: str
    """Of the request alone, without the model: equal for every model that was asked this."""
    prompt: str | None
    """Null where the dataset's licence forbids showing its text; the item and the prompt id rebuild it."""
    outcomes: tuple[str, ...]
    """What each option stands for, in the order in which they are offered; empty where nothing is offered."""
    options: tuple[str, ...]
    """Continuations that are scored; empty for generations."""
    option_logprobs: tuple[float | None, ...]
    """Sum over the option's tokens, given the prompt before ``n_moved_tokens``, which count as the option's. -inf is a
    probability of zero; null was not returned."""
    option_end_logprobs: tuple[float | None, ...]
    """Log-probability of the end token after the option; null where the model has none."""
    option_token_counts: tuple[int | None, ...]
    option_byte_counts: tuple[int, ...]
    option_is_bound: tuple[bool, ...]
    """True where the log-probability is only known not to be higher, because the endpoint returns the most probable
    tokens alone; empty where every one is exact."""
    n_moved_tokens: int | None
    """Last tokens of the prompt that count as part of every option, because the tokenizer merges them with one; 0 where
    the prompt ends between tokens, null where it is unknown."""
    text: str | None
    """What was generated; null for choices."""
    finish_reason: str | None
    sample: int | None
    """Which of several samples of one prompt; null where one answer is asked for."""
    n_prompt_tokens: int | None
    n_completion_tokens: int | None
    status: ExchangeStatus
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a task read from the responses of one item."""

    outcomes: tuple[str, ...]
    probabilities: tuple[float, ...]
    """One per outcome, summing to 1; of parsed answers the share of each. Empty where an item has no outcomes."""
    answers: tuple[str, ...]
    """What was read from each exchange, where the task parses text; empty where it reads probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything that is needed to compute a metric again without the model and without the dataset."""

    item_id: str
    config: str
    split: str
    status: RecordStatus
    truncated: bool
    reason: str | None
    """Why the record has no reading; null if it is scored."""
    cluster: str
    pair_id: str | None
    target: str | None
    """The right outcome; null where there is none."""
    reference: str | None
    """The outcome that desirability is measured from."""
    groups: dict[str, str]
    exchanges: tuple[Exchange, ...]
    reading: Reading | None
