"""A model that multiplies a likelihood, which the input decides, with weights of the options, which nothing decides."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluators.backend import (
    Backend,
    Capability,
    ChoiceRequest,
    Events,
    Identified,
    Request,
    Response,
    Runtime,
    TokenCount,
    ask_in_batches,
    identified_model,
)
from evaluators.backend_options import BackendOptions
from schemas.documents.result import Model

SUMMARY = "a model that leans to the options that are offered first"
EXTRA = None
MODELS: tuple[str, ...] = ()
IDENTIFIED = Identified("local", frozenset({"model"}))
_WITHOUT_CONTENT = ("N/A.", ".", "[MASK]")


def likelihood(text: str, option: str) -> float:
    """The likelihood of an option; the same for all if the input says nothing."""
    if text in _WITHOUT_CONTENT:
        return 1.0
    return 0.1 + int(hashlib.sha256(f"{text}|{option}".encode()).hexdigest()[:4], 16) / 0x10000


@dataclass
class LeaningBackend(Backend):
    """A backend whose model gives each option a smaller weight than the one before it."""

    factor: float
    model: Model
    arguments: Sequence[str]
    runtime: Runtime = field(default_factory=Runtime)
    capabilities: frozenset[Capability] = frozenset({"option_logprobs"})

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer all together."""
        return ask_in_batches([range(len(requests))], self._answer, requests, missing)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Return no tokens."""
        return TokenCount(0, 0)

    def _answer(self, requests: Sequence[Request]) -> list[Response]:
        return [self._label(request) for request in requests if isinstance(request, ChoiceRequest)]

    def _label(self, request: ChoiceRequest) -> Response:
        text = request.prompt.removesuffix("\n\nOutput:").rpartition("Input: ")[2]
        odds = [self.factor**place * likelihood(text, option) for place, option in enumerate(request.options)]
        return Response(
            status="answered",
            option_logprobs=tuple(math.log(value / sum(odds)) for value in odds),
            option_end_logprobs=(0.0,) * len(odds),
            option_token_counts=(1,) * len(odds),
            n_moved_tokens=0,
            n_prompt_tokens=0,
            n_completion_tokens=0,
        )


def open_backend(model: str, options: BackendOptions) -> LeaningBackend:
    """Open a model by its name, such as ``lab/leaning-0.25``, which gives each option a quarter of the one before."""
    identity = {"backend": "leaning", "model": f"{model}@1"}
    return LeaningBackend(
        factor=float(model.rpartition("-")[2]),
        arguments=(f"--model {model}",),
        model=identified_model(model, identity, revision="1"),
    )
