"""The baseline of own questions that follows the best cue: wording, length or place, found in other clusters."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from evaluators.backend import ChoiceRequest, GenerateRequest, Request
from evaluators.benchmark import load_benchmark
from evaluators.task import Asked
from evaluators.tasks.own_questions.option_cues import CueQuestion, predicted_options
from evaluators.tasks.own_questions.own_question_task import TASK, question_in
from schemas.items.own_question import OwnQuestion
from tests.evaluators.test_own_questions import ITEM

BEST_CUE = {baseline.name: baseline for baseline in load_benchmark("own_questions").baselines}["best-option-cue"]
NOUNS = ("cook", "baker", "tailor", "judge", "porter", "farmer", "clerk", "miner", "singer", "pilot")


def made_items(answer_of: Callable[[Sequence[str], random.Random], str | None], n: int = 120) -> list[OwnQuestion]:
    """Questions of 30 clusters about two people, or nobody, in any order."""
    rng = random.Random(8)
    items = []
    for number in range(n):
        people = rng.sample(NOUNS, 2)
        options = [f"The {people[0]}", f"The {people[1]} of the old town", "Nobody"]
        rng.shuffle(options)
        items.append(
            replace(
                ITEM,
                item_id=str(number),
                context=f"A {people[0]} and a {people[1]} met in room {number}.",
                question="Who forgot the key?",
                options=tuple(options),
                answer=answer_of(options, rng),
                stereotyped=None,
                antistereotyped=None,
                neutral=None,
                cluster=str(number // 4),
            )
        )
    return items


def choices(items: Sequence[OwnQuestion], prompt: str) -> list[set[str | None]]:
    """Return what the baseline prefers for each item, over the places of the options; None for no preference."""
    asked = [TASK.requests(item, Asked(TASK.prompts[prompt])) for item in items]
    answers = BEST_CUE.answers({request.sha256: request for of_item in asked for request in of_item})

    def chosen(request: Request) -> str | None:
        if isinstance(request, GenerateRequest):
            return answers[request.sha256].text
        assert isinstance(request, ChoiceRequest)
        logprobs = [float(str(value)) for value in answers[request.sha256].option_logprobs]
        best = [outcome for outcome, value in zip(request.outcomes, logprobs, strict=True) if value == max(logprobs)]
        return best[0] if len(best) == 1 else None

    return [{chosen(request) for request in of_item} for of_item in asked]


@pytest.mark.parametrize(
    ("answer_of", "at_least"),
    [
        (lambda options, rng: options[1], 1.0),
        (lambda options, rng: max(options, key=len), 0.95),
        (lambda options, rng: "Nobody", 0.95),
    ],
    ids=["place", "length", "word"],
)
def test_a_cue_that_carries_over_is_found(
    answer_of: Callable[[Sequence[str], random.Random], str], at_least: float
) -> None:
    items = made_items(answer_of)
    chosen = choices(items, "letters-v1")
    right = sum(preferred == {item.answer} for preferred, item in zip(chosen, items, strict=True))
    assert right / len(items) >= at_least
    assert choices(items, "whole-v1") == choices(items, "letters-generate-v1") == chosen


def test_without_a_cue_it_is_no_better_than_a_coin() -> None:
    items = made_items(lambda options, rng: rng.choice(options), n=240)
    chosen = choices(items, "letters-v1")
    right = sum(preferred == {item.answer} for preferred, item in zip(chosen, items, strict=True))
    # Three standard deviations of 240 throws with a third each are 0.09.
    assert right / len(items) < 1 / 3 + 0.09


def test_there_is_no_preference_without_a_right_answer_or_other_clusters() -> None:
    assert choices(made_items(lambda options, rng: None, n=12), "letters-v1") == [{None}] * 12
    alone = [replace(item, cluster="one") for item in made_items(lambda options, rng: options[0], n=12)]
    assert choices(alone, "letters-v1") == [{None}] * 12
    texts = [replace(item, context=None, question=None) for item in made_items(lambda options, rng: options[0], n=12)]
    assert choices(texts, "whole-v1") == [{None}] * 12
    assert predicted_options([]) == []
    two = [CueQuestion("Who?", ("a", "b"), "a", "1"), CueQuestion("When?", ("a", "b"), "b", "2")]
    assert {*predicted_options(two)} <= {"a", "b", None}


@pytest.mark.parametrize("prompt", ["letters-v1", "letters-generate-v1", "whole-v1"])
def test_the_question_is_found_in_every_prompt(prompt: str) -> None:
    for request in TASK.requests(ITEM, Asked(TASK.prompts[prompt])):
        assert question_in(request.prompt, request.outcomes) == f"{ITEM.context}\n{ITEM.question}"
