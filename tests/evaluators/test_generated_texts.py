"""Where a generated text ends, and which tokens are drawn: against a loop and against the exact distribution."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.backend import GenerateRequest
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import save_tiny_llama
from tests.evaluators.plain_generation import decoded, made_requests, opened, plain

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.mark.slow
def test_stop_texts_end_an_answer_wherever_tokens_begin(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)
    n_over_borders = 0
    for request in made_requests(8):
        whole = plain(backend, request).shown
        texts = [decoded(backend, whole[: n + 1]) for n in range(len(whole))]
        if not texts or len(texts[-1]) < 8:
            continue
        middle = len(texts[-1]) // 2
        stop = texts[-1][middle - 2 : middle + 2]
        # The random numbers must stay those of the request, so the plain loop is given the same one.
        stopped = replace(request, stop=("never in it", stop))
        expected = plain(backend, stopped).shown
        n_needed = next((n for n in range(1, len(expected) + 1) if stop in decoded(backend, expected[:n])), None)
        (answer,) = all_answers_of(backend, [stopped])
        assert stop not in str(answer.text)
        if n_needed is None:
            assert answer.finish_reason == plain(backend, stopped).finish_reason
            continue
        needed = decoded(backend, expected[:n_needed])
        assert answer.text == needed[: needed.index(stop)]
        assert (answer.finish_reason, answer.n_completion_tokens) == ("stop", n_needed)
        ends = [len(text) for text in texts]
        start = needed.index(stop)
        n_over_borders += any(start < end < start + len(stop) for end in ends)
    assert n_over_borders > 0, "no stop text lay over the border of two tokens"


def test_the_earliest_of_several_stop_texts_counts(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)
    request = GenerateRequest(prompt="The guard waited", max_tokens=12)
    (whole,) = all_answers_of(backend, [request])
    text = str(whole.text)
    assert len(set(text)) > 4
    early, late = text[3:5], text[4:6]
    (answer,) = all_answers_of(backend, [replace(request, stop=(late, early))])
    assert answer.text == text[: min(text.index(early), text.index(late))]


def test_end_tokens_of_the_generation_config_end_an_answer_too(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)
    request = GenerateRequest(prompt="The guard waited", max_tokens=12)
    backend.network.generation_config.eos_token_id = None
    (whole,) = all_answers_of(backend, [request])
    assert whole.finish_reason == "length"
    with torch.no_grad():
        ids = backend.tokenizer.context_ids(request.prompt)
        for _ in range(4):
            ids = [*ids, int(backend.network(torch.tensor([ids])).logits[0, -1].argmax())]
    ids = ids[-4:]
    backend.network.generation_config.eos_token_id = [2, ids[3]]
    (answer,) = all_answers_of(backend, [request])
    n = ids.index(ids[3])
    assert (answer.finish_reason, answer.n_completion_tokens) == ("stop", n + 1)
    assert answer.text == decoded(backend, ids[:n])


def test_the_room_of_the_model_ends_an_answer(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)
    backend.network.generation_config.eos_token_id = None
    backend.tokenizer.pretrained.eos_token = None
    words = "The guard waited for the nurse in room 1 until he could leave. " * 40
    tokens = backend.tokenizer.pretrained(words)["input_ids"]
    prompts = [decoded(backend, tokens[1 : n + 1]) for n in (20, 252, 255, 256)]
    lengths = [len(backend.tokenizer.context_ids(prompt)) for prompt in prompts]
    requests = [GenerateRequest(prompt=prompt, max_tokens=10) for prompt in prompts]
    answers = all_answers_of(backend, requests)
    for n, answer in zip(lengths, answers, strict=True):
        if n >= 256:
            assert answer.status == "failed"
            assert answer.error == f"the prompt takes {n} tokens, the model 256; nothing is left for an answer"
        else:
            assert (answer.n_completion_tokens, answer.finish_reason) == (min(10, 256 - n), "length")
    assert len({answer.status for answer in answers}) == 2
    assert any(246 < n < 256 for n in lengths), "no prompt nearly fills the model"


def test_what_cannot_be_answered_fails_alone_and_everything_where_logits_are_no_numbers(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)
    sound = GenerateRequest(prompt="The guard", max_tokens=3)
    requests = [replace(sound, max_tokens=0), sound, replace(sound, temperature=-1.0), replace(sound, top_p=0.0)]
    answers = all_answers_of(backend, requests)
    assert [answer.status for answer in answers] == ["failed", "answered", "failed", "failed"]
    assert answers[0].error == "max_tokens is 0, so nothing can be generated; ask for at least 1"
    with torch.no_grad():
        backend.network.lm_head.weight.fill_(float("nan"))
    answers = all_answers_of(backend, made_requests(6))
    assert {answer.error for answer in answers} == {"a logit is not a number; use --dtype float32 or bfloat16"}


@pytest.mark.slow
def test_the_space_that_an_answer_begins_with_is_kept(tmp_path: Path) -> None:
    backend = opened(save_tiny_llama(tmp_path / "spaces", merge_words=True))
    requests = [replace(r, max_tokens=6) for r in made_requests(12)]
    answers = all_answers_of(backend, requests)
    n_spaces = 0
    for request, answer in zip(requests, answers, strict=True):
        shown = backend.tokenizer.pretrained.convert_ids_to_tokens(plain(backend, request).shown)
        text = "".join(shown).replace("▁", " ")
        assert answer.text == text.replace("<unk>", "").replace("<s>", "")
        n_spaces += text.startswith(" ")
    assert n_spaces > 0, "no answer begins with a space"
