"""The backend that asks a baseline as if it were a model, so that it has a run and a row of its own on the board.

The rules themselves are in ``tasks/FAMILY``; their interface is ``evaluators/baseline.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from biasboard.ground.errors import ConfigError
from evaluators.backend import (
    Backend,
    Capability,
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
from evaluators.baseline import Baseline
from evaluators.benchmark import benchmarks
from schemas.documents.result import Model

SUMMARY = "predictors without a model, which each benchmark lists; --model all scores all of the dataset's benchmark"
EXTRA = None
IDENTIFIED = Identified("baseline", frozenset({"kind", "version"}))
_VERSION = "1"
_BATCH_SIZE = 4096


@dataclass(frozen=True)
class BaselineBackend(Backend):
    """A backend that answers by the rule of a baseline."""

    baseline: Baseline
    model: Model
    arguments: tuple[str, ...] = ()
    runtime: Runtime = field(default_factory=Runtime)
    reads_facts: bool = True

    @property
    @override
    def capabilities(self) -> frozenset[Capability]:
        # A rule can be applied to the items of published answers, whose model cannot be asked again.
        writes = "generation" in self.baseline.capabilities
        return self.baseline.capabilities | ({"import"} if writes else set())

    @property
    @override
    def needed_facts(self) -> frozenset[str]:
        return self.baseline.facts

    @override
    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        # A rule needs no batches; they let progress be shown and stored.
        every = range(len(requests))
        batches = [every[start : start + _BATCH_SIZE] for start in every[::_BATCH_SIZE]]
        together = self.baseline.answer_together
        try:
            answers = self.baseline.answers({request.sha256: request for request in requests} if together else {})

            def answer(batch: Sequence[Request]) -> list[Response]:
                return [answers[one.sha256] if together else self.baseline.answer(one) for one in batch]

            yield from ask_in_batches(batches, answer, requests, missing)
        except KeyError as error:
            raise ConfigError(
                f"{self.model.id} reads {error} which a request lacks; declare it in its facts"
            ) from error

    @override
    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        return TokenCount(0, 0)


def open_backend(model: str, options: BackendOptions) -> BaselineBackend:
    """Open a baseline by name.

    Raises:
        ConfigError: no benchmark has such a baseline, or an option is set.
    """
    options.refuse_others("baseline")
    name = model.removeprefix("baseline/")
    of_name = (benchmark.baseline(name) for benchmark in benchmarks())
    baseline = next((baseline for baseline in of_name if baseline is not None), None)
    if baseline is None:
        have = dict.fromkeys(baseline.name for benchmark in benchmarks() for baseline in benchmark.baselines)
        raise ConfigError(f"baseline '{model}' does not exist; have: {', '.join(have)}, all")
    identity = {"backend": "baseline", "kind": name, "version": _VERSION}
    return BaselineBackend(
        baseline=baseline,
        arguments=(f"--model {name}",),
        model=identified_model(f"baseline/{name}", identity, endpoint="baseline", revision=_VERSION),
    )
