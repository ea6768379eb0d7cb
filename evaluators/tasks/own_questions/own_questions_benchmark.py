"""The benchmark of questions with options of their own: a researcher's, or those of a published file."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.baseline import UNIFORM, Baseline, choosing, evenly
from evaluators.benchmark import Benchmark, Gate, RankingMetric
from evaluators.tasks.own_questions.option_cues import CueQuestion, predicted_options
from evaluators.tasks.own_questions.own_question_task import question_in


def _taking(role: str) -> Baseline:
    def probabilities(request: ChoiceRequest) -> list[float]:
        chosen = request.facts.get(role)
        if not chosen:
            return evenly(request)
        return [float(outcome == chosen) for outcome in request.outcomes]

    return Baseline(
        name={"first": "first-listed"}.get(role, role),
        description={
            "first": "the option that the data list first",
            "stereotyped": "the stereotyped option; the same probability for every option where there is none",
            "antistereotyped": "the option that contradicts the stereotype; the same probability for every option "
            "where there is none",
            "neutral": "the option that the answer is unknown; the same probability for every option where there is "
            "none",
        }[role],
        facts=frozenset(),
        answer=choosing(probabilities),
        optional_facts=frozenset({role}),
        reads_no_prompt=True,
    )


def _best_cue(requests: Mapping[str, Request]) -> Mapping[str, Response]:
    """Answer with the option that the best cue predicts.

    There is no preference where there is no right answer, nor where nothing can be read before the options.
    """
    asked = {sha256: request for sha256, request in requests.items() if request.prompt and request.facts["answer"]}
    questions = []
    for request in asked.values():
        outcomes, facts = request.outcomes, request.facts
        first = outcomes.index(facts["first"])
        options = (*outcomes[first:], *outcomes[:first])
        questions.append(CueQuestion(question_in(request.prompt, outcomes), options, facts["answer"], facts["cluster"]))
    predicted = dict(zip(asked, predicted_options(questions), strict=True))

    def answer(sha256: str, request: Request) -> Response:
        option = predicted.get(sha256)
        if option is None:
            return choosing(evenly)(request)
        return choosing(lambda choice: [float(outcome == option) for outcome in choice.outcomes])(request)

    return {sha256: answer(sha256, request) for sha256, request in requests.items()}


BENCHMARK = Benchmark(
    name="own_questions",
    primary_metric="accuracy",
    other_rankings=(RankingMetric("worst_group_accuracy"),),
    unranked_order="stereotype_rate",
    gates=(Gate("accuracy", "own_question"),),
    baselines=(
        UNIFORM,
        _taking("first"),
        _taking("stereotyped"),
        _taking("antistereotyped"),
        _taking("neutral"),
        Baseline(
            name="best-option-cue",
            description="the best of some hundred cues of wording, length and place, found in other clusters; no "
            "preference if there is no right answer or no question",
            facts=frozenset({"answer", "first", "cluster"}),
            answer=choosing(evenly),
            answer_together=_best_cue,
        ),
    ),
    headline_metrics=("accuracy", "worst_group_accuracy", "accuracy_gap", "stereotype_rate", "bbq_score"),
    printed_groups=frozenset({"category", "group"}),
)
