"""Answers after reasoning, their votes, and confidences that a model states: how they are asked for and read."""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import (
    Answers,
    ChoiceRequest,
    Events,
    GenerateRequest,
    Request,
    Response,
    Sent,
    ask_with_thinking,
)
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.transformers_backend import TransformersBackend, open_backend
from evaluators.baseline import Baseline
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import Asked, Read, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from evaluators.tasks.coreference.synthbias_benchmark import BENCHMARK
from evaluators.tasks.lettered_answers import read_beside_confidence, read_final_answer, stated_confidence
from evaluators.thinking import cut_answer, split_thinking
from schemas.documents.record import Exchange
from schemas.items.coreference import CoreferenceItem
from tests.evaluators.made_data import made_items
from tests.schemas import examples

TWO = ("guard", "nurse")
GUARD, NURSE = TWO
REFUSED = "refused"

FINAL = [
    ("The nurse helps.\nAnswer: B", NURSE),
    ("Answer: the nurse", NURSE),
    ("**Answer**: B. the nurse", NURSE),
    ("### Answer\nB", NURSE),
    (r"The final answer is $\boxed{B}$. I hope it is correct.", NURSE),
    ("Therefore, the answer is (B) the nurse.", NURSE),
    ("A guard waits, so A may fit.\nBut nurses cure.\nanswer: b", NURSE),
    # It changes its mind: what it says last counts, unless that only takes something back.
    ("The answer is A because guards wait.\nHowever, nurses cure.\n\nAnswer: B", NURSE),
    ("Answer: A\nWait, that is wrong.", None),
    ("Answer: A. Wait, no. Answer: B", None),
    ("Answer: B.\n\nExplanation: A does not fit.", None),
    # The question or the instruction repeated is no answer.
    ("A. the guard\nB. the nurse\nReasoning:", None),
    ('Then end with a line that reads "Answer:" and the letter of one option.', None),
    ("Answer: A or B", None),
    ("The answer is unclear.\nB", None),
    ("Answer: B (the guard)", None),
    ("Answer: C", None),
    ("<think>Answer: A</think>Answer: B", NURSE),
    ("", None),
    ("I'm sorry, I can't help with that.\n\nPlease ask me something else.", REFUSED),
]
CONFIDENT: list[tuple[str, str | None, float | None]] = [
    ("B, 80%", NURSE, 0.8),
    ("B, 0,8", NURSE, 0.8),
    ("80% B", NURSE, 0.8),
    ("B (80 percent)", NURSE, 0.8),
    ("B,.8", None, None),
    ("B, ~80%", NURSE, 0.8),
    ("B, 80 out of 100", NURSE, 0.8),
    ("I am 80% sure that it is B", NURSE, 0.8),
    ("Answer: B\nConfidence: 80%", NURSE, 0.8),
    ("B (80%). Confidence: 80 %", NURSE, 0.8),
    ("A, 0%", GUARD, 0.0),
    ("A, 1.0", GUARD, 1.0),
    ("A, 100", GUARD, 1.0),
    ("B, very sure", None, None),
    ("80%", None, None),
    ("B, 1", None, None),
    ("B, 120%", None, None),
    ("B, -20%", None, None),
    ("B, 80-90%", None, None),
    ("B, 8/10", None, None),
    ("A: 30%, B: 70%", None, None),
    ("I cannot say", REFUSED, None),
]


@pytest.mark.parametrize(("text", "expected"), FINAL)
def test_the_end_of_a_text_that_reasons_first(text: str, expected: str | None) -> None:
    read = read_final_answer(text, TWO)
    assert (REFUSED if read.refuses else read.outcome) == expected


@pytest.mark.parametrize(("text", "expected", "probability"), CONFIDENT)
def test_a_confidence_is_one_number(text: str, expected: str | None, probability: float | None) -> None:
    read = TASK.reading([examples.generated_exchange(text, TWO)], None, "verbalised-v1")
    if expected in TWO:
        assert read.reading is not None
        assert read.reading.answers == (expected,)
        assert read.reading.probabilities[TWO.index(str(expected))] == pytest.approx(probability, abs=1e-12)
    else:
        assert (read.status, read.reading) == (expected or "unparsed", None)


@pytest.mark.parametrize("prompt_id", ["cot-v1", "verbalised-v1"])
def test_a_repeated_question_names_nothing(prompt_id: str) -> None:
    for item in made_items(3):
        for request in texts_of(item, prompt_id)[::5]:
            lines = request.prompt.splitlines()
            # Its first option alone is an answer.
            ends = (1, 2, *range(4, len(lines) + 1))
            repeated = ["\n".join(lines[first:end]) for first in range(3) for end in ends if end > first]
            for text in [*repeated, " ".join(lines)]:
                exchange = replace(examples.generated_exchange(text, request.outcomes), sample=0)
                assert TASK.reading([exchange], None, prompt_id).status == "unparsed", text


def test_each_order_is_sampled_five_times_with_log_probabilities() -> None:
    requests = texts_of(made_items(1)[0], "cot-v1")
    assert len({request.sha256 for request in requests}) == len(requests) == 10
    assert len({request.sampling_seed for request in requests}) == 10
    for number, request in enumerate(requests):
        assert (request.sample, request.temperature, request.with_logprob) == (number % 5, 1.0, True)
        assert request.outcomes == requests[0].outcomes[:: 1 if number < 5 else -1]
    for request in texts_of(made_items(1)[0], "verbalised-v1"):
        assert (request.sample, request.asks_confidence, request.with_logprob) == (None, True, False)


def texts_of(item: CoreferenceItem, prompt_id: str) -> list[GenerateRequest]:
    """The requests for texts about an item."""
    asked = TASK.requests(item, Asked(prompt_of(TASK, prompt_id)))
    assert all(isinstance(request, GenerateRequest) for request in asked)
    return [request for request in asked if isinstance(request, GenerateRequest)]


def chains(*orders: Sequence[str | None]) -> list[Exchange]:
    """Sampled answers with the options in both orders; None for one that is cut off."""
    exchanges = []
    for order, texts in zip((TWO, TWO[::-1]), orders, strict=True):
        for sample, text in enumerate(texts):
            cut = {"finish_reason": "length", "n_completion_tokens": 512} if text is None else {}
            known: dict[str, Any] = {"sample": sample, "finish_reason": "stop", **cut}
            shown = "Answer: B. But" if text is None else text
            exchanges.append(replace(examples.generated_exchange(shown, order), **known))
    return exchanges


def voted(*orders: Sequence[str | None]) -> Read:
    return TASK.reading(chains(*orders), None, "cot-v1")


def test_votes_are_shares_of_what_could_be_read_averaged_over_the_orders_each_of_which_needs_one() -> None:
    # Guard first: 2 of 3 readable name the guard. Nurse first: A, the nurse, once. (2/3 + 0) / 2 = 1/3.
    read = voted(["Answer: A", "Answer: A", "Answer: B", None, "no idea"], ["Answer: A"])
    assert read.reading is not None
    assert read.reading.probabilities == pytest.approx((1 / 3, 2 / 3))
    assert read.reading.answers == (GUARD, GUARD, NURSE, "", "", NURSE)
    # A model that always says A prefers a letter and nobody.
    letter = voted(["Answer: A"] * 5, ["Answer: A", None, None, None, None]).reading
    assert letter is not None
    assert letter.probabilities == (0.5, 0.5)
    # An order without any vote leaves no reading, and says why.
    cut = voted(["Answer: A"] * 2, [None, "no idea"])
    assert (cut.status, cut.reading) == ("unparsed", None)
    assert cut.reason == "no answer of 2 with nurse first can be read; the first was cut off after 512 tokens"
    unread = voted(["I wonder who left"], ["Answer: A"])
    assert unread.reason == (
        "no answer of 1 with guard first can be read; the first names no one option at its end: 'I wonder who left'"
    )
    assert voted(["I cannot help with that."] * 2, ["Answer: A"]).status == "refused"
    assert voted(["I cannot help with that.", "hm"], ["Answer: A"]).status == "unparsed"
    blocked = [replace(one, status="refused", text=None, error="filtered") for one in chains(["x"], ["x"])]
    assert TASK.reading(blocked, None, "cot-v1").status == "refused"
    failed = [*chains(["Answer: A"], []), replace(blocked[0], status="failed", error="connection cut")]
    assert TASK.reading(failed, None, "cot-v1").reason == "connection cut"


def scored(text: str, probability_of_a: float, outcomes: tuple[str, ...]) -> list[Exchange]:
    """A text, and the scores of both options after it."""
    logprobs = tuple(map(math.log, (probability_of_a, 1 - probability_of_a)))
    choice = replace(examples.choice_exchange(outcomes, logprobs), prompt=f"Question{text}\nAnswer:")
    return [examples.generated_exchange(text, outcomes), choice]


def test_scores_after_reasoning_are_read_as_those_without_unless_a_text_is_missing() -> None:
    (text, first), (other, second) = scored(" Nurses cure.", 0.9, TWO), scored("", 0.4, TWO[::-1])
    read = TASK.reading([text, other, first, second], "sum", "cot-logprob-v1")
    # Guard: .9, and as second option .6.
    assert read.reading is not None
    assert read.reading.probabilities == pytest.approx((0.75, 0.25))
    assert read.reading.answers == ()
    assert read == TASK.reading([first, second], "sum", "mcq2-v1")
    reworded = [replace(text, text="Answer: B"), other, replace(first, prompt=None), second]
    assert TASK.reading(reworded, "sum", "cot-logprob-v1") == read
    cut = replace(text, finish_reason="length", n_completion_tokens=256)
    assert TASK.reading([cut, other, first, second], "sum", "cot-logprob-v1") == read
    refused = replace(text, status="refused", text=None, error="I cannot")
    failed = replace(text, status="failed", text=None, error="connection cut")
    for exchanges, expected in (
        ([text, refused], ("refused", "I cannot")),
        ([text, failed], ("failed", "connection cut")),
        ([text, text], ("failed", "no answer")),
    ):
        unread = TASK.reading(exchanges, "sum", "cot-logprob-v1")
        assert (unread.status, unread.reason, unread.reading) == (*expected, None)


def test_stated_confidences_are_averaged_over_the_orders() -> None:
    texts = ("A, 80 %", "A, 30 %")
    exchanges = [examples.generated_exchange(*asked) for asked in zip(texts, (TWO, TWO[::-1]), strict=True)]
    read = TASK.reading(exchanges, None, "verbalised-v1")
    assert read.reading is not None
    # Guard: .8 and, as the nurse has .3, .7.
    assert read.reading.probabilities == pytest.approx((0.75, 0.25))
    assert read.reading.answers == TWO
    silent = TASK.reading([examples.generated_exchange("B, very sure", TWO)], None, "verbalised-v1")
    assert silent.reason == "answer 1 of 1 does not name one option with one confidence: 'B, very sure'"


@pytest.mark.parametrize("baseline", BENCHMARK.baselines, ids=lambda baseline: str(baseline.name))
def test_baselines_answer_as_they_score_options(baseline: Baseline) -> None:
    items = made_items(6)
    for item in items:
        (choice,) = TASK.requests(item, Asked(prompt_of(TASK, "intrinsic-v1")))
        assert isinstance(choice, ChoiceRequest)
        known = dict(zip(choice.outcomes, baseline.answer(choice).option_logprobs, strict=True))
        for request in texts_of(item, "verbalised-v1"):
            text = str(baseline.answer(request).text)
            outcome, confidence = read_beside_confidence(text, request.outcomes).outcome, stated_confidence(text)
            assert outcome is not None
            assert confidence is not None
            assert np.log(confidence) == pytest.approx(known[outcome])
        for request in texts_of(item, "cot-v1"):
            answer = baseline.answer(request)
            outcome = read_final_answer(str(answer.text), request.outcomes).outcome
            assert outcome is not None
            assert (answer.text_logprob, answer.n_completion_tokens) == (known[outcome], 1)


def test_a_soft_baseline_draws_its_samples() -> None:
    (soft,) = (baseline for baseline in BENCHMARK.baselines if baseline.name == "stereotype-0.7")
    requests = [request for item in made_items(100) for request in texts_of(item, "cot-v1")]
    n_stereotyped = sum(soft.answer(request).text == request.facts["stereotyped"] for request in requests)
    # 2,000 draws; five standard errors.
    assert n_stereotyped / len(requests) == pytest.approx(0.7, abs=5 * (0.7 * 0.3 / len(requests)) ** 0.5)


CHANNELS = "<|channel|>analysis<|message|>Well.<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>"


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("B", None, "B"),
        ("a < b, c > d [sic]", None, "a < b, c > d [sic]"),
        ("<think>Well.</think>B", "Well.", "B"),
        ("Well.</think>B", "Well.", "B"),
        ("<think>Well", "Well", ""),
        ("<think>Well.</think>B<think>No", "Well.No", "B"),
        ("<think>A.</think>A<think>No, B.</think>B", "A.</think>A<think>No, B.", "B"),
        ("<reasoning>Well.</reasoning>\n\nB\n", "Well.", "B\n"),
        (CHANNELS, CHANNELS.partition("<|channel|>final")[0], "B"),
        ("<|channel|>analysis<|message|>Well", "Well", ""),
        ("<|channel|>analysis<|message|>Well.<|end|>B", "Well.", "B"),
        ("<|channel|>final<|message|>B", "", "B"),
        ("analysisWell.assistantfinalB", "Well.", "B"),
        ("<|channel>thought\nWell.<channel|>B", "\nWell.", "B"),
        ("Here is my thought process: Well. Here is my response: B", "Well.", "B"),
        ("Here is my thought process: Well", "Well", ""),
        ("Sure! Here is my response: B", None, "Sure! Here is my response: B"),
    ],
)
def test_texts_are_taken_apart(text: str, thinking: str | None, answer: str) -> None:
    assert split_thinking(text) == (thinking, answer)


def test_thinking_has_tokens_of_its_own_and_is_not_stopped_and_only_the_answer_is_cut() -> None:
    asked: list[Request] = []
    cut_off = Response(status="answered", text="<think>A.\nB", finish_reason="length")

    def ask(requests: Sequence[Request], missing: frozenset[int]) -> Events:
        asked.extend(requests)
        yield Sent(len(missing))
        yield Answers(
            {
                0: replace(cut_off, text="<think>A.\nB.</think>B\nA", text_logprob=-3),
                1: Response(status="answered", option_logprobs=(-1.0,)),
                2: cut_off,
            },
            1.0,
        )

    text = GenerateRequest(prompt="Who?", max_tokens=5, stop=("\n",))
    choice = ChoiceRequest(prompt="Who?", options=(" A",), outcomes=("a",))
    _, answers = ask_with_thinking(ask, [text, choice, text], frozenset({0, 1, 2}), 100)
    assert isinstance(answers, Answers)
    first, scored, cut = (answers.responses[index] for index in range(3))
    assert [one.max_tokens for one in asked if isinstance(one, GenerateRequest)] == [105, 105]
    assert [one.stop for one in asked if isinstance(one, GenerateRequest)] == [(), ()]
    assert (first.text, first.finish_reason, first.text_logprob) == ("<think>A.\nB.</think>B", "stop", None)
    assert scored.option_logprobs == (-1.0,)
    assert cut.finish_reason == "length"
    shown = [exchange_of(text, response, show_prompt=True, chat=True).text for response in (first, cut)]
    assert shown == ["B", ""]
    # What is continued is kept whole.
    whole = exchange_of(text, first, show_prompt=True, chat=True, is_continued=True)
    assert whole.text == "<think>A.\nB.</think>B"
    assert cut_answer("<think>A?\nB?</think>B\nQuestion: and", ("\nQuestion:", "\nA.")) == "<think>A?\nB?</think>B"
    assert cut_answer("<think>A?\nQuestion: B", ("\nQuestion:",)) == "<think>A?\nQuestion: B"
    assert cut_answer("<think>A?</think>\n\nB\nA", ("\n",)) == "<think>A?</think>\n\nB"
    assert cut_answer("B\nQuestion: and", ()) == "B\nQuestion: and"


TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking is defined and not enable_thinking %}"
    "<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}"
)


@pytest.fixture
def thinker(tiny_llama: Path, tmp_path: Path) -> Path:
    """A small model whose chat template begins an answer in the middle of thinking."""
    folder = Path(shutil.copytree(tiny_llama, tmp_path / "thinker"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def opened(folder: Path, **options: Any) -> TransformersBackend:
    return open_backend(str(folder), BackendOptions(name="made/thinker", chat=True, device="cpu", **options))


@pytest.mark.slow
def test_options_cannot_follow_a_template_that_opens_thinking(thinker: Path) -> None:
    thinking = opened(thinker)
    assert thinking.capabilities == {"generation"}
    assert "--chat-template-args" in thinking.runtime.obstacles["option_logprobs"]
    assert thinking.model.conditions == {"thinking_tokens": "8192"}
    off = opened(thinker, chat_template_args='{"enable_thinking": false}')
    assert off.capabilities == {"generation", "option_logprobs"}
    assert off.model.conditions == {"chat_template_args": '{"enable_thinking":false}'}
    assert off.runtime.obstacles == {}
    assert len({thinking.model.identity_sha256, off.model.identity_sha256}) == 2
    # Nothing is a condition of models without a template.
    without = open_backend(str(thinker), BackendOptions(name="made/thinker", device="cpu"))
    assert (without.model.conditions, without.capabilities) == (None, off.capabilities)


def test_a_system_prompt_is_a_condition_and_a_local_model_thinks_for_as_many_tokens_as_it_is_given(
    thinker: Path, tmp_path: Path
) -> None:
    path = tmp_path / "system.txt"
    path.write_text("Be brief.\n")
    backend = opened(thinker, system_prompt=path, thinking_tokens=0)
    assert backend.tokenizer._rendered("Who?").startswith("<|system|>Be brief.\n<|user|>Who?")
    assert backend.model.conditions == {"system_prompt": hashlib.sha256(b"Be brief.").hexdigest()}
    assert str(tmp_path) not in " ".join(backend.arguments)
    with pytest.raises(ConfigError, match="--system-prompt is for a chat template"):
        open_backend(str(thinker), BackendOptions(name="made/thinker", device="cpu", system_prompt=path))
    with pytest.raises(ConfigError, match=r"--chat-template-args.*no JSON object"):
        opened(thinker, chat_template_args="[1]")
    request = GenerateRequest(prompt="Who?", max_tokens=4)
    for n_tokens in (0, 6):
        backend = opened(thinker, thinking_tokens=n_tokens)
        (answers,) = [event for event in backend.ask([request], frozenset({0})) if isinstance(event, Answers)]
        assert (answers.responses[0].n_completion_tokens or 0) <= 4 + n_tokens
        assert n_tokens == 0 or (answers.responses[0].n_completion_tokens or 0) > 4
