"""Answers requests from the stored responses of an earlier run; a request that is not among them fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
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
from evaluators.stores.store import STORE, read_answers
from schemas.documents.result import Model, Result
from schemas.files import contract
from schemas.folders.run_folder import RESULT

SUMMARY = "answers that were stored before: --model is the folder of a run"
EXTRA = None
CAPABILITIES: frozenset[Capability] = frozenset(
    {"option_logprobs", "generation", "image_option_logprobs", "pseudo_logprobs"}
)
IDENTIFIED = Identified("replay", frozenset({"id", "answers"}))
_UNKNOWN = Response(
    status="failed", error="no stored answer; ask only what was stored (--config, --split, --limit, --prompt)"
)


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
    """Open the stored responses of a run.

    Raises:
        ConfigError: there is no such folder, the run is unfinished or of a baseline, or another option is set.
        DataError: there are no responses.
    """
    options.refuse_others("replay", but=("name",))
    path = Path(model)
    if not (path / STORE).is_file():
        raise ConfigError(f"'{model}' is no run folder with {STORE}; name one")
    answers, source = read_answers(path / STORE), _model_of_run(path)
    if not answers:
        raise DataError(f"{model}: holds no answers")
    content = {
        key: contract.plain(
            # Thinking is left out where there is none, so that older answers keep their identity.
            {name: value for name, value in asdict(answer).items() if name != "thinking" or value is not None}
        )
        for key, answer in answers.items()
    }
    name = check_model_id(options.name or source.id)
    identity = {"backend": "replay", "id": name, "answers": strict_json.sha256(content)}
    return Replay(
        answers=answers,
        arguments=(f"--model {path.resolve().name}", *([f"--name {options.name}"] if options.name else [])),
        model=identified_model(
            name,
            identity,
            endpoint="replay",
            revision=source.revision,
            precision=source.precision,
            chat_template_sha256=source.chat_template_sha256,
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
