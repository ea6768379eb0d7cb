"""Turns requests of either kind into calls, and the replies to these into a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biasboard.ground.errors import RunError
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.backends.openai.client import Call, RejectedError
from evaluators.backends.openai.generation import Generation
from evaluators.backends.openai.reading import AnswerError, RefusalError, total_usage
from evaluators.backends.openai.scoring import Way

_FILTERED = ("content_filter", "content_policy_violation")


@dataclass(frozen=True)
class Ways:
    """The methods by which an endpoint is asked for choices and for texts."""

    choice: Way | None
    """Method for option log-probabilities; None if the endpoint returns none."""
    generation: Generation

    def calls(self, request: Request) -> list[Call] | str:
        """Return the calls to send, or why the request cannot be asked."""
        if not isinstance(request, ChoiceRequest):
            return self.generation.calls(request)
        if self.choice is None:
            return "the endpoint returns no log-probabilities; use a prompt that is answered in text"
        return self.choice.calls(request)

    def response(self, request: Request, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Build the response to a request from the replies to all its calls, in the order of the calls."""
        n_prompt, n_completion = total_usage(replies)
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
