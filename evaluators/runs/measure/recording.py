"""Turns requests and responses into records, and checks that not too many failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
from pydantic import TypeAdapter

from biasboard.ground.errors import ConfigError, RunError
from biasboard.ground.plain_text import one_line, without_keys
from biasboard.ground.progress import note
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.runs.plan.plan import Plan, PlannedPart
from evaluators.statistics.option_scores import why_impossible
from evaluators.task import Prompt
from evaluators.thinking import split_thinking
from schemas.documents.base import shown
from schemas.documents.record import Exchange, Record
from schemas.files.record_columns import RecordColumns

_TEXTS = ("text", "thinking", "finish_reason", "error")
"""Fields of a response that a model or an endpoint wrote."""
_LONGEST = {"finish_reason": 100, "error": 10_000}
_BYTES_OF_TOKEN = 256
"""Size that no token exceeds: the longest of usual vocabularies are 128 spaces."""
_ANY_ANSWER = 64_000
"""Size in bytes of an answer that may come where a server ignores the limit on tokens."""
_MOST_THINKING = 500_000
"""Number of tokens beyond those of an answer that no model thinks with."""
_FORM = TypeAdapter(Response)
_NUMBERS = tuple(field.name for field in fields(Response) if field.name not in _TEXTS)


def records_of(
    plan: Plan,
    part: PlannedPart,
    requests: Sequence[Sequence[Request]],
    responses: Sequence[Sequence[Response]],
    *,
    chat: bool,
) -> Iterator[Record]:
    """Yield one record per item of a part from requests and responses.

    The requests may differ from the plan's: imported answers may belong to other requests.

    ``chat`` is True if options were scored behind a chat template.
    """
    task = plan.task
    show = plan.selection.manifest.redistributable
    for (split, item), facts, asked, answers in zip(part.items, part.facts, requests, responses, strict=True):
        exchanges = tuple(
            exchange_of(request, answer, show_prompt=show, chat=chat, is_continued=plan.prompt.follow_up is not None)
            for request, answer in zip(asked, answers, strict=True)
        )
        read = task.reading(exchanges, plan.normalisation, plan.prompt.id)
        yield Record(
            item_id=item.item_id,
            config=part.config,
            split=split,
            status=read.status,
            truncated=any(exchange.finish_reason == "length" for exchange in exchanges),
            reason=read.reason,
            cluster=facts.cluster,
            pair_id=facts.pair_id,
            target=facts.target,
            reference=facts.reference,
            groups=dict(facts.groups),
            exchanges=exchanges,
            reading=read.reading,
        )


def first_asked(records: RecordColumns, prompt: Prompt) -> RecordColumns:
    """Return records with their first requests only: the others follow from answers, and not from the items alone."""
    if prompt.follow_up is None:
        return records
    return records.only_exchanges(records.exchanges["kind"].coded.is_one_of("generate"))


def well_formed(request: Request, response: Response) -> Response:
    """Return a response with values of the types that a record holds: what is stored is never asked again.

    A backend may leave out the token counts of options and the log-probabilities of their ends, which are unknown then.

    Raises:
        ConfigError: it has others, as a backend that is a plug-in may give.
    """
    n = len(request.options) if isinstance(request, ChoiceRequest) else 0
    try:
        texts = {name: getattr(response, name) for name in _TEXTS}
        form = _FORM.validate_python({name: getattr(response, name) for name in _NUMBERS})
        if form.status == "answered" and len(form.option_logprobs) == n:
            unknown = (None,) * n
            ends, sizes = form.option_end_logprobs or unknown, form.option_token_counts or unknown
            form = replace(form, option_end_logprobs=ends, option_token_counts=sizes)
        lists = form.option_logprobs, form.option_end_logprobs, form.option_token_counts
        counts = *form.option_token_counts, form.n_moved_tokens, form.n_prompt_tokens, form.n_completion_tokens
        logprobs = *form.option_logprobs, *form.option_end_logprobs, form.text_logprob
        are_possible = all(0 <= count < 1 << 53 for count in filter(None, counts)) and all(
            logprob < 0 for logprob in filter(None, logprobs)
        )
        has_all = {*map(len, lists)} <= ({n} if form.status == "answered" else {0, n})
        are_texts = all(isinstance(text, str | None) for text in texts.values())
        if has_all and are_texts and are_possible:
            return replace(form, **texts)
        fault = shown((*lists, counts) if are_texts else texts)
    except (AttributeError, ValueError) as error:
        fault = one_line(error, most=200)
    remedy = "correct the backend, or use --dtype float32 if a number is NaN"
    raise ConfigError(f"the backend gives a response that no record can hold: {fault}; {remedy}")


def storable(response: Response, without_keys: Callable[[str], str] = without_keys) -> Response:
    """Return a response whose texts hold no key, are no longer than any reason, and can be written as UTF-8.

    An endpoint may cut a character in two. The resulting lone surrogates are replaced by U+FFFD.
    """
    texts = {name: text for name in _TEXTS if (text := getattr(response, name)) is not None}
    clean = {
        name: without_keys(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))[: _LONGEST.get(name)]
        for name, text in texts.items()
    }
    return response if clean == texts else replace(response, **clean)  # type: ignore[arg-type]


def sound(request: Request, response: Response) -> Response:
    """Return a response as a failed one if no model can have given it, so that a run ends before it pays for more.

    A number of tokens that no model can have used becomes unknown.
    """
    if isinstance(request, ChoiceRequest):
        fault = why_impossible(request.options, response.option_logprobs, response.option_is_bound)
    else:
        n_used, text = response.n_completion_tokens, split_thinking(response.text or "").answer
        fault = why_too_long(text, None, request.max_tokens)
        if fault is None and why_too_long(text, n_used, request.max_tokens):
            _warn_of_tokens()
            return replace(response, n_completion_tokens=None)
    return response if fault is None else Response(status="failed", error=f"{fault}; ask who runs the endpoint")


def why_too_long(text: str, n_used: int | None, max_tokens: int) -> str | None:
    """Return why an answer cannot have this length; None if it can.

    Args:
        text: The answer, without what the model thought.
        n_used: Number of tokens that the model is said to have written, thoughts included; None if unknown.
        max_tokens: The limit of the request.
    """
    n_bytes = len(text.encode())
    if n_bytes > max(_BYTES_OF_TOKEN * max_tokens, _ANY_ANSWER):
        return f"the answer has {n_bytes:,} bytes, more than {max_tokens} tokens can hold"
    if n_used and (n_used > max_tokens + _MOST_THINKING or _BYTES_OF_TOKEN * n_used < n_bytes):
        return f"an answer of {n_bytes:,} bytes to at most {max_tokens} tokens is said to have {n_used:,} tokens"
    return None


@cache
def _warn_of_tokens() -> None:
    note("warning: the endpoint states numbers of tokens that its answers cannot have; they are taken as unknown")


def exchange_of(
    request: Request, response: Response, *, show_prompt: bool, chat: bool, is_continued: bool = False
) -> Exchange:
    """Return a request and its response as the exchange that a record stores.

    Args:
        request: The request.
        response: The response, of whose text only the answer is kept: what the model thought stays in the store.
        show_prompt: True if the licence of the dataset allows to show the prompt.
        chat: True if options were scored behind a chat template.
        is_continued: True if options are scored after the text, which is then kept as the model reads it again.
    """
    text = response.text
    if text is not None and not is_continued:
        text = split_thinking(text).answer
    choice = request if isinstance(request, ChoiceRequest) else None
    options = () if choice is None else choice.options
    strips = chat and choice is not None and not choice.n_begun
    return Exchange(
        kind="generate" if choice is None else "choice",
        # Random digits, which no compression makes smaller, would be half of a file.
        request_sha256=None if choice is not None and show_prompt else request.sha256,
        prompt=request.prompt if show_prompt else None,
        outcomes=request.outcomes,
        options=options,
        option_logprobs=response.option_logprobs,
        option_end_logprobs=response.option_end_logprobs,
        option_token_counts=response.option_token_counts,
        # Behind a chat template, an option is scored without the space that separates it from the prompt.
        option_byte_counts=tuple(len((option.lstrip() if strips else option).encode()) for option in options),
        option_is_bound=response.option_is_bound,
        n_moved_tokens=response.n_moved_tokens,
        text=text,
        finish_reason=response.finish_reason,
        sample=request.sample if isinstance(request, GenerateRequest) else None,
        n_prompt_tokens=response.n_prompt_tokens,
        n_completion_tokens=response.n_completion_tokens,
        status=response.status,
        error=response.error,
        text_logprob=response.text_logprob,
    )


@dataclass(slots=True)
class FailureCount:
    """Counts records that failed, whether in asking or in reading."""

    n: int = 0
    n_failed: int = 0
    last_reason: str | None = None

    def add(self, records: RecordColumns) -> None:
        """Count more records."""
        failed = np.flatnonzero(records.columns["status"].coded.is_one_of("failed")).tolist()
        self.n += len(records)
        self.n_failed += len(failed)
        if failed:
            self.last_reason = records.columns["reason"].texts[failed[-1]]

    def check(self, max_failure_rate: float) -> None:
        """Check that not too many records failed.

        Raises:
            RunError: more records failed than the rate allows.
        """
        if self.n_failed > max_failure_rate * self.n:
            raise RunError(
                f"{self.n_failed} of {self.n} items failed, more than the share of {max_failure_rate:g} that may (in "
                f"run and rescore: --max-failure-rate): {self.last_reason}; answers are kept, no result was written"
            )
