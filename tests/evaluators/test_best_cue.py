"""The baseline that follows the best cue: the same under every prompt, and without a preference where it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders.synthbias import embedded
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.benchmark import load_benchmark
from evaluators.task import Asked
from evaluators.tasks.coreference.coreference_task import TASK, sentence_in
from schemas.items.coreference import CoreferenceItem

BASELINES = {baseline.name: baseline for baseline in load_benchmark("synthbias").baselines}


@pytest.fixture(scope="module")
def items() -> dict[str, list[CoreferenceItem]]:
    return {split.config: list(split.items) for split in embedded.draft(limit=800).splits}


def requests_of(items: list[CoreferenceItem], prompt: str) -> dict[str, tuple[CoreferenceItem, Request]]:
    asked = {}
    for item in items:
        for request in TASK.requests(item, Asked(TASK.prompts[prompt])):
            asked[request.sha256] = (item, request)
    return asked


def chosen(request: Request, response: Response) -> str | None:
    """Return the outcome that a response prefers; None if it prefers none."""
    if isinstance(request, GenerateRequest):
        return response.text
    assert isinstance(request, ChoiceRequest)
    values = [float(str(value)) for value in response.option_logprobs]
    best = [outcome for outcome, value in zip(request.outcomes, values, strict=True) if value == max(values)]
    return best[0] if len(best) == 1 else None


def choices(items: list[CoreferenceItem], prompt: str) -> Mapping[str, set[str | None]]:
    """Return what the baseline prefers for each item, over the orders of the options."""
    asked = requests_of(items, prompt)
    answers = BASELINES["best-cue"].answers({sha256: request for sha256, (_, request) in asked.items()})
    found: dict[str, set[str | None]] = {}
    for sha256, (item, request) in asked.items():
        found.setdefault(item.item_id, set()).add(chosen(request, answers[sha256]))
    return found


@pytest.mark.parametrize("prompt", TASK.prompts)
def test_sentences_are_found_in_every_prompt(items: dict[str, list[CoreferenceItem]], prompt: str) -> None:
    for item, request in requests_of(items["type2"][:40], prompt).values():
        assert sentence_in(request.prompt) == item.sentence


def test_every_prompt_gets_the_same_answers_and_both_pronouns_too(items: dict[str, list[CoreferenceItem]]) -> None:
    expected = choices(items["type2"], "intrinsic-v1")
    assert all(len(found) == 1 and None not in found for found in expected.values())
    for prompt in ("mcq2-v1", "mcq3-v1", "mcq2-generate-v1"):
        assert choices(items["type2"], prompt) == expected
    of_pairs: dict[str, set[str | None]] = {}
    for item in items["type2"]:
        of_pairs.setdefault(item.pair_id, set()).update(expected[item.item_id])
    assert all(len(found) == 1 for found in of_pairs.values())


def test_there_is_no_preference_without_a_right_answer_or_a_text(items: dict[str, list[CoreferenceItem]]) -> None:
    assert set().union(*choices(items["type1"], "intrinsic-v1").values()) == {None}
    asked = {
        sha256: replace(request, prompt="")
        for sha256, (_, request) in requests_of(items["type2"][:40], "intrinsic-v1").items()
    }
    answers = BASELINES["best-cue"].answers(asked)
    assert {chosen(asked[sha256], answer) for sha256, answer in answers.items()} == {None}


def test_a_frame_that_is_unknown_is_its_wording(items: dict[str, list[CoreferenceItem]]) -> None:
    """Some items may name a frame and others none."""
    mixed = [replace(item, template_id=None) if number % 4 < 2 else item for number, item in enumerate(items["type2"])]
    assert all(len(found) == 1 and None not in found for found in choices(mixed, "intrinsic-v1").values())
