"""Reads the logs that inspect_ai writes with ``--log-format json``; archives that end in ``.eval`` it converts.

A sample answers a question in an epoch, and holds each call of the model as an event. inspect_ai's own reader is not
used: in version 0.3.285 it takes numbers that are none, keys that stand twice and any version of logs, and needs 40
further packages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from evaluators.backend import GenerateRequest, Response, Runtime
from evaluators.harness import (
    FACTS,
    HarnessLog,
    LoggedAnswer,
    argument_fields,
    commit_of_weights,
    exported_facts,
    precision_of,
    validated,
    without_path,
)

HOW_TO_ASK = "inspect eval --log-format json --log-dir FOLDER"
_AGAIN = "import the log as inspect_ai wrote it"
SETTINGS = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop": "stop_seqs"}
"""Names in inspect_ai of the settings of a request, by our names."""
_VERSION = 2
"""Version of the format of logs."""
_SHOWN = (
    *("attn_implementation", "chat_template", "device", "dtype", "enable_thinking", "gguf_file", "max_model_len"),
    *("model_path", "quantization", "revision", "tokenizer", "tokenizer_path", "torch_dtype"),
)
"""Arguments of models that results may show. Others may be keys or addresses, of which only a hash is kept."""
_LONGEST_SHOWN = 80
"""Largest number of characters of an argument that is shown; a chat template is longer."""
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
_REMARK = (
    "asked as messages of a chat, in a template that the log does not tell: compare the result with those of models "
    "that were asked in a chat"
)
_Count = Annotated[int, Field(ge=0, lt=1 << 31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluation:
    """The task and the model."""

    run_id: str
    task: str
    model: str
    config: dict[str, Any]
    model_args: dict[str, Any] = field(default_factory=dict)
    model_base_url: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solvers:
    """The solvers of the task, and the settings of its calls."""

    steps: tuple[dict[str, Any], ...]
    finish: dict[str, Any] | None = None
    config: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """A log, as far as it is read."""

    version: int
    status: str
    eval: _Evaluation
    plan: _Solvers
    samples: tuple[Any, ...] | None = None
    """Samples as they stand there, since those of other tasks have other fields."""
    invalidated: bool = False
    error: dict[str, Any] | None = None


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

    @property
    def parts(self) -> tuple[_Content, ...]:
        """The parts of the message: texts, reasoning, images and others."""
        return (_Content(type="text", text=self.content),) if isinstance(self.content, str) else self.content

    # Without reasoning, which inspect_ai separates from the text. Apart from that, records of its logs (0.3.200 and
    # 0.3.285) equalled those of our own run against the same endpoint.
    @property
    def text(self) -> str:
        """The text of the message, without reasoning."""
        return "".join(part.text for part in self.parts if part.type == "text")

    @property
    def refusal(self) -> str | None:
        """The words with which the model declines; None if it does not."""
        return next((part.text or "declined" for part in self.parts if part.refusal), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Completion:
    message: _Message
    stop_reason: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    input_tokens_cache_read: _Count | None = None
    input_tokens_cache_write: _Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    model: str = ""
    choices: tuple[_Completion, ...] = ()
    usage: _Tokens | None = None
    error: str | None = None


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
class _SampleMetadata:
    questions: tuple[str, ...]
    """Id of the question that each epoch asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EvalSample:
    """A sample of the log."""

    id: str
    epoch: Annotated[int, Field(ge=1)]
    input: str
    metadata: _SampleMetadata
    messages: tuple[_Message, ...] = ()
    output: _Output = field(default_factory=_Output)
    model_usage: dict[str, Any] = field(default_factory=dict)
    model_fallbacks: tuple[Any, ...] | None = None
    events: tuple[dict[str, Any], ...] = ()
    attachments: dict[str, str] = field(default_factory=dict)
    events_data: _Pool | None = None
    error: dict[str, Any] | None = None
    limit: dict[str, Any] | None = None
    invalidation: dict[str, Any] | None = None

    def texts(self, messages: Iterable[_Message]) -> list[tuple[str, str]]:
        """Return the role and the text of each message; long texts are references to attachments."""
        return [
            (message.role, self.attachments.get(text.removeprefix(_ATTACHMENT_PREFIX), text))
            if (text := message.text).startswith(_ATTACHMENT_PREFIX)
            else (message.role, text)
            for message in messages
        ]


def read_log(path: Path) -> HarnessLog | None:
    """Read a log; see :class:`~evaluators.harness.Harness`."""
    if path.suffix == ".eval":
        raise ConfigError(
            f"{path.name}: only logs in JSON are read; write one, and import it: inspect log convert "
            f"{shlex.quote(str(path))} --to json --output-dir FOLDER"
        )
    if path.suffix != ".json":
        raise ConfigError(
            f"--input {path}: is no log, which ends in .json; ask with {HOW_TO_ASK}, and name what it wrote"
        )
    value, where = strict_json.read(path), path.name
    version = value.get("version") if isinstance(value, dict) else None
    if version != _VERSION:
        raise DataError(
            f"{where}: is a log of version {version!r}, and {_VERSION} is read; convert it with inspect log convert"
        )
    header = validated(_Header, value, where, _AGAIN)
    if header.samples is None:
        raise DataError(f"{where}: holds no samples; ask without --no-log-samples, and {_AGAIN}")
    evaluation, facts = header.eval, (header.eval.metadata or {}).get(FACTS)
    if facts is None:
        return None
    exported = exported_facts(facts, where)
    _check_unmodified(header, facts, where)
    read = [_read(sample, f"{where}: sample {number}", header) for number, sample in enumerate(header.samples, start=1)]
    answered = {without_path(output.model) for _, output in read if output is not None and output.model}
    messages = [output.choices[0].message for _, output in read if output is not None]
    n_reasoned = sum(any(part.type == "reasoning" for part in message.parts) for message in messages)
    reasoning_remark = f"the texts of {n_reasoned} answers are without the reasoning that inspect_ai keeps apart"
    settings = {
        "harness": "inspect-ai",
        "api": "chat",
        "log": path.name,
        "log_sha256": sha256_file(path),
        "reported_model": ", ".join(sorted(answered)),
    }
    return HarnessLog(
        name=path.name,
        task=evaluation.task,
        exported=exported,
        answers=[answer for answer, _ in read],
        identity=_identity(evaluation),
        runtime=Runtime(
            device=None,
            packages=dict(sorted(evaluation.packages.items())),
            settings={name: value for name, value in settings.items() if value},
        ),
        remarks=(_REMARK, reasoning_remark) if n_reasoned else (_REMARK,),
    )


def _check_unmodified(header: _Header, facts: object, where: str) -> None:
    """Check that an evaluation is complete, and that nothing was added around the questions."""
    if header.status != "success":
        raise DataError(
            f"{where}: the evaluation has the status '{header.status}', so that answers are missing; finish it with "
            "inspect eval-retry, and import the log that this writes"
        )
    if header.invalidated or header.error is not None:
        raise DataError(f"{where}: the log is marked as invalid or has an error; ask again")
    solvers = [step.get("solver") for step in (*header.plan.steps, header.plan.finish) if step is not None]
    if solvers != ["generate"]:
        raise DataError(f"{where}: asked with the solvers {solvers}; ask the exported task without --solver")
    epochs, exported = header.eval.config.get("epochs") or 1, facts.get("epochs") if isinstance(facts, dict) else None
    if epochs != exported:
        raise DataError(f"{where}: asked in {epochs} epochs, and exported for {exported!r}; ask again without --epochs")


def _identity(evaluation: _Evaluation) -> dict[str, str | None]:
    provider, _, name = evaluation.model.partition("/")
    arguments = {name: str(value) for name, value in evaluation.model_args.items()}
    shown = {key: arguments[key] for key in _SHOWN if key in arguments and len(arguments[key]) <= _LONGEST_SHOWN}
    hidden = {key: value for key, value in arguments.items() if key not in shown}
    if evaluation.model_base_url is not None:
        hidden["base_url"] = evaluation.model_base_url
    commit = commit_of_weights(arguments.get("revision"), arguments)
    return {
        "backend": "import",
        "harness": "inspect-ai",
        "harness_version": evaluation.packages.get("inspect_ai"),
        "provider": provider,
        "model": without_path(name or provider),
        "commit": commit,
        "precision": precision_of(arguments.get("dtype") or arguments.get("torch_dtype")),
        # The provider applies the model's chat template, which is not in the log.
        "api": "chat",
        **argument_fields(shown, hidden),
        # Without a commit, other models may share the name, so the evaluation identifies the model.
        "evaluation": None if commit is not None else evaluation.run_id,
    }


def _read(value: object, where: str, header: _Header) -> tuple[LoggedAnswer, _Output | None]:
    """Return the answer in a sample, and what it was read from; None of a sample that failed."""
    sample = validated(_EvalSample, value, where, _AGAIN)
    where = f"{where} (sample {sample.id}, epoch {sample.epoch})"
    questions = sample.metadata.questions
    if sample.epoch > len(questions):
        raise DataError(f"{where}: the question was exported for {len(questions)} epochs; ask again without --epochs")
    response = _response(sample)
    # A call that failed is taken to have been made with the settings of the task.
    asked = (
        _request(sample.input, header.plan.config, where)
        if response.status == "failed"
        else _sent_request(sample, where, header.eval.model)
    )
    answer = LoggedAnswer(where=where, question_id=questions[sample.epoch - 1], asked=asked, response=response)
    return answer, None if response.status == "failed" else sample.output


def _sent_request(sample: _EvalSample, where: str, model: str) -> GenerateRequest:
    """Return the request that was sent, from the single call of the model in a sample."""
    # Not from the input of the sample, which a solver may have changed before the call.
    calls = [
        validated(_Call, event, f"{where}: event {number}", _AGAIN)
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
        raise DataError(f"{where}: {call.model!r} answered, and the log is of {model!r}; {_AGAIN}")
    if call.tools or sample.model_fallbacks or sample.model_usage.keys() - {model}:
        raise DataError(f"{where}: asked with tools, or another model took part; ask again without them")
    # The sample repeats what the call returned. Whoever edits an answer may leave one of both.
    if call.error is not None or _said(sample, call.output) != _said(sample, sample.output):
        raise DataError(f"{where}: the sample has another answer than the call of the model; {_AGAIN}")
    messages = [*call.input, *_shared_messages(sample, call, where)]
    if [message.role for message in messages] != ["user"]:
        raise DataError(
            f"{where}: sent as messages of {[message.role for message in messages]}, and the task sends one of the "
            "user; ask again without --system-message"
        )
    if any(part.type != "text" for part in messages[0].parts):
        raise DataError(f"{where}: sent with an image or a file, and the task sends a text; ask the exported task")
    exchanged = [("user", sample.input), *sample.texts(choice.message for choice in sample.output.choices)]
    if sample.messages and sample.texts(sample.messages) != exchanged:
        raise DataError(f"{where}: the sample has other messages than the call of the model; {_AGAIN}")
    ((_, prompt),) = sample.texts(messages)
    return _request(prompt, call.config, where)


def _said(sample: _EvalSample, output: _Output) -> tuple[object, ...]:
    """Return all that is read of an output."""
    ends = [(choice.stop_reason, choice.message.refusal is None) for choice in output.choices]
    texts = sample.texts(choice.message for choice in output.choices)
    return output.model, output.usage, output.error, ends, texts


def _shared_messages(sample: _EvalSample, call: _Call, where: str) -> list[_Message]:
    pool = () if sample.events_data is None else sample.events_data.messages
    messages: list[_Message] = []
    for start, end in call.input_refs or ():
        if not 0 <= start <= end <= len(pool):
            raise DataError(f"{where}: messages {start} to {end} of {len(pool)} are missing; {_AGAIN}")
        # Ranges may name a message a billion times, and one more than the task sends is refused anyway.
        messages += pool[start : min(end, start + 2)]
        if len(messages) > 1:
            break
    return messages


def _request(prompt: str, settings: Mapping[str, Any], where: str) -> GenerateRequest:
    """Return the request for a prompt with settings of inspect_ai."""
    others = sorted(name for name, value in settings.items() if value is not None and name not in _HARMLESS)
    if others:
        raise DataError(f"{where}: asked with {', '.join(others)}, which the task does not set; ask again without it")
    values = {name: settings.get(setting) for name, setting in SETTINGS.items()}
    missing = [SETTINGS[name] for name, value in values.items() if value is None and name != "stop"]
    if missing:
        raise DataError(f"{where}: asked without {', '.join(missing)}, which the task sets; ask the exported task")
    fields = {**values, "stop": values["stop"] or (), "prompt": prompt}
    return validated(GenerateRequest, fields, f"{where}, its settings", _AGAIN)


def _response(sample: _EvalSample) -> Response:
    """Return the response in a sample, as our own run would have stored it."""
    if (reason := _failure(sample)) is not None:
        return Response(status="failed", error=reason)
    (choice,) = sample.output.choices
    finish, declined = _FINISH.get(choice.stop_reason), choice.message.refusal
    if declined is not None:
        finish = None
    elif finish == "content_filter":
        declined = "the answer ended with finish_reason 'content_filter'"
    usage = sample.output.usage
    cached = 0 if usage is None else (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return Response(
        status="answered" if declined is None else "refused",
        text=choice.message.text if declined is None else None,
        error=declined,
        finish_reason=finish,
        n_prompt_tokens=None if usage is None else usage.input_tokens + cached,
        n_completion_tokens=None if usage is None else usage.output_tokens,
    )


def _failure(sample: _EvalSample) -> str | None:
    """Return why a sample has no answer; None if it has one."""
    if sample.invalidation is not None:
        return "the log marks it as invalid"
    if sample.error is not None:
        # Only the name of the error, since its message may hold addresses and keys.
        name = _ERROR_NAME.match(str(sample.error.get("message", "")))
        return f"inspect_ai stopped with {'an error' if name is None else name[0]}"
    if sample.limit is not None:
        kind = _ERROR_NAME.match(str(sample.limit.get("type", "")))
        return f"inspect_ai stopped at its limit of {'something' if kind is None else kind[0]}"
    choices = sample.output.choices
    if sample.output.error is not None or len(choices) != 1:
        return f"the log has {len(choices)} answers to it" if sample.output.error is None else "the model had an error"
    if choices[0].stop_reason == "tool_calls":
        return "the model called a tool instead of answering"
    if not choices[0].message.text and _FINISH.get(choices[0].stop_reason) == "length":
        return "all tokens were generated without visible text; allow more tokens"
    return None
