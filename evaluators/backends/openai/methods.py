"""The methods that work at one endpoint: how texts are generated, and how options are scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.backends.openai.generation import Generation
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.protocol import Call, total_usage
from evaluators.backends.openai.scoring import FirstTokens, ScoringMethod

_CONDITIONS = ("temperature", "top_p")
"""Parameters whose absence leaves it to the provider how answers are drawn."""


@dataclass(frozen=True)
class Methods:
    """The methods that work at a probed endpoint, or may work at one that is not probed yet."""

    choice: ScoringMethod | None
    """Method for option log-probabilities; None if the endpoint returns none."""
    generation: Generation
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons why better methods are not used, by the name of the method."""
    without_secrets: Callable[[str], str] = str
    """Function that takes the endpoint's secrets out of what it says."""

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
        return self.choice.top if isinstance(self.choice, FirstTokens) else 0

    @property
    def conditions(self) -> dict[str, str]:
        """What answers depend on beside the model and the prompt, by name; empty for an endpoint that takes all."""
        dialect = self.generation.dialect
        refused = {name: "the provider's" for name in _CONDITIONS if name in dialect.left_out}
        n_thinking = min(dialect.thinking_tokens, dialect.most_tokens or dialect.thinking_tokens)
        return refused | ({"thinking_tokens": str(n_thinking)} if n_thinking else {})

    @property
    def settings(self) -> dict[str, str]:
        """The methods as they are recorded in a result."""
        return {
            "api": self.api,
            "option_scoring": self.option_scoring or "none",
            "prompts_per_call": "many" if self.choice and self.choice.lists else "one",
            **self.conditions,
            **({"top_logprobs": str(self.top_logprobs)} if self.top_logprobs else {}),
            **self.generation.dialect.settings,
            **{f"not_{name}": reason for name, reason in self.reasons.items()},
        }

    def calls(self, request: Request) -> list[Call]:
        """Return the calls to send.

        Raises:
            NoAnswerError: the request cannot be asked.
        """
        if not isinstance(request, ChoiceRequest):
            return self.generation.calls(request)
        if self.choice is None:
            raise NoAnswerError("the endpoint returns no log-probabilities; use a prompt that is answered in text")
        return self.choice.calls(request)

    def response(self, request: Request, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Build the response to a request from the replies to all its calls, in the order of the calls."""
        try:
            if isinstance(request, ChoiceRequest):
                assert self.choice is not None
                return self.choice.read(request, replies)
            return self.generation.read(request, replies)
        except NoAnswerError as error:
            error.reason = self.without_secrets(error.reason)
            return response_of(error, replies)


def response_of(error: NoAnswerError, replies: Sequence[Mapping[str, Any]] = ()) -> Response:
    """Return the response to a request without an answer: refused by the model or a filter, or failed."""
    n_prompt, n_completion = total_usage(replies)
    return Response(
        status="refused" if error.means == "refused" else "failed",
        error=error.reason,
        finish_reason=error.finish_reason,
        n_prompt_tokens=n_prompt,
        n_completion_tokens=n_completion,
    )
