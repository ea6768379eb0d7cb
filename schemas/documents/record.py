"""Rows of ``records.parquet``: an item, its requests, their responses, and what the task read from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from biasboard.ground import strict_json
from schemas.documents.base import Count, Document, LogProbability, Name, Sha256, Share, Text

RequestKind: TypeAlias = Literal["choice", "generate"]
ExchangeStatus: TypeAlias = Literal["answered", "refused", "failed"]
RecordStatus: TypeAlias = Literal["scored", "refused", "unparsed", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Document):
    """One request and its response, with log-probabilities in nats."""

    kind: RequestKind
    request_sha256: Sha256 | None
    """SHA-256 of the request without the model, so that it is the same for every model that was sent the request; None
    for a choice whose prompt is here, from which it follows, and if nobody could check it, because the answers were
    given elsewhere and the prompts are withheld. Older files have it for every choice."""
    prompt: str | None
    """Text of the prompt; None if the dataset's licence forbids showing it, or if it was withheld. The item and the
    prompt id rebuild it."""
    outcomes: tuple[Text, ...]
    """Outcome of each option, in the order in which the options are offered; empty if there are none."""
    options: tuple[str, ...]
    """Continuations of the prompt whose log-probabilities are computed; empty for generations."""
    option_logprobs: tuple[LogProbability | None, ...]
    """Log-probability of each option: the sum over its tokens, given the prompt. -inf is a probability of zero; None
    means that no value was returned. The last ``n_moved_tokens`` tokens of the prompt count as part of the option."""
    option_end_logprobs: tuple[LogProbability | None, ...]
    """Log-probability of the end token after each option; None if the model has no end token."""
    option_token_counts: tuple[Count | None, ...]
    option_byte_counts: tuple[Count, ...]
    option_is_bound: tuple[bool, ...]
    """True for each option whose log-probability is only an upper bound, because the endpoint returns just the most
    probable tokens; empty if all values are exact."""
    n_moved_tokens: Count | None
    """Number of tokens at the end of the prompt that count as part of every option, because the tokenizer merges them
    with the start of an option; 0 if the prompt ends between two tokens, None if unknown."""
    text: str | None
    """Generated text; None for choices."""
    finish_reason: Text | None
    sample: Count | None
    """Number of the sample if a prompt is sampled several times; None if one answer is requested."""
    n_prompt_tokens: Count | None
    n_completion_tokens: Count | None
    status: ExchangeStatus
    error: Text | None
    text_logprob: LogProbability | None = None
    """Log-probability of the generated text at temperature 1, the end token included if there is one: the sum over its
    tokens; None for choices, if it was not asked for or not returned, and in older files, which lack the column."""


@lru_cache(maxsize=1024)
def _options_json(options: tuple[str | None, ...]) -> bytes:
    return strict_json.canonical(list(options))


def choice_sha256(prompt: str, options: tuple[str | None, ...]) -> str:
    """Return the hash of a choice request: that of the canonical JSON of its kind, options and prompt."""
    # Assembled by hand for speed, since records are checked by the thousand; the keys are in canonical order.
    text = b'{"kind":"choice","options":%b,"prompt":%b}' % (_options_json(options), strict_json.canonical(prompt))
    return hashlib.sha256(text).hexdigest()


def exchange_sha256(exchange: Exchange) -> str | None:
    """Return the hash of the request of an exchange; None if it is unknown."""
    if exchange.request_sha256 is None and exchange.kind == "choice" and exchange.prompt is not None:
        return choice_sha256(exchange.prompt, exchange.options)
    return exchange.request_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Document):
    """The answer that a task read from the responses to one item."""

    outcomes: tuple[Text, ...]
    probabilities: tuple[Share, ...]
    """Probability of each outcome, or its share of the parsed answers, summing to 1; empty if there are no outcomes."""
    answers: tuple[str, ...]
    """Answer parsed from the text of each exchange, "" for a sampled one that could not be parsed; empty if the task
    reads probabilities instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Document):
    """Everything that is needed to recompute a metric without the model and without the dataset."""

    schema_file = "schemas/documents/record.schema.json"

    item_id: Text
    config: Name
    split: Name
    status: RecordStatus
    truncated: bool
    reason: Text | None
    """Reason why the record has no reading; None if it is scored."""
    cluster: Text
    pair_id: Text | None
    target: Text | None
    """Correct outcome; None if the item has none."""
    reference: Text | None
    """Outcome from which desirability is measured; None if the task has no such outcome."""
    groups: dict[str, str]
    exchanges: tuple[Exchange, ...]
    reading: Reading | None
