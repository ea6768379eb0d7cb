"""What is sent for a request of either kind, and the response that the answers make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.backends.openai.client import Call, RejectedError
from evaluators.backends.openai.generation import Generation
from evaluators.backends.openai.reading import AnswerError, RefusalError, total_usage
from evaluators.backends.openai.scoring import Way
from schemas.errors import RunError

_FILTERED = ("content_filter", "content_policy_violation")


@dataclass(frozen=True)
class Ways:
    """How an endpoint is asked."""

    choice: Way | None
    """None for an endpoint that returns no log-probabilities."""
    generation: Generation

    def calls(self, request: Request) -> list[Call] | str:
        """What to send, or why the request cannot be asked."""
        if not isinstance(request, ChoiceRequest):
            return self.generation.calls(request)
        if self.choice is None:
            return "the endpoint returns no log-probabilities; use a prompt that is answered in text"
        return self.choice.calls(request)

    def response(self, request: Request, replies: Sequence[Mapping[str, Any]]) -> Response:
        """From the answers to all calls of a request, in their order."""
        n_prompt, n_completion = total_usage(replies)
        try:
            if isinstance(request, ChoiceRequest):
                assert self.choice is not None
                return self.choice.read(request, replies)
            return self.generation.read(request, replies)
        except AnswerError as error:
            return failed(str(error))
        except RefusalError as error:
            return Response(
                status="refused",
                error=error.reason,
                finish_reason=error.finish_reason,
                n_prompt_tokens=n_prompt,
                n_completion_tokens=n_completion,
            )


def failed(reason: str) -> Response:
    """The response to a request that has no answer."""
    return Response(status="failed", error=reason)


def rejected(error: RejectedError) -> Response:
    """The response to a request that the endpoint will not take.

    Raises:
        RunError: it would take no other request either.
    """
    if error.remedy is not None:
        raise RunError(f"{error.reason}; {error.remedy}. Answers are kept: run the same command again after that")
    if error.code in _FILTERED:
        return Response(status="refused", error=error.reason, finish_reason="content_filter")
    return failed(error.reason)
