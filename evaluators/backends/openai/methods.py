"""The methods that work at one endpoint: how texts are generated, and how options are scored.

Texts are constrained to a JSON Schema where a request has one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biasboard.ground.errors import RunError
from biasboard.ground.progress import note
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.backends.openai.client import RejectedError
from evaluators.backends.openai.protocol import (
    CHAT,
    COMPLETIONS,
    MAX_TOKENS,
    AnswerError,
    Call,
    RefusalError,
    chat_tokens,
    check_refusal,
    choices,
    logprob,
    shown,
    total_usage,
)
from evaluators.backends.openai.scoring import FirstToken, ScoringMethod
from evaluators.models.tokenizer import ModelTokenizer

# Switched off explicitly, because vLLM's server otherwise applies the model's generation config.
VLLM_SAMPLING: Mapping[str, Any] = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
_FORMS = ("json_schema", "json_object", "none")
_FORM_NAMES = ("response_format", "json_schema", "json_object", "schema", "structured", "guided", "grammar")
"""Words in a refusal that show it to be about the form."""
_FORM_REFUSED = (400, 404, 422, 501)


@dataclass
class JsonForm:
    """The strictest form of JSON output that the endpoint has not refused.

    Some endpoints accept a schema, some only a request for any JSON object, some neither. The first call tries the
    strictest form; a refusal that names it leads to the next one.
    """

    kind: str = _FORMS[0]
    is_used: bool = False
    """True once a request had a schema."""

    def parameters(self, json_schema: str | None) -> Mapping[str, Any]:
        """Return the parameters that constrain a text to a schema; none without a schema."""
        if json_schema is None:
            return {}
        self.is_used = True
        if self.kind == "json_schema":
            schema = {"name": "answer", "schema": json.loads(json_schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        return {"response_format": {"type": "json_object"}} if self.kind == "json_object" else {}

    def falls_back(self, kind: str, error: RejectedError) -> bool:
        """Fall back to the next kind if a refusal is about the current one; return True if a retry may succeed.

        Args:
            kind: The kind of the refused call. Another call may have fallen back since.
            error: The refusal.
        """
        words = f"{error.parameter} {error.reason}".lower()
        is_about_form = error.status in _FORM_REFUSED and any(name in words for name in _FORM_NAMES)
        if kind == _FORMS[-1] or error.remedy is not None or not is_about_form:
            return False
        if kind == self.kind:
            self.kind = _FORMS[_FORMS.index(kind) + 1]
            instead = "any JSON object" if self.kind == "json_object" else "JSON by the prompt alone"
            note(f"the endpoint refuses the parameter response_format as {kind} ({error.reason}); asking for {instead}")
        return True


@dataclass(frozen=True, kw_only=True)
class Generation:
    """The way in which one endpoint is asked to generate text."""

    model: str
    api: str
    """``chat`` or ``completions``."""
    tokenizer: ModelTokenizer | None
    """Tokenizer of completion prompts, which also counts the tokens of chat; if None, the endpoint tokenises."""
    context_tokens: int | None = None
    """Largest number of tokens in prompt and answer together; None if unknown."""
    max_tokens: str = MAX_TOKENS[0]
    """Name of the endpoint's parameter for the largest number of tokens to generate."""
    left_out: frozenset[str] = frozenset()
    """Sampling parameters that the endpoint refuses and that may be left out, such as ``seed``."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further sampling parameters to send, which override the server's own defaults."""
    gives_logprobs: bool = False
    """True if the log-probabilities of generated tokens can be asked for: the endpoint has returned some."""
    form: JsonForm = field(default_factory=JsonForm)

    def calls(self, request: GenerateRequest) -> list[Call]:
        """Return the one call that asks for the text.

        Raises:
            AnswerError: the request cannot be asked.
        """
        body: dict[str, Any] = {
            "model": self.model,
            self.max_tokens: request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.sampling_seed,
            **self.extra,
            **self.form.parameters(request.json_schema),
        }
        # Some endpoints refuse an empty list.
        if request.stop:
            body["stop"] = list(request.stop)
        if request.with_logprob and self.gives_logprobs:
            # In chat a switch, else the number of alternatives; with 1, every server returns the chosen token too.
            body["logprobs"] = True if self.api == "chat" else 1
        for name in self.left_out:
            # A top_p is left out only if it is 1, which changes nothing.
            if name != "top_p" or request.top_p == 1.0:
                del body[name]
        if self.api == "chat":
            body["messages"] = [{"role": "user", "content": request.prompt}]
            return [Call(CHAT, body, chat_tokens(self.tokenizer, request.prompt), request.max_tokens)]
        prompt = request.prompt if self.tokenizer is None else self.tokenizer.context_ids(request.prompt)
        n_prompt = None if isinstance(prompt, str) else len(prompt)
        if not prompt:
            raise AnswerError("the prompt is empty, and the tokenizer puts nothing before it")
        if self.context_tokens is not None and n_prompt is not None and n_prompt >= self.context_tokens:
            raise AnswerError(
                f"the prompt takes {n_prompt} tokens, the model {self.context_tokens}; nothing is left for an answer"
            )
        return [Call(COMPLETIONS, {**body, "prompt": prompt}, n_prompt, request.max_tokens)]

    def read(self, request: GenerateRequest, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Read the generated text and the token counts from the reply.

        Raises:
            AnswerError: the reply holds no text.
            RefusalError: the endpoint declined to answer.
        """
        (choice,) = choices(replies[0], 1)
        check_refusal(choice)
        message, finish = choice.get("message"), choice.get("finish_reason")
        text = choice.get("text") if self.api == "completions" else None
        if self.api == "chat" and isinstance(message, Mapping):
            text = message.get("content")
        if not isinstance(text, str):
            raise AnswerError(f"the answer holds no text (finish_reason {shown(finish)})")
        if not text and finish == "length":
            raise AnswerError(f"all {request.max_tokens} tokens were generated without visible text; allow more tokens")
        n_prompt, n_completion = total_usage(replies)
        return Response(
            status="answered",
            text=text,
            finish_reason=finish if isinstance(finish, str) else None,
            n_prompt_tokens=n_prompt,
            n_completion_tokens=n_completion,
            text_logprob=_text_logprob(choice.get("logprobs")) if request.with_logprob else None,
        )


def _text_logprob(returned: object) -> float | None:
    """Return the sum of the log-probabilities of a text's tokens; None if one is missing or none.

    Chat returns a list of tokens as ``content``, completions return numbers as ``token_logprobs``.
    """
    if not isinstance(returned, Mapping):
        return None
    tokens, listed = returned.get("content"), returned.get("token_logprobs")
    if isinstance(tokens, list):
        listed = [token.get("logprob") if isinstance(token, Mapping) else None for token in tokens]
    if not isinstance(listed, list) or not listed:
        return None
    try:
        return math.fsum(logprob(value, what="a token") for value in listed)
    except AnswerError:
        # A sum of the others would look like that of a likelier text.
        return None


_FILTERED = ("content_filter", "content_policy_violation")


@dataclass(frozen=True)
class Methods:
    """The methods that work at a probed endpoint, or may work at one that is not probed yet."""

    choice: ScoringMethod | None
    """Method for option log-probabilities; None if the endpoint returns none."""
    generation: Generation
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons why better methods are not used, by the name of the method."""

    @property
    def api(self) -> str:
        """The API of all requests: ``chat`` or ``completions``."""
        return self.generation.api

    @property
    def option_scoring(self) -> str | None:
        """The name of the method for option log-probabilities; None if no method works."""
        return self.choice.name if self.choice else None

    @property
    def top_logprobs(self) -> int:
        """The number of alternatives that chat returns for the first token; 0 if it is not used."""
        return self.choice.top if isinstance(self.choice, FirstToken) else 0

    @property
    def settings(self) -> dict[str, str]:
        """The methods as they are recorded in a result."""
        settings = {
            "api": self.api,
            "option_scoring": self.option_scoring or "none",
            "prompts_per_call": "many" if self.choice and self.choice.lists else "one",
            "max_tokens_parameter": self.generation.max_tokens,
        }
        if self.top_logprobs:
            settings["top_logprobs"] = str(self.top_logprobs)
        if self.generation.left_out:
            settings["parameters_left_out"] = ", ".join(sorted(self.generation.left_out))
        return settings | {f"not_{name}": reason for name, reason in self.reasons.items()}

    def calls(self, request: Request) -> list[Call]:
        """Return the calls to send.

        Raises:
            AnswerError: the request cannot be asked.
        """
        if not isinstance(request, ChoiceRequest):
            return self.generation.calls(request)
        if self.choice is None:
            raise AnswerError("the endpoint returns no log-probabilities; use a prompt that is answered in text")
        return self.choice.calls(request)

    def response(self, request: Request, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Build the response to a request from the replies to all its calls, in the order of the calls."""
        try:
            if isinstance(request, ChoiceRequest):
                assert self.choice is not None
                return self.choice.read(request, replies)
            return self.generation.read(request, replies)
        except AnswerError as error:
            return failed(str(error))
        except RecursionError:
            return failed("the answer is nested too deep to read")
        except RefusalError as error:
            n_prompt, n_completion = total_usage(replies)
            return Response(
                status="refused",
                error=error.reason,
                finish_reason=error.finish_reason,
                n_prompt_tokens=n_prompt,
                n_completion_tokens=n_completion,
            )


def failed(reason: str) -> Response:
    """Return the response to a request that could not be answered."""
    return Response(status="failed", error=reason)


def rejected(error: RejectedError) -> Response:
    """Return the response to a request that the endpoint refuses.

    Raises:
        RunError: the endpoint would refuse every other request too.
    """
    if error.remedy is not None:
        raise RunError(f"{error.reason}; {error.remedy}. Answers are kept: run the same command again after that")
    if error.code in _FILTERED:
        return Response(status="refused", error=error.reason, finish_reason="content_filter")
    return failed(error.reason)
