"""What a model thinks and what it answers, in texts that hold both, and the tokens for either."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evaluators.backend import Answers, ChoiceRequest, Events, GenerateRequest, Request, Response, Sent
from evaluators.models.thinking_aloud import ask_with_thinking
from evaluators.runs.measure.recording import exchange_of
from evaluators.thinking import cut_answer, opens_thinking, split_thinking

CHANNELS = "<|channel|>analysis<|message|>Well.<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>"


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("B", None, "B"),
        ("", None, ""),
        ("a < b, c > d [sic]", None, "a < b, c > d [sic]"),
        ("<think>Well.</think>B", "Well.", "B"),
        ("<THINK>Well.</Think>B", "Well.", "B"),
        ("Well.</think>B", "Well.", "B"),
        ("<think></think>B", "", "B"),
        ("<think>Well", "Well", ""),
        ("<think>Well.</think>B<think>No", "Well.No", "B"),
        ("<think>A.</think>A<think>No, B.</think>B", "A.</think>A<think>No, B.", "B"),
        ("<reasoning>Well.</reasoning>\nB", "Well.", "\nB"),
        ("[THINK]Well.[/THINK]B", "Well.", "B"),
        ("\u25c1think\u25b7Well.\u25c1/think\u25b7B", "Well.", "B"),
        (CHANNELS, CHANNELS.partition("<|channel|>final")[0], "B"),
        ("<|channel|>analysis<|message|>Well", "Well", ""),
        ("<|channel|>analysis<|message|>Well.<|end|>B", "Well.", "B"),
        ("<|channel|>final<|message|>B", "", "B"),
        ("analysisWell.assistantfinalB", "Well.", "B"),
        ("Their analysis is final.", None, "Their analysis is final."),
    ],
)
def test_texts_are_taken_apart(text: str, thinking: str | None, answer: str) -> None:
    assert split_thinking(text) == (thinking, answer)


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        ("Who?", False),
        ("<|user|>Who?<|assistant|>", False),
        ("<|user|>Who?<|assistant|><think>\n", True),
        ("<|user|>Who?<|assistant|><think>\n\n</think>\n\n", False),
        ("[INST]Who?[/INST][THINK]", True),
    ],
)
def test_a_prompt_may_end_in_the_middle_of_thinking(prompt: str, opens: bool) -> None:
    assert opens_thinking(prompt) is opens


def test_only_the_answer_is_cut() -> None:
    assert cut_answer("<think>A?\nB?</think>B\nQuestion: and", ("\nQuestion:", "\nA.")) == "<think>A?\nB?</think>B"
    assert cut_answer("<think>A?\nQuestion: B", ("\nQuestion:",)) == "<think>A?\nQuestion: B"
    assert cut_answer("B\nQuestion: and", ("\nQuestion:",)) == "B"
    assert cut_answer("B\nQuestion: and", ()) == "B\nQuestion: and"


def test_thinking_has_tokens_of_its_own_and_is_not_stopped() -> None:
    asked: list[Request] = []

    def ask(requests: Sequence[Request], missing: frozenset[int]) -> Events:
        asked.extend(requests)
        yield Sent(len(missing))
        yield Answers(
            {
                0: Response(
                    status="answered", text="<think>A.\nB.</think>B\nA", finish_reason="length", text_logprob=-3
                ),
                1: Response(status="answered", option_logprobs=(-1.0,)),
                2: Response(status="answered", text="<think>A.\nB", finish_reason="length"),
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


def test_what_is_continued_is_kept_whole() -> None:
    text = GenerateRequest(prompt="Who?", max_tokens=5)
    response = Response(status="answered", text="<think>Well.</think>B")
    exchange = exchange_of(text, response, show_prompt=True, chat=True, is_continued=True)
    assert exchange.text == "<think>Well.</think>B"
