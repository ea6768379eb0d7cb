"""How texts are generated at one endpoint, and how what a model thinks is kept apart from what it answers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluators.backend import GenerateRequest, Response
from evaluators.backends.openai.dialect import Dialect
from evaluators.backends.openai.meanings import NoAnswerError, list_in, mapping_in
from evaluators.backends.openai.protocol import (
    CHAT,
    COMPLETIONS,
    Call,
    chat_tokens,
    logprob,
    only_choice,
    shown,
    total_usage,
)
from evaluators.models.tokenizer import ModelTokenizer
from evaluators.thinking import split_thinking

# Switched off explicitly, because vLLM's server otherwise applies the model's generation config.
VLLM_SAMPLING: Mapping[str, Any] = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
TEST = GenerateRequest(prompt="The clock on the wall showed", max_tokens=16, temperature=0.0, stop=("\nQuestion:",))
"""A harmless request with all that the requests of tasks set, which shows what an endpoint takes."""
_CUT = re.compile(
    r"(finish_?reason[._]?)?(length|max_(new_|output_|completion_)?tokens|model_length|token_limit|time_limit"
    r"|model_context_window_exceeded)",
    re.IGNORECASE,
)
"""Reasons by which providers say that an answer reached the limit on tokens."""
_THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_content")
_THINKING_PARTS = frozenset(
    {"thinking", "thought", "reasoning", "redacted_thinking", "reasoning_content", "reasoning_text"}
)


@dataclass(frozen=True, kw_only=True)
class Generation:
    """The way in which one endpoint is asked to generate text."""

    model: str
    api: str
    """``chat`` or ``completions``."""
    tokenizer: ModelTokenizer | None
    """Tokenizer of completion prompts, which also counts the tokens of chat; if None, the endpoint tokenises."""
    end_id: int | None = None
    """Id of the end token to score after each option, at the cost of one more prompt per option; None to skip it."""
    context_tokens: int | None = None
    """Largest number of tokens in prompt and answer together; None if unknown."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters to send, such as sampling parameters that override the server's own defaults."""
    system_prompt: str | None = None
    gives_logprobs: bool = False
    """True if the log-probabilities of generated tokens can be asked for: the endpoint has returned some."""
    dialect: Dialect = field(default_factory=Dialect)

    def calls(self, request: GenerateRequest) -> list[Call]:
        """Return the one call that asks for the text.

        Raises:
            NoAnswerError: the request cannot be asked.
        """
        dialect = self.dialect
        n_tokens = dialect.n_tokens(request.max_tokens)
        body: dict[str, Any] = {
            "model": self.model,
            dialect.max_tokens: n_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.sampling_seed,
            **self.extra,
            **dialect.form_parameters(request.json_schema),
        }
        # Some endpoints refuse an empty list. A text at which answers end may occur in what a model thinks before.
        if request.stop and not dialect.thinking_tokens:
            body["stop"] = list(request.stop)
        if request.with_logprob and self.gives_logprobs:
            # In chat a switch, else the number of alternatives; with 1, every server returns the chosen token too.
            body["logprobs"] = True if self.api == "chat" else 1
        if dialect.streams:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        for name in dialect.left_out - {dialect.max_tokens}:
            body.pop(name, None)
        if self.api == "chat":
            system, text = [] if self.system_prompt is None else [self.system_prompt], request.prompt
            if not dialect.has_system_role:
                system, text = [], "\n\n".join([*system, text])
            body["messages"] = [
                *({"role": "system", "content": one} for one in system),
                {"role": "user", "content": text},
            ]
            return [Call(CHAT, body, chat_tokens(self.tokenizer, request.prompt), n_tokens)]
        prompt = request.prompt if self.tokenizer is None else self.tokenizer.context_ids(request.prompt)
        n_prompt = None if isinstance(prompt, str) else len(prompt)
        if not prompt:
            raise NoAnswerError("the prompt is empty, and the tokenizer puts nothing before it")
        if self.context_tokens is not None and n_prompt is not None and n_prompt >= self.context_tokens:
            raise NoAnswerError(
                f"the prompt takes {n_prompt} tokens, the model {self.context_tokens}; nothing is left for an answer"
            )
        return [Call(COMPLETIONS, {**body, "prompt": prompt}, n_prompt, n_tokens)]

    def read(self, request: GenerateRequest, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Read the generated text and the token counts from the reply.

        Raises:
            NoAnswerError: the reply holds no text, or the endpoint declined to answer.
        """
        choice = only_choice(replies[0])
        ending = choice.get("finish_reason")
        ending = ending if isinstance(ending, str) else None
        is_cut_off = _CUT.fullmatch(ending or "") is not None
        text, thinking = _texts(choice) if self.api == "chat" else (choice.get("text"), None)
        if not isinstance(text, str):
            # Hidden thinking leaves nothing but the reason why it ended.
            if thinking is None and not is_cut_off:
                raise NoAnswerError(f"the answer holds no text (finish_reason {shown(choice.get('finish_reason'))})")
            text = ""
        n_prompt, n_completion = total_usage(replies)
        return Response(
            status="answered",
            text=text,
            thinking=thinking,
            finish_reason="length" if is_cut_off else ending,
            n_prompt_tokens=n_prompt,
            n_completion_tokens=n_completion,
            text_logprob=_text_logprob(choice) if request.with_logprob else None,
        ).stopped_at(request.stop)


def is_cut_thinking(response: Response) -> bool:
    """Return True if an answer was cut before the model said anything, as in the middle of thinking."""
    return response.finish_reason == "length" and not split_thinking(response.text or "").answer


def thinks(response: Response) -> bool:
    """Return True if an answer shows that the model thinks before it answers."""
    is_shown = response.thinking is not None or split_thinking(response.text or "").thinking is not None
    return is_shown or is_cut_thinking(response)


def shows_thinking(choice: Mapping[str, Any]) -> bool:
    """Return True if a choice of a chat holds something that the model thought."""
    text, thinking = _texts(choice)
    return thinking is not None or split_thinking(text or "").thinking is not None


def _texts(choice: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return what a message answers and what it thinks; None for what it does not hold."""
    message = mapping_in(choice, "message")
    content = message.get("content")
    thoughts = [message.get(name) for name in _THINKING_FIELDS]
    if isinstance(content, list):
        said: list[object] = []
        for part in content:
            kind = part if isinstance(part, Mapping) else {}
            is_thought = kind.get("type") in _THINKING_PARTS or kind.get("thought") is True
            (thoughts if is_thought else said).append(part)
        content = "".join(map(_said, said)) if said else None
    thinking = "\n".join(filter(None, map(_said, thoughts)))
    return content if isinstance(content, str) else None, thinking or None


def _said(part: object) -> str:
    """Return the text of a part of a message, which may hold parts itself."""
    if isinstance(part, list):
        return "".join(map(_said, part))
    if not isinstance(part, Mapping):
        return part if isinstance(part, str) else ""
    return next((_said(part[name]) for name in ("text", "thinking", "reasoning", "content") if part.get(name)), "")


def _text_logprob(choice: Mapping[str, Any]) -> float | None:
    """Return the sum of the log-probabilities of a text's tokens; None if one is missing or none.

    Chat returns a list of tokens as ``content``, completions return numbers as ``token_logprobs``.
    """
    returned = mapping_in(choice, "logprobs")
    listed = list_in(returned, "token_logprobs")
    if tokens := list_in(returned, "content"):
        listed = [token.get("logprob") if isinstance(token, Mapping) else None for token in tokens]
    try:
        return math.fsum(logprob(value, what="a token") for value in listed) if listed else None
    except NoAnswerError:
        # A sum of the others would look like that of a likelier text.
        return None
