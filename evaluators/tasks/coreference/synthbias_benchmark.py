"""The benchmark SynthBias: gender and occupation in coreference (Wang et al. 2025, arXiv:2505.23996), with WinoBias."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.baseline import UNIFORM, Baseline, choosing, evenly
from evaluators.benchmark import Benchmark, Gate, RankingMetric
from evaluators.tasks.coreference.coreference_task import FRAME, sentence_in
from schemas.lexicon.coreference_cues import CueText, best_cue

_MENTIONED = frozenset({"first_mentioned", "last_mentioned"})

Preference = Callable[[ChoiceRequest], str | None]


def _first(request: Request) -> str:
    return request.facts["first_mentioned"]


def _last(request: Request) -> str:
    return request.facts["last_mentioned"]


def _wrong(request: ChoiceRequest) -> str | None:
    """Return the occupation that is not the referent; None if no answer is wrong."""
    if "referent" not in request.facts:
        return None
    return _last(request) if request.facts["referent"] == _first(request) else _first(request)


def _preferring(preferred: Preference, probability: float = 1.0) -> Callable[[Request], Response]:
    """Return the ``answer`` function of a baseline that prefers one of the two occupations.

    Args:
        preferred: Function that returns the preferred occupation; None for no preference.
        probability: Probability of the preferred occupation. The other one gets the rest, and the option that it cannot
            be determined gets nothing.
    """

    def probabilities(request: ChoiceRequest) -> list[float]:
        occupation = preferred(request)
        if occupation is None:
            return evenly(request)
        other = _last(request) if occupation == _first(request) else _first(request)
        share = {occupation: probability, other: 1 - probability}
        return [share.get(outcome, 0.0) for outcome in request.outcomes]

    return choosing(probabilities)


def _best_cue(requests: Mapping[str, Request]) -> Mapping[str, Response]:
    """Answer with the occupation that the best cue predicts.

    There is no preference where there is no right answer, nor where a text is withheld and nothing can be read.
    """
    asked = {sha256: request for sha256, request in requests.items() if request.prompt and "referent" in request.facts}
    texts = []
    for request in asked.values():
        means_first = request.facts["referent"] == _first(request)
        sentence = sentence_in(request.prompt)
        if "pronoun" in request.facts:
            # A form of *he*, which cues mask, in place of a pronoun of another family: the items of a set then share
            # their cues, but for the verbs of *they*.
            pronoun = re.escape(request.facts["pronoun"])
            sentence = re.sub(rf"(?<![\w-]){pronoun}(?![\w-])", request.facts["pronoun_of_he"], sentence)
        texts.append(CueText(sentence, (_first(request), _last(request)), means_first, request.facts[FRAME]))
    answers = {True: _preferring(_first), False: _preferring(_last), None: choosing(evenly)}
    predicted = dict(zip(asked, best_cue(texts).means_first, strict=True))
    return {sha256: answers[predicted.get(sha256)](request) for sha256, request in requests.items()}


def _baseline(
    name: str,
    description: str,
    preferred: Preference,
    probability: float = 1.0,
    *,
    facts: frozenset[str] = _MENTIONED,
    optional: frozenset[str] = frozenset(),
) -> Baseline:
    answer = _preferring(preferred, probability)
    return Baseline(
        name=name, description=description, facts=facts, answer=answer, optional_facts=optional, reads_no_prompt=True
    )


# A perfect UCerF is easy: the baselines that are uniform, always wrong, or choose the last-mentioned occupation all
# score 1. The gate excludes from the ranks models that are no more accurate than these.
BENCHMARK = Benchmark(
    name="synthbias",
    primary_metric="worst_group_accuracy",
    # The measures of the paper's tables. The last two are those of evenness alone, which are ideal for a coin.
    other_rankings=(
        RankingMetric("accuracy"),
        RankingMetric("equalized_odds", missing="worst_group_accuracy"),
        RankingMetric("ucerf"),
    ),
    # What a model takes a pronoun to suggest where nothing is right is its lean, and no merit.
    unranked_order="pro_rate",
    gates=(Gate("accuracy", "coreference"), Gate("accuracy", "family_coreference", own_task_only=True)),
    baselines=(
        UNIFORM,
        _baseline("first-mentioned", "the occupation that the sentence mentions first", _first),
        _baseline("last-mentioned", "the occupation that the sentence mentions last", _last),
        Baseline(
            name="best-cue",
            description="the best of some hundred cues of wording, position and length, found in sentences with other "
            "frames and other occupations; no preference if there is no right answer",
            facts=_MENTIONED | {FRAME},
            answer=choosing(evenly),
            answer_together=_best_cue,
        ),
        # On type 2 of SynthBias these have a UCerF of 0, .842 and .99, all at an accuracy of .5: the less certain they
        # are, the less their bias shows.
        *(
            _baseline(
                name,
                f"the occupation stereotyped for the pronoun's gender, with probability {probability:g}",
                # It is empty for families that no stereotype of an occupation is about.
                lambda request: request.facts["stereotyped"] or None,
                probability,
                facts=_MENTIONED | {"stereotyped"},
            )
            for name, probability in (("stereotype", 1.0), ("stereotype-0.7", 0.7), ("stereotype-0.55", 0.55))
        ),
        _baseline(
            "always-wrong",
            "the occupation that the pronoun does not refer to; no preference if there is no right answer",
            _wrong,
            optional=frozenset({"referent"}),
        ),
    ),
    headline_metrics=(
        "accuracy",
        "worst_group_accuracy",
        "accuracy_gap",
        "ucerf",
        "pro_rate",
        "ucerf_of_families",
        "female_occupation_rate",
    ),
    printed_groups=frozenset({"stereotype"}),
    embedded_sources={"synthbias-families": "families"},
    retired={
        "synthbias@1.0.0": "the length of a sentence alone predicts its referent in 0.749; use 4.0.0",
        "synthbias@2.0.0": "a table of three cues predicts its referents in 0.673; use 4.0.0",
        "synthbias@3.0.0": "in half of its type 1 two people are joined by and, of whom none stands out; use 4.0.0",
        "synthbias-families@1.0.0": "half of its type 1 is that of synthbias 3.0.0; use 2.0.0",
    },
)
