"""Answers requests from stored responses: those of an earlier run, or of a JSON-lines file written elsewhere.

Each line of such a file is one response: ``{"prompt": ..., "options": [...], "option_logprobs": [...]}``. The
log-probabilities are in nats, summed over the tokens of each option; ``"-inf"`` is a probability of zero.
``request_sha256`` may replace ``prompt`` and ``options``. ``option_end_logprobs``, ``option_token_counts`` and
``n_moved_tokens`` are optional. A request that is not in the file fails.

``python -m evaluators cache export`` writes such lines with all fields of a response, such as ``status``, the generated
``text`` and token counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from evaluators.backend import (
    Backend,
    Capability,
    ChoiceRequest,
    Identified,
    Request,
    Response,
    Runtime,
    TokenCount,
    check_model_id,
    identified_model,
)
from evaluators.backend_options import BackendOptions
from evaluators.stores.read_only import read_answers
from evaluators.stores.store import STORE
from schemas.documents.record import ExchangeStatus
from schemas.documents.result import Model, Result
from schemas.files import contract
from schemas.folders.run_folder import RESULT

SUMMARY = "answers that were stored before: --model is the folder of a run, or a .jsonl file of answers"
EXTRA = None
CAPABILITIES: frozenset[Capability] = frozenset(
    {"option_logprobs", "generation", "image_option_logprobs", "pseudo_logprobs"}
)
IDENTIFIED = Identified("replay", frozenset({"id", "answers"}))
_UNKNOWN = Response(
    status="failed", error="no stored answer; ask only what was stored (--config, --split, --limit, --prompt)"
)


_Count: TypeAlias = Annotated[int, Field(ge=0)]
# Other programs write null for what they do not know.
_NULL_IS_EMPTY = BeforeValidator(lambda given: () if given is None else given)


@dataclass(frozen=True, kw_only=True)
class _StoredAnswer(Response):
    """A line of a JSON-lines file: a response, and the request that it answers."""

    request_sha256: str | None = None
    prompt: str | None = None
    options: tuple[str, ...] | None = None
    status: ExchangeStatus = "answered"
    option_end_logprobs: Annotated[tuple[float | None, ...], _NULL_IS_EMPTY] = ()
    option_token_counts: Annotated[tuple[_Count | None, ...], _NULL_IS_EMPTY] = ()
    n_moved_tokens: _Count | None = None
    n_prompt_tokens: _Count | None = None
    n_completion_tokens: _Count | None = None


@dataclass(frozen=True)
class Replay(Backend):
    """A backend that looks responses up by the hash of the request."""

    answers: Mapping[str, Response]
    model: Model
    arguments: tuple[str, ...] = ()
    runtime: Runtime = field(default_factory=Runtime)
    capabilities: frozenset[Capability] = CAPABILITIES

    @override
    def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        return [self._answer(request) for request in requests]

    @override
    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        return TokenCount(0, 0)

    def _answer(self, request: Request) -> Response:
        answer = self.answers.get(request.sha256, _UNKNOWN)
        if not isinstance(request, ChoiceRequest):
            if answer.status == "answered" and answer.text is None:
                return Response(status="failed", error="the stored answer holds no text")
            return answer
        n = len(request.options)
        if answer.status == "answered" and len(answer.option_logprobs) != n:
            return Response(status="failed", error=f"{len(answer.option_logprobs)} log-probabilities for {n} options")
        return answer


def open_backend(model: str, options: BackendOptions) -> Replay:
    """Open the stored responses of a run or of a file.

    Raises:
        ConfigError: there is no such folder or file, the run is unfinished or of a baseline, or another option is set.
        DataError: there are no responses, or a line is invalid.
    """
    options.refuse_others("replay", but=("name",))
    path = Path(model)
    if (path / STORE).is_file():
        answers, source = read_answers(path / STORE), _model_of_run(path)
    elif path.is_file():
        answers, source = _read_lines(path), None
    else:
        raise ConfigError(f"'{model}' is neither a run folder with {STORE} nor a .jsonl file of answers; name one")
    if not answers:
        raise DataError(f"{model}: holds no answers")
    content = {
        key: contract.plain(
            # Thinking is left out where there is none, so that older answers keep their identity.
            {name: value for name, value in asdict(answer).items() if name != "thinking" or value is not None}
        )
        for key, answer in answers.items()
    }
    name = check_model_id(options.name or (source.id if source else f"replay/{path.stem}"))
    identity = {"backend": "replay", "id": name, "answers": strict_json.sha256(content)}
    return Replay(
        answers=answers,
        arguments=(f"--model {path.resolve().name}", *([f"--name {options.name}"] if options.name else [])),
        model=identified_model(
            name,
            identity,
            endpoint="replay",
            revision=source.revision if source else None,
            precision=source.precision if source else None,
            chat_template_sha256=source.chat_template_sha256 if source else None,
        ),
    )


def _model_of_run(folder: Path) -> Model:
    path = folder / RESULT
    if not path.is_file():
        raise ConfigError(f"{folder}: the run is not finished, so it does not say who answered; finish it first")
    model = contract.read(path, Result).model
    if model.endpoint == "baseline":
        raise ConfigError(f"{folder}: a baseline is no model to replay; run it with --backend baseline")
    if model.adapters_sha256 is not None:
        raise ConfigError(f"{folder}: one question has an answer for each adapter; rescore the run instead")
    return model


def _read_lines(path: Path) -> dict[str, Response]:
    adapter = TypeAdapter(_StoredAnswer)
    answers: dict[str, Response] = {}
    check_readable(path)
    try:
        whole = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason}); give a .jsonl file of answers") from error
    # Not splitlines(): it also splits at characters that a text may hold, such as U+2028.
    lines = whole.removesuffix("\n").split("\n") if whole else []
    for number, text in enumerate(lines, start=1):
        where = f"{path}:{number}"
        value = strict_json.loads(text, where=where)
        try:
            line = adapter.validate_python(value)
        except ValidationError as error:
            first: Any = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise DataError(f"{where}: {field}: {first['msg']}; a line needs option_logprobs and a prompt") from error
        key, response = _read_line(line, where)
        if key in answers and answers[key] != response:
            raise DataError(f"{where}: an earlier line holds another answer to this request; keep one of them")
        answers[key] = response
    return answers


def _read_line(line: _StoredAnswer, where: str) -> tuple[str, Response]:
    n = len(line.option_logprobs)
    if line.status == "failed":
        raise DataError(f"{where}: a failed request has no answer; leave the line out, it is asked again")
    if not n and line.text is None and line.status == "answered":
        raise DataError(
            f"{where}: option_logprobs: Field required; a line needs option_logprobs and a prompt, or a text"
        )
    for logprob in (*line.option_logprobs, *line.option_end_logprobs):
        if logprob is not None and not logprob <= 0:
            raise DataError(f"{where}: {logprob} is above 0, so no log-probability; give natural logarithms")
    for name in ("options", "option_end_logprobs", "option_token_counts", "option_is_bound"):
        values = getattr(line, name)
        is_given = values is not None if name == "options" else bool(values)
        if is_given and n != len(values) and (n or name == "option_is_bound"):
            raise DataError(f"{where}: {len(values)} {name}, {n} option_logprobs; give one per option")
    if line.prompt is not None and line.options is not None:
        key = ChoiceRequest(prompt=line.prompt, options=line.options, outcomes=()).sha256
    elif line.request_sha256 is not None:
        key = line.request_sha256
    else:
        raise DataError(f"{where}: says neither prompt and options nor request_sha256; add one of them")
    known = {field.name: getattr(line, field.name) for field in fields(Response)}
    for name in ("option_end_logprobs", "option_token_counts"):
        known[name] = known[name] or (None,) * n
    return key, Response(**known)
