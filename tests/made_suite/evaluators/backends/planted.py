"""A model that knows a chosen share of the labels, writes down what it is asked, and can be made to die or to fail."""

import math
import os
import signal
from pathlib import Path

from evaluators.backend import (
    Backend,
    Identified,
    Response,
    Runtime,
    TokenCount,
    ask_in_batches,
    identified_model,
    model_identity,
)

SUMMARY = "a model that knows a share of the labels"
EXTRA = None
MODELS = ()
IDENTIFIED = Identified("local", frozenset({"model"}))
_BATCH = 25


class PlantedBackend(Backend):
    """A backend whose model is right with a chosen probability, by the hash of the request."""

    runtime = Runtime()
    capabilities = frozenset({"option_logprobs"})
    n_answered = 0

    def __init__(self, model):
        """Open a model by its name, such as ``lab/first-0.8``, which is right in four of five answers."""
        self.share, self.arguments = float(model.rpartition("-")[2]), (f"--model {model}",)
        self.model = identified_model(model, {"backend": "planted", "model": f"{model}@1"}, revision="1")

    def ask(self, requests, missing):
        """Answer batch by batch."""
        batches = [range(start, min(start + _BATCH, len(requests))) for start in range(0, len(requests), _BATCH)]
        return ask_in_batches(batches, self.answer, requests, missing)

    def count_tokens(self, requests):
        """Return one token per word."""
        return TokenCount(sum(len(request.prompt.split()) for request in requests), 0)

    def answer(self, requests):
        """Return the response to each request, unless this is the time to die."""
        if self.n_answered >= int(os.environ.get("PLANTED_DIES_AT", "1000000000")):
            os.kill(os.getpid(), signal.SIGKILL)
        self.n_answered += len(requests)
        if log := os.environ.get("PLANTED_LOG"):
            with Path(log).open("a", encoding="utf-8") as file:
                file.writelines(f"{request.sha256}\n" for request in requests)
        return [self._label(request) for request in requests]

    def _label(self, request):
        failing = os.environ.get("PLANTED_FAILS")
        if failing is not None and failing in request.prompt:
            return Response(status="failed", error="planted")
        said = request.prompt.removesuffix("\nLabel:").split()[-1]
        drawn = int(model_identity({"model": self.model.id, "request": request.sha256})[:8], 16) / 0x100000000
        place = request.outcomes.index(said) if said in request.outcomes else 0
        if drawn >= self.share:
            place = (place + 1) % len(request.options)
        odds = [8.0 if index == place else 1.0 for index in range(len(request.options))]
        return Response(
            status="answered",
            option_logprobs=tuple(math.log(value / sum(odds)) for value in odds),
            option_end_logprobs=(0.0,) * len(odds),
            option_token_counts=(1,) * len(odds),
            n_moved_tokens=0,
            n_prompt_tokens=len(request.prompt.split()),
            n_completion_tokens=0,
        )


def open_backend(model, options):
    """Open a model by its name."""
    return PlantedBackend(model)
