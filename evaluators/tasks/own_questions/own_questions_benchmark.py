"""The benchmark of questions with options of their own: a researcher's, or those of a published file.

One of its baselines predicts the right option without understanding anything: by the best cue of wording, length and
place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.memory import machine_memory
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.baseline import UNIFORM, Baseline, choosing, evenly
from evaluators.benchmark import Benchmark, Gate, RankingMetric
from evaluators.tasks.own_questions.own_question_task import question_in
from evaluators.tasks.own_questions.published_answers import AnswersInText, SentenceScores
from schemas.lexicon.coreference_cues import predict_by_cues

_MEMORY = "best cue of options"
_WORD = re.compile(r"\w+(?:['-]\w+)*|[^\w\s]")
_MOST = 12_000
"""Maximum number of questions: so many take 1 GB, since each is compared with 2,000 others."""


class CueQuestion(NamedTuple):
    """A question with a right answer."""

    text: str
    options: tuple[str, ...]
    answer: str
    cluster: str


def predicted_options(questions: Sequence[CueQuestion]) -> list[str | None]:
    """Return the option of each question that the best cue predicts, found in other clusters.

    None where there are no other clusters to learn from, and for all if there are more questions than can be searched.
    """
    distinct = tuple(sorted(set(questions)))
    if not distinct or len(distinct) > _MOST:
        return [None] * len(questions)
    places = dict(zip(distinct, _predicted_places(distinct), strict=True))
    return [
        question.options[places[question]] if 0 <= places[question] < len(question.options) else None
        for question in questions
    ]


# Each prompt of a dataset asks about the same questions.
@lru_cache(maxsize=8)
def _predicted_places(questions: tuple[CueQuestion, ...]) -> list[int]:
    """Return the predicted place of the right option of each question; -1 for none."""
    memory, parts = machine_memory(), {"questions": hashlib.sha256(repr(questions).encode()).hexdigest()}
    known = memory.get(_MEMORY, parts)
    if not isinstance(known, list):
        words = [
            (
                *_WORD.findall(question.text.casefold()),
                *(
                    f"{word} in option {place}"
                    for place, option in enumerate(question.options, start=1)
                    for word in _WORD.findall(option.casefold())
                ),
            )
            for question in questions
        ]
        places = np.array([question.options.index(question.answer) for question in questions])
        factors = [question.cluster for question in questions], [question.text for question in questions]
        known = predict_by_cues(words, _numbers(questions), places, factors).answers.tolist()
        memory.put(_MEMORY, parts, known)
    return cast(list[int], known)


def _numbers(questions: Sequence[CueQuestion]) -> Mapping[str, FloatArray]:
    """Return the places of the longest and shortest option, and of those mentioned first and last; lengths too."""
    lengths = [[len(option) for option in question.options] for question in questions]
    mentions = [
        [question.text.casefold().rfind(option.casefold()) for option in question.options] for question in questions
    ]
    columns = {
        "place of the longest option": [of_all.index(max(of_all)) for of_all in lengths],
        "place of the shortest option": [of_all.index(min(of_all)) for of_all in lengths],
        "place of the option mentioned last": [of_all.index(max(of_all)) for of_all in mentions],
        "place of the option mentioned first or not at all": [of_all.index(min(of_all)) for of_all in mentions],
        "characters of the text": [len(question.text) for question in questions],
    }
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}


def _taking(role: str, option: str) -> Baseline:
    return Baseline(
        name={"first": "first-listed"}.get(role, role),
        description=f"{option}; the same probability for every option where there is none"
        if role != "first"
        else option,
        facts=frozenset(),
        answer=choosing(lambda request: _preferring(request.facts.get(role))(request)),
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
    return {sha256: choosing(_preferring(predicted.get(sha256)))(request) for sha256, request in requests.items()}


def _preferring(option: str | None) -> Callable[[ChoiceRequest], Sequence[float]]:
    if not option:
        return evenly
    return lambda request: [float(outcome == option) for outcome in request.outcomes]


_DIFFERENCES = ("accuracy_ambiguous", "accuracy_disambiguated", "bbq_score_ambiguous", "alignment_gap")
"""What benchmarks that followed BBQ report."""

BENCHMARK = Benchmark(
    name="own_questions",
    primary_metric="accuracy",
    other_rankings=(RankingMetric("worst_group_accuracy"),),
    unranked_order="stereotype_rate",
    gates=(Gate("accuracy", "own_question"),),
    baselines=(
        UNIFORM,
        _taking("first", "the option that the data list first"),
        _taking("stereotyped", "the stereotyped option"),
        _taking("antistereotyped", "the option that contradicts the stereotype"),
        _taking("neutral", "the option that the answer is unknown"),
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
    headlines_of={
        "bbq": (
            *("accuracy_disambiguated", "accuracy_ambiguous", "bbq_score", "bbq_score_ambiguous"),
            *("unknown_rate", "accuracy"),
        ),
        "kobbq": _DIFFERENCES,
        "mbbq": _DIFFERENCES,
        "crows-pairs": ("stereotype_rate", "stereotype_rate_stereo", "stereotype_rate_antistereo"),
        "stereoset": ("stereoset_icat", "stereoset_lms", "stereoset_ss"),
        "winogender": ("accuracy", "worst_group_accuracy", "accuracy_gap", "alignment_gap"),
        "winoqueer": ("stereotype_rate",),
    },
    printed_groups=frozenset({"category", "group", "condition"}),
    importers=(AnswersInText(), SentenceScores()),
)
