"""What a model thinks and what it answers, in texts that hold both, and the tokens for either."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from evaluators.runs.measure.recording import exchange_of
from evaluators.thinking import cut_answer, split_thinking

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


def test_only_the_answer_is_cut() -> None:
    assert cut_answer("<think>A?\nB?</think>B\nQuestion: and", ("\nQuestion:", "\nA.")) == "<think>A?\nB?</think>B"
    assert cut_answer("<think>A?\nQuestion: B", ("\nQuestion:",)) == "<think>A?\nQuestion: B"
    assert cut_answer("<think>A?</think>\n\nB\nA", ("\n",)) == "<think>A?</think>\n\nB"
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


def test_a_local_model_thinks_for_as_many_tokens_as_it_is_given(thinker: Path) -> None:
    request = GenerateRequest(prompt="Who?", max_tokens=4)
    for n_tokens in (0, 6):
        backend = opened(thinker, thinking_tokens=n_tokens)
        (answers,) = [event for event in backend.ask([request], frozenset({0})) if isinstance(event, Answers)]
        assert (answers.responses[0].n_completion_tokens or 0) <= 4 + n_tokens
        assert n_tokens == 0 or (answers.responses[0].n_completion_tokens or 0) > 4


def test_a_system_prompt_is_the_first_message_and_a_condition(thinker: Path, tmp_path: Path) -> None:
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
