"""Predictors without a model, to compare scores with: several of them reach the best UCerF and yet are useless."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluators.backend import (
    Capability,
    ChoiceRequest,
    Events,
    Request,
    Response,
    Runtime,
    TokenCount,
    ask_in_batches,
    model_identity,
)
from evaluators.backend_options import BackendOptions
from schemas.errors import ConfigError
from schemas.result import Model

SUMMARY = "predictors without a model: uniform, positional, stereotypical, always wrong; --model all scores all of them"
MODELS = (
    "uniform",
    "first-mentioned",
    "last-mentioned",
    "stereotype",
    "stereotype-0.7",
    "stereotype-0.55",
    "always-wrong",
)
_VERSION = "1"
_SOFT_STEREOTYPE = re.compile(r"stereotype-(0\.\d+)")
_BATCH = 4096


@dataclass(frozen=True)
class Baseline:
    """A predictor that answers from the facts of an item, without a model."""

    kind: str
    probability: float
    """Probability of the outcome that the baseline prefers."""
    fact: str | None
    """Name of the fact that the preferred outcome is read from; None if the baseline prefers none."""
    model: Model
    arguments: tuple[str, ...] = ()
    runtime: Runtime = field(default_factory=Runtime)
    capabilities: frozenset[Capability] = frozenset({"option_logprobs"})
    reads_facts: bool = True

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Yield the log-probabilities that the baseline assigns, in batches so that progress is shown and stored."""
        batches = [range(start, min(start + _BATCH, len(requests))) for start in range(0, len(requests), _BATCH)]
        return ask_in_batches(batches, lambda batch: [self._answer(request) for request in batch], requests, missing)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Return zero tokens, since there is no model."""
        return TokenCount(0, 0)

    def _answer(self, request: Request) -> Response:
        if not isinstance(request, ChoiceRequest):
            return Response(status="failed", error="a baseline chooses among options and writes no text")
        preferred = self._preferred(request)
        if preferred is None:
            probabilities = [1 / len(request.options)] * len(request.options)
        else:
            # The rest goes to the other occupation; the option "undetermined" gets nothing.
            rest = request.facts[
                "last_mentioned" if preferred == request.facts["first_mentioned"] else "first_mentioned"
            ]
            share = {preferred: self.probability, rest: 1 - self.probability}
            probabilities = [share.get(outcome, 0.0) for outcome in request.outcomes]
        n = len(request.options)
        return Response(
            status="answered",
            option_logprobs=tuple(math.log(value) if value > 0 else -math.inf for value in probabilities),
            option_end_logprobs=(0.0,) * n,
            option_token_counts=(1,) * n,
            n_moved_tokens=0,
        )

    def _preferred(self, request: ChoiceRequest) -> str | None:
        """Return the outcome that the baseline prefers; None if it prefers none.

        The baseline ``always-wrong`` prefers none if the item has no referent, since then no answer is wrong.
        """
        if self.fact is None:
            return None
        if self.kind != "always-wrong":
            return request.facts[self.fact]
        if "referent" not in request.facts:
            return None
        first, last = request.facts["first_mentioned"], request.facts["last_mentioned"]
        return last if request.facts["referent"] == first else first


def open_backend(model: str, options: BackendOptions) -> Baseline:
    """Open a baseline by its name; ``stereotype-P`` takes any probability P between 0.5 and 1.

    Raises:
        ConfigError: there is no such baseline, or an option is set.
    """
    options.refuse_others("baseline")
    kind = model.removeprefix("baseline/")
    soft = _SOFT_STEREOTYPE.fullmatch(kind)
    if kind not in MODELS and (soft is None or not 0.5 < float(soft[1]) < 1):
        raise ConfigError(f"baseline '{model}' does not exist; have: {', '.join(MODELS)}, all")
    facts = {
        "uniform": None,
        "first-mentioned": "first_mentioned",
        "last-mentioned": "last_mentioned",
        "always-wrong": "referent",
    }
    return Baseline(
        kind=kind,
        probability=float(soft[1]) if soft else 1.0,
        fact=facts.get(kind, "stereotyped"),
        arguments=(f"--model {kind}",),
        model=Model(
            id=f"baseline/{kind}",
            revision=_VERSION,
            backend="baseline",
            precision=None,
            chat_template_sha256=None,
            endpoint="baseline",
            identity_sha256=model_identity({"backend": "baseline", "kind": kind, "version": _VERSION}),
        ),
    )
