"""Asking an endpoint to go on from a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.backend import GenerateRequest, Response
from evaluators.backends.openai.client import Call
from evaluators.backends.openai.reading import AnswerError, check_refusal, choices, total_usage
from evaluators.backends.openai.scoring import CHAT, COMPLETIONS
from evaluators.models.tokenizer import ModelTokenizer

# vLLM's server otherwise samples with what the model's own generation config says.
VLLM_SAMPLING: Mapping[str, Any] = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


@dataclass(frozen=True)
class Generation:
    """How texts are asked for."""

    model: str
    api: str
    """``chat`` or ``completions``."""
    max_tokens: str
    """What the endpoint calls the most tokens of an answer."""
    unknown: frozenset[str]
    """Parameters that the endpoint refuses, of those that may be left out."""
    extra: Mapping[str, Any]
    tokenizer: ModelTokenizer | None
    """What prompts of completions are tokenised with; the endpoint does it if None."""
    n_tokens: Callable[[str], int | None]

    def calls(self, request: GenerateRequest) -> list[Call] | str:
        """One call."""
        body: dict[str, Any] = {
            "model": self.model,
            self.max_tokens: request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.sampling_seed,
            **self.extra,
        }
        if request.stop:
            body["stop"] = list(request.stop)
        for name in self.unknown:
            # Left out only where that changes nothing: a seed that is not taken, a top_p of 1.
            if name != "top_p" or request.top_p == 1.0:
                del body[name]
        if self.api == "chat":
            body["messages"] = [{"role": "user", "content": request.prompt}]
            return [Call(CHAT, body, self.n_tokens(request.prompt), request.max_tokens)]
        prompt: Any = request.prompt if self.tokenizer is None else self.tokenizer.context_ids(request.prompt)
        if not prompt:
            return "the prompt is empty, and the tokenizer puts nothing before it"
        return [Call(COMPLETIONS, {**body, "prompt": prompt}, self.n_tokens(request.prompt), request.max_tokens)]

    def read(self, request: GenerateRequest, replies: Sequence[Mapping[str, Any]]) -> Response:
        """The text.

        Raises:
            AnswerError: there is none.
            RefusalError: the endpoint declines.
        """
        (choice,) = choices(replies[0], 1)
        check_refusal(choice)
        message = choice.get("message")
        text = choice.get("text") if self.api == "completions" else None
        if self.api == "chat" and isinstance(message, Mapping):
            text = message.get("content")
        finish = choice.get("finish_reason")
        if not isinstance(text, str):
            raise AnswerError(f"the answer holds no text (finish_reason {finish!r})")
        if not text and finish == "length":
            raise AnswerError(f"all {request.max_tokens} tokens went by without a visible one; allow more tokens")
        n_prompt, n_completion = total_usage(replies)
        return Response(
            status="answered",
            text=text,
            finish_reason=finish if isinstance(finish, str) else None,
            n_prompt_tokens=n_prompt,
            n_completion_tokens=n_completion,
        )
