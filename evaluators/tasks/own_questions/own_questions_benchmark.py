"""The benchmark of questions with options of their own: a researcher's, or those of a published file."""

from __future__ import annotations

from evaluators.backend import ChoiceRequest
from evaluators.baseline import UNIFORM, Baseline, choosing, evenly
from evaluators.benchmark import Benchmark, Gate, RankingMetric


def _taking(role: str) -> Baseline:
    def probabilities(request: ChoiceRequest) -> list[float]:
        chosen = request.facts.get(role)
        if chosen is None:
            return evenly(request)
        return [float(outcome == chosen) for outcome in request.outcomes]

    return Baseline(
        name={"first": "first-listed"}.get(role, role),
        description={
            "first": "the option that the data list first",
            "stereotyped": "the stereotyped option; the same probability for every option where there is none",
            "neutral": "the option that the answer is unknown; the same probability for every option where there is "
            "none",
        }[role],
        facts=frozenset(),
        answer=choosing(probabilities),
        optional_facts=frozenset({role}),
        reads_no_prompt=True,
    )


BENCHMARK = Benchmark(
    name="own_questions",
    primary_metric="accuracy",
    other_rankings=(RankingMetric("worst_group_accuracy"),),
    unranked_order="stereotype_rate",
    gates=(Gate("accuracy", "own_question"),),
    baselines=(UNIFORM, _taking("first"), _taking("stereotyped"), _taking("neutral")),
    headline_metrics=("accuracy", "worst_group_accuracy", "accuracy_gap", "stereotype_rate", "bbq_score"),
    printed_groups=frozenset({"category", "group"}),
)
