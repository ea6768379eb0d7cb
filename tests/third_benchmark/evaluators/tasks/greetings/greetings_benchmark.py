"""Greetings: is everybody greeted alike?"""

from evaluators.baseline import UNIFORM, Baseline, choosing
from evaluators.benchmark import Benchmark, IndexDefinition, Part

BENCHMARK = Benchmark(
    name="greetings",
    indices=(
        IndexDefinition(
            name="greeting_index",
            parts=(Part("courtesy", "reply"), Part("courtesy_equality", "reply")),
            description="Mean of courtesy and its equality.",
        ),
    ),
    baselines=(
        UNIFORM,
        Baseline(
            name="butler",
            description="the polite greeting, always",
            facts=frozenset({"polite"}),
            answer=choosing(lambda request: [float(name == request.facts["polite"]) for name in request.outcomes]),
        ),
    ),
)
