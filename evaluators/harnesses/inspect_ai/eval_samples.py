"""Reads the samples of inspect_ai: one per question and epoch, with each call of the model as an event."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from biasboard.ground.errors import DataError
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import GenerateRequest, Response
from evaluators.harness import LoggedAnswer, validated
from evaluators.harnesses.inspect_ai.archive import AGAIN
from evaluators.harnesses.inspect_ai.python_tasks import SETTINGS

_HARMLESS = frozenset(
    (
        *SETTINGS.values(),
        # How calls are made, repeated, cached and logged.
        *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "fail_on_refusal"),
        *("adaptive_connections", "cache", "cache_prompt", "batch", "extra_headers", "logprobs", "top_logprobs"),
        # About tools and earlier turns, which no question has.
        *("parallel_tool_calls", "internal_tools", "max_tool_output", "reasoning_history"),
    )
)
"""Settings of a call that cannot change the answer to a single message."""
_ATTACHMENT_PREFIX = "attachment://"
_FINISH = {"stop": "stop", "max_tokens": "length", "model_length": "length", "content_filter": "content_filter"}
"""Our finish reasons by those of inspect_ai; all others mean unknown."""
_ERROR_NAME = re.compile(r"[A-Za-z_][\w.]{0,60}")

_Count = Annotated[int, Field(ge=0, lt=1 << 31)]
_Epoch = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """A part of a message."""

    type: str
    text: str = ""
    refusal: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    role: str
    content: str | tuple[_Content, ...]

    # Without reasoning, which inspect_ai separates from the text. Apart from that, records of its logs (0.3.200 and
    # 0.3.285) equalled those of our own run against the same endpoint.
    @property
    def text(self) -> str:
        """The text of the message, without reasoning."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if part.type == "text")

    @property
    def is_text(self) -> bool:
        """True if the text is all of the message."""
        return isinstance(self.content, str) or all(part.type == "text" for part in self.content)

    @property
    def has_reasoning(self) -> bool:
        """True if a part of the message is reasoning."""
        return not isinstance(self.content, str) and any(part.type == "reasoning" for part in self.content)

    @property
    def refusal(self) -> str | None:
        """The words with which the model declines; None if it does not."""
        parts = () if isinstance(self.content, str) else self.content
        return next((part.text or "declined" for part in parts if part.refusal), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    message: _Message
    stop_reason: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usage:
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    input_tokens_cache_read: _Count | None = None
    input_tokens_cache_write: _Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    model: str = ""
    choices: tuple[_Choice, ...] = ()
    usage: _Usage | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Error:
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Messages that several events share."""

    messages: tuple[_Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call of the model."""

    model: str
    config: dict[str, Any]
    input: tuple[_Message, ...] = ()
    input_refs: tuple[tuple[int, int], ...] | None = None
    """Ranges of the shared messages, to be appended to ``input``."""
    tools: tuple[Any, ...] = ()
    output: _Output
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    questions: tuple[str, ...]
    """Id of the question that each epoch asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """A sample of the log."""

    id: str
    epoch: _Epoch
    input: str
    metadata: _Metadata
    messages: tuple[_Message, ...] = ()
    output: _Output = field(default_factory=_Output)
    model_usage: dict[str, Any] = field(default_factory=dict)
    model_fallbacks: tuple[Any, ...] | None = None
    events: tuple[dict[str, Any], ...] = ()
    attachments: dict[str, str] = field(default_factory=dict)
    events_data: _Pool | None = None
    error: _Error | None = None
    limit: _Limit | None = None
    invalidation: dict[str, Any] | None = None


_SAMPLE = TypeAdapter(_Sample)
_CALL = TypeAdapter(_Call)


@dataclass(frozen=True, slots=True)
class ReadSample:
    """The answer in a sample, and the name of the model."""

    answer: LoggedAnswer
    model: str | None
    """Name under which the model answered; None if there is no answer."""
    has_reasoning: bool
    """True if the log holds reasoning, separate from the text of the answer."""


def read_sample(value: JsonValue, where: str, *, model: str, settings: Mapping[str, Any]) -> ReadSample:
    """Return the answer in a sample.

    Args:
        value: The sample as JSON.
        where: Name of the log and location of the sample, for error messages.
        model: Model that was asked, according to the log.
        settings: Settings of the task, which are assumed for a call that failed.

    Raises:
        DataError: the sample is damaged, or its question was not asked as it was exported.
    """
    sample = validated(_SAMPLE, value, where, AGAIN)
    where = f"{where} (sample {sample.id}, epoch {sample.epoch})"
    questions = sample.metadata.questions
    if sample.epoch > len(questions):
        raise DataError(f"{where}: the question was exported for {len(questions)} epochs; ask again without --epochs")
    response = _response(sample)
    asked = (
        _sent_request(sample, where, model) if response.status != "failed" else _request(sample.input, settings, where)
    )
    answer = LoggedAnswer(where=where, question_id=questions[sample.epoch - 1], asked=asked, response=response)
    if response.status == "failed":
        return ReadSample(answer, None, has_reasoning=False)
    (choice,) = sample.output.choices
    return ReadSample(answer, sample.output.model or None, has_reasoning=choice.message.has_reasoning)


def _sent_request(sample: _Sample, where: str, model: str) -> GenerateRequest:
    """Return the request that was sent, from the single call of the model in a sample."""
    # Not from the input of the sample, which a solver may have changed before the call.
    calls = [
        validated(_CALL, event, f"{where}: event {number}", AGAIN)
        for number, event in enumerate(sample.events)
        if event.get("event") == "model"
    ]
    if len(calls) != 1:
        raise DataError(
            f"{where}: the model was called {len(calls)} times, and the task calls it once; ask again without a solver "
            "of your own"
        )
    (call,) = calls
    if call.model != model:
        raise DataError(f"{where}: {call.model!r} answered, and the log is of {model!r}; {AGAIN}")
    if call.tools or sample.model_fallbacks or sample.model_usage.keys() - {model}:
        raise DataError(f"{where}: asked with tools, or another model took part; ask again without them")
    # The sample repeats what the call returned. Whoever edits an answer may leave one of both.
    if call.error is not None or _said(sample, call.output) != _said(sample, sample.output):
        raise DataError(f"{where}: the sample has another answer than the call of the model; {AGAIN}")
    messages = [*call.input, *_shared_messages(sample, call, where)]
    if [message.role for message in messages] != ["user"]:
        raise DataError(
            f"{where}: sent as messages of {[message.role for message in messages]}, and the task sends one of the "
            "user; ask again without --system-message"
        )
    if not messages[0].is_text:
        raise DataError(f"{where}: sent with an image or a file, and the task sends a text; ask the exported task")
    (choice,) = sample.output.choices
    exchanged = [("user", sample.input), *_texts(sample, [choice.message])]
    if sample.messages and _texts(sample, sample.messages) != exchanged:
        raise DataError(f"{where}: the sample has other messages than the call of the model; {AGAIN}")
    return _request(_resolve_attachment(sample, messages[0].text), call.config, where)


def _texts(sample: _Sample, messages: Iterable[_Message]) -> list[tuple[str, str]]:
    return [(message.role, _resolve_attachment(sample, message.text)) for message in messages]


def _said(sample: _Sample, output: _Output) -> tuple[object, ...]:
    """Return all that is read of an output."""
    ends = [(choice.stop_reason, choice.message.refusal is None) for choice in output.choices]
    texts = _texts(sample, (choice.message for choice in output.choices))
    return output.model, output.usage, output.error, ends, texts


def _shared_messages(sample: _Sample, call: _Call, where: str) -> Sequence[_Message]:
    pool = () if sample.events_data is None else sample.events_data.messages
    messages: list[_Message] = []
    for start, end in call.input_refs or ():
        if not 0 <= start <= end <= len(pool):
            raise DataError(f"{where}: messages {start} to {end} of {len(pool)} are missing; {AGAIN}")
        # Ranges may name a message a billion times, and one more than the task sends is refused anyway.
        messages += pool[start : min(end, start + 2)]
        if len(messages) > 1:
            break
    return messages


def _resolve_attachment(sample: _Sample, text: str) -> str:
    """Return the text of an event; long texts are references to attachments."""
    return (
        sample.attachments.get(text.removeprefix(_ATTACHMENT_PREFIX), text)
        if text.startswith(_ATTACHMENT_PREFIX)
        else text
    )


def _request(prompt: str, settings: Mapping[str, Any], where: str) -> GenerateRequest:
    """Return the request for a prompt with settings of inspect_ai.

    Raises:
        DataError: a setting that our requests lack may change an answer, or a setting has the wrong type.
    """
    others = sorted(name for name, value in settings.items() if value is not None and name not in _HARMLESS)
    if others:
        raise DataError(f"{where}: asked with {', '.join(others)}, which the task does not set; ask again without it")
    values = {name: settings.get(setting) for name, setting in SETTINGS.items()}
    missing = [SETTINGS[name] for name, value in values.items() if value is None and name != "stop"]
    if missing:
        raise DataError(f"{where}: asked without {', '.join(missing)}, which the task sets; ask the exported task")
    fields = {**values, "stop": values["stop"] or (), "prompt": prompt}
    return validated(_REQUEST, fields, f"{where}, its settings", AGAIN)


_REQUEST = TypeAdapter(GenerateRequest)


def _response(sample: _Sample) -> Response:
    """Return the response in a sample, as our own run would have stored it."""
    if (reason := _failure(sample)) is not None:
        return Response(status="failed", error=reason)
    (choice,) = sample.output.choices
    text, finish = choice.message.text, _FINISH.get(choice.stop_reason)
    declined = choice.message.refusal
    if declined is None and finish == "content_filter":
        declined = "the answer ended with finish_reason 'content_filter'"
    elif declined is not None:
        finish = None
    usage = sample.output.usage
    cached = 0 if usage is None else (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return Response(
        status="answered" if declined is None else "refused",
        text=text if declined is None else None,
        error=declined,
        finish_reason=finish,
        n_prompt_tokens=None if usage is None else usage.input_tokens + cached,
        n_completion_tokens=None if usage is None else usage.output_tokens,
    )


def _failure(sample: _Sample) -> str | None:
    """Return why a sample has no answer; None if it has one."""
    if sample.invalidation is not None:
        return "the log marks it as invalid"
    if sample.error is not None:
        # Only the name of the error, since its message may hold addresses and keys.
        name = _ERROR_NAME.match(sample.error.message)
        return f"inspect_ai stopped with {'an error' if name is None else name[0]}"
    if sample.limit is not None:
        return f"inspect_ai stopped at its limit of {sample.limit.type}"
    choices = sample.output.choices
    if sample.output.error is not None or len(choices) != 1:
        return f"the log has {len(choices)} answers to it" if sample.output.error is None else "the model had an error"
    if choices[0].stop_reason == "tool_calls":
        return "the model called a tool instead of answering"
    if not choices[0].message.text and _FINISH.get(choices[0].stop_reason) == "length":
        return "all tokens were generated without visible text; allow more tokens"
    return None
