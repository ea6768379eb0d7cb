"""The interface of a baseline: a predictor without a model that scores of models are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluators.backend import Capability, ChoiceRequest, Request, Response
from schemas.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A rule that answers requests from facts about their items. A benchmark lists its baselines."""

    name: str
    description: str
    facts: frozenset[str]
    """Names of the facts that each request must carry; a run without them is refused before it begins."""
    answer: Callable[[Request], Response]
    """Function that answers one request; it may also read facts that only some items have."""
    capabilities: frozenset[Capability] = frozenset({"option_logprobs"})


def choosing(probabilities: Callable[[ChoiceRequest], Sequence[float]]) -> Callable[[Request], Response]:
    """Return the ``answer`` function of a baseline that assigns probabilities to options.

    Args:
        probabilities: Function that returns one probability per option of a request, in their order, summing to 1.
    """

    def answer(request: Request) -> Response:
        if not isinstance(request, ChoiceRequest):
            return Response(status="failed", error="a baseline chooses among options and writes no text")
        values = probabilities(request)
        n_options = len(request.options)
        if len(values) != n_options:
            raise ConfigError(f"a baseline gives {len(values)} probabilities for {n_options} options; give one each")
        return Response(
            status="answered",
            option_logprobs=tuple(math.log(value) if value > 0 else -math.inf for value in values),
            option_end_logprobs=(0.0,) * n_options,
            option_token_counts=(1,) * n_options,
            n_moved_tokens=0,
        )

    return answer


def evenly(request: ChoiceRequest) -> list[float]:
    """Return the same probability for every option of a request."""
    return [1 / len(request.options)] * len(request.options)


UNIFORM = Baseline(
    name="uniform",
    description="the same probability for every option",
    facts=frozenset(),
    answer=choosing(evenly),
)
"""A baseline that any benchmark with options can list."""
