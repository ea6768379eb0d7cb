"""The interface of a baseline: a rule that answers requests without a model, with which models are compared.

Each family of tasks has its rules in ``tasks/FAMILY`` and lists them in its benchmarks. They are used in two ways: by
the backend ``baseline``, as if they were models, and by ``runs/measure/baseline_gate.py``, which has them answer the
items of a result from its records.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from biasboard.ground.errors import ConfigError
from evaluators.backend import Capability, ChoiceRequest, GenerateRequest, Request, Response

CHOOSING: frozenset[Capability] = frozenset({"option_logprobs", "image_option_logprobs", "pseudo_logprobs"})
"""Abilities of a baseline that only chooses among options; it reads neither texts nor images."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A rule that answers requests from facts about their items. A benchmark lists its baselines."""

    name: str
    description: str
    facts: frozenset[str]
    """Names of the facts that each request must carry; a run without them is refused before it begins."""
    answer: Callable[[Request], Response]
    """Function that answers one request."""
    optional_facts: frozenset[str] = frozenset()
    """Names of facts that it reads too where items have them. A rule that reads no prompt is given no other facts."""
    capabilities: frozenset[Capability] = frozenset({*CHOOSING, "generation"})
    reads_no_prompt: bool = False
    """True if the answer to a choice depends only on its options, outcomes and facts, never on its prompt, so that
    choices that agree in these need only one answer."""
    answer_together: Callable[[Mapping[str, Request]], Mapping[str, Response]] | None = None
    """Function that answers all requests of a run together, by their hashes; None if ``answer`` answers each."""

    def answers(self, requests: Mapping[str, Request]) -> Mapping[str, Response]:
        """Answer all requests of a run, by their hashes."""
        if self.answer_together is not None:
            return self.answer_together(requests)
        return {sha256: self.answer(request) for sha256, request in requests.items()}


class Facts(Protocol):
    """The facts about an item that its record keeps."""

    @property
    def cluster(self) -> str:
        """The items that are resampled together."""

    @property
    def target(self) -> str | None:
        """The right answer; None if the item has none."""

    @property
    def reference(self) -> str | None:
        """The outcome from which desirability is measured; None if the task has none."""

    @property
    def groups(self) -> Mapping[str, str]:
        """The groups of the item."""


def choosing(probabilities: Callable[[ChoiceRequest], Sequence[float]]) -> Callable[[Request], Response]:
    """Return the ``answer`` function of a baseline that assigns probabilities to options.

    A request for a text is answered with the name of the most probable outcome, or of one drawn by the probabilities if
    it samples; the request's seed draws, and breaks ties. If the prompt asks for a confidence, the probability follows.

    Args:
        probabilities: Function that returns one probability per option of a request, in their order, summing to 1.
    """

    def answer(request: Request) -> Response:
        if isinstance(request, GenerateRequest):
            return _named(request, probabilities)
        values = probabilities(request)
        n_options = len(request.options)
        if len(values) != n_options:
            raise ConfigError(f"a baseline gives {len(values)} probabilities for {n_options} options; give one each")
        # One token and a certain end, so that every normalisation gives the plain sum.
        return Response(
            status="answered",
            option_logprobs=tuple(math.log(value) if value > 0 else -math.inf for value in values),
            option_end_logprobs=(0.0,) * n_options,
            option_token_counts=(1,) * n_options,
            n_moved_tokens=0,
        )

    return answer


def _named(request: GenerateRequest, probabilities: Callable[[ChoiceRequest], Sequence[float]]) -> Response:
    outcomes = request.outcomes
    if not outcomes:
        return Response(status="failed", error="a baseline that chooses among options writes no other text")
    choice = ChoiceRequest(prompt=request.prompt, options=outcomes, outcomes=outcomes, facts=request.facts)
    values = probabilities(choice)
    if request.temperature > 0:
        (chosen,) = random.Random(request.sampling_seed).choices(range(len(outcomes)), values)
    else:
        best = [index for index, value in enumerate(values) if value == max(values)]
        chosen = best[request.sampling_seed % len(best)]
    text = f"{outcomes[chosen]}, {100 * values[chosen]:g} %" if request.asks_confidence else outcomes[chosen]
    if not request.with_logprob:
        return Response(status="answered", text=text, finish_reason="stop")
    # As for options: one token, which ends the text.
    logprob = math.log(values[chosen])
    return Response(status="answered", text=text, finish_reason="stop", n_completion_tokens=1, text_logprob=logprob)


def evenly(request: ChoiceRequest) -> list[float]:
    """Return the same probability for every option of a request."""
    return [1 / len(request.options)] * len(request.options)


UNIFORM = Baseline(
    name="uniform",
    description="a coin: the same probability for every option",
    facts=frozenset(),
    answer=choosing(evenly),
    reads_no_prompt=True,
)
"""A baseline that any benchmark with options can list."""
