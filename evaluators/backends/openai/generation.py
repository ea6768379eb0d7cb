"""Asks an endpoint to generate text from a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluators.backend import GenerateRequest, Response
from evaluators.backends.openai.client import Call
from evaluators.backends.openai.json_form import JsonForm
from evaluators.backends.openai.reading import AnswerError, check_refusal, choices, shown, total_usage
from evaluators.backends.openai.scoring import CHAT, COMPLETIONS
from evaluators.models.tokenizer import ModelTokenizer

# Switched off, because vLLM's server otherwise takes the defaults of the model's generation config.
VLLM_SAMPLING: Mapping[str, Any] = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


@dataclass(frozen=True)
class Generation:
    """The way in which one endpoint is asked to generate text."""

    model: str
    api: str
    """``chat`` or ``completions``."""
    max_tokens: str
    """Name of the endpoint's parameter for the largest number of tokens to generate."""
    unknown: frozenset[str]
    """Sampling parameters that the endpoint refuses and that may be left out, such as ``seed``."""
    extra: Mapping[str, Any]
    """Further sampling parameters to send."""
    tokenizer: ModelTokenizer | None
    """Tokenizer for the prompts of completions; if None, the endpoint tokenises them."""
    n_tokens: Callable[[str], int | None]
    """Function that counts the tokens of a prompt; it returns None if it cannot."""
    room: int | None = None
    """Largest number of tokens in prompt and answer together; None if unknown."""
    form: JsonForm = field(default_factory=JsonForm)
    """Way in which texts are held to a JSON Schema."""

    def calls(self, request: GenerateRequest) -> list[Call] | str:
        """Return the one call that asks for the text, or why the request cannot be asked."""
        body: dict[str, Any] = {
            "model": self.model,
            self.max_tokens: request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.sampling_seed,
            **self.extra,
            **self.form.parameters(request.json_schema),
        }
        if request.stop:
            body["stop"] = list(request.stop)
        for name in self.unknown:
            # A top_p is left out only if it is 1, which changes nothing.
            if name != "top_p" or request.top_p == 1.0:
                del body[name]
        if self.api == "chat":
            body["messages"] = [{"role": "user", "content": request.prompt}]
            return [Call(CHAT, body, self.n_tokens(request.prompt), request.max_tokens)]
        prompt: Any = request.prompt if self.tokenizer is None else self.tokenizer.context_ids(request.prompt)
        if not prompt:
            return "the prompt is empty, and the tokenizer puts nothing before it"
        if self.room is not None and isinstance(prompt, list) and len(prompt) >= self.room:
            return f"the prompt takes {len(prompt)} tokens, the model {self.room}; nothing is left for an answer"
        return [Call(COMPLETIONS, {**body, "prompt": prompt}, self.n_tokens(request.prompt), request.max_tokens)]

    def read(self, request: GenerateRequest, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Read the generated text and the token counts from the reply.

        Raises:
            AnswerError: the reply holds no text.
            RefusalError: the endpoint declined to answer.
        """
        (choice,) = choices(replies[0], 1)
        check_refusal(choice)
        message = choice.get("message")
        text = choice.get("text") if self.api == "completions" else None
        if self.api == "chat" and isinstance(message, Mapping):
            text = message.get("content")
        finish = choice.get("finish_reason")
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
        )
