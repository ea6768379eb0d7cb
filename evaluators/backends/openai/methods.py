"""The methods by which an endpoint is asked for choices and for texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biasboard.ground.errors import RunError
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.backends.openai.client import Call, RejectedError
from evaluators.backends.openai.generation import Generation
from evaluators.backends.openai.reading import AnswerError, RefusalError, total_usage
from evaluators.backends.openai.scoring import FirstToken, ScoringMethod

_FILTERED = ("content_filter", "content_policy_violation")


@dataclass(frozen=True)
class Methods:
    """The methods that work at an endpoint, as it was probed, or that may work before it is."""

    choice: ScoringMethod | None
    """Method for option log-probabilities; None if the endpoint returns none."""
    generation: Generation
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons why better methods are not used, by the name of the method."""

    @property
    def api(self) -> str:
        """The interface that all requests go to: ``chat`` or ``completions``."""
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
        if self.generation.unknown:
            settings["parameters_left_out"] = ", ".join(sorted(self.generation.unknown))
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
