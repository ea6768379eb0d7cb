"""Labels: a suite of made-up classification tasks."""

from __future__ import annotations

from evaluators.backend import ChoiceRequest
from evaluators.baseline import UNIFORM, Baseline, choosing
from evaluators.benchmark import Benchmark, Gate, IndexDefinition, Part


def _drawn(request: ChoiceRequest) -> list[float]:
    """Return odds that only the text of the request decides."""
    odds = [1 + int(request.sha256[2 * place : 2 * place + 2], 16) for place in range(len(request.options))]
    return [value / sum(odds) for value in odds]


BENCHMARK = Benchmark(
    name="labels",
    primary_metric="accuracy",
    indices=(
        IndexDefinition(
            name="accuracy_shown",
            parts=tuple(Part("accuracy", "labelling", prompt=name) for name in ("shown-v1", "shown-other-v1")),
            description="Mean accuracy over two sets of examples.",
            paired=True,
        ),
    ),
    gates=(Gate("accuracy", "labelling"),),
    baselines=(
        UNIFORM,
        Baseline(name="drawn", description="labels drawn by chance", facts=frozenset(), answer=choosing(_drawn)),
    ),
)
