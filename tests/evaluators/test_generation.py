"""Texts that are generated side by side, against a loop that generates one of them at a time without a cache."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.backend import GenerateRequest, Sent
from evaluators.backends.transformers.transformers_backend import TransformersBackend
from tests.evaluators.asking import all_answers_of, answers_of, groups_of
from tests.evaluators.plain_generation import assert_equals_plain_loop, decoded, made_requests, opened, plain

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")


def with_network(folder: Path, network: Any, tokenizer_of: Path) -> TransformersBackend:
    """A model of another kind with the tokenizer of a folder."""
    network.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tokenizer_of / name, folder)
    return opened(folder)


@contextmanager
def passes_of(backend: TransformersBackend) -> Iterator[list[tuple[int, int]]]:
    """(rows, columns) of every forward pass."""
    seen: list[tuple[int, int]] = []

    def note(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        seen.append(tuple(named["input_ids"].shape))

    handle = backend.network.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


@pytest.mark.slow
@pytest.mark.parametrize("batch_tokens", [1, 160, 4096])
def test_any_number_side_by_side_equals_a_loop_over_single_requests(tiny_llama: Path, batch_tokens: int) -> None:
    answers = assert_equals_plain_loop(opened(tiny_llama, batch_tokens=batch_tokens), made_requests())
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}, "one way of ending was not tried"


@pytest.mark.slow
def test_learned_positions(tiny_llama: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=600, n_embd=48, n_layer=2, n_head=4, n_positions=128, initializer_range=0.3
    )
    network = transformers.GPT2LMHeadModel(config)
    assert_equals_plain_loop(with_network(tmp_path / "gpt2", network, tiny_llama), made_requests())


def mistral(window: int) -> Any:
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        vocab_size=600,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        sliding_window=window,
        initializer_range=0.3,
    )
    return transformers.MistralForCausalLM(config)


@pytest.mark.slow
def test_a_window_that_texts_leave_means_one_at_a_time(tiny_llama: Path, tmp_path: Path) -> None:
    backend = with_network(tmp_path / "mistral", mistral(8), tiny_llama)
    assert_equals_plain_loop(backend, made_requests(16), generation="single")
    assert "attends to the last 8 tokens" in backend.runtime.settings["continuous_generation_left_out"]


@pytest.mark.slow
def test_a_window_that_no_text_leaves_is_none(tiny_llama: Path, tmp_path: Path) -> None:
    backend = with_network(tmp_path / "mistral", mistral(64), tiny_llama)
    assert_equals_plain_loop(backend, made_requests(16))
    assert "continuous_generation_left_out" not in backend.runtime.settings


@pytest.mark.slow
def test_a_state_that_runs_through_all_tokens_means_one_at_a_time(tiny_llama: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.MambaConfig(
        vocab_size=600, hidden_size=32, state_size=8, num_hidden_layers=2, initializer_range=0.3
    )
    backend = with_network(tmp_path / "mamba", transformers.MambaForCausalLM(config), tiny_llama)
    assert_equals_plain_loop(backend, made_requests(10), generation="single")
    assert "keeps a state" in backend.runtime.settings["continuous_generation_left_out"]


def test_a_model_that_ignores_masks_is_found_out(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)

    def without_mask(_module: Any, given: Any, named: dict[str, Any]) -> Any:
        return given, {name: value for name, value in named.items() if name != "attention_mask"}

    backend.network.register_forward_pre_hook(without_mask, with_kwargs=True)
    assert_equals_plain_loop(backend, made_requests(8), generation="single")
    assert "nats from decoding one text at a time" in backend.runtime.settings["continuous_generation_left_out"]


@pytest.mark.slow
def test_a_real_model_continues_as_the_loop_does(shared_data: Path) -> None:
    backend = opened(shared_data / "models" / "tinystories-656k", batch_tokens=300)
    requests = made_requests(12)
    answers = all_answers_of(backend, requests)
    assert backend.runtime.settings["generation"] == "continuous"
    for request, answer in zip(requests, answers, strict=True):
        expected = plain(backend, request)
        assert answer.n_completion_tokens == len(expected.ids)
        text = decoded(backend, expected.shown)
        assert str(answer.text).strip() == text.strip()


@pytest.mark.slow
def test_neither_order_nor_what_is_missing_changes_an_answer(tiny_llama: Path) -> None:
    requests = made_requests()
    first = all_answers_of(opened(tiny_llama), requests)
    backwards = all_answers_of(opened(tiny_llama, batch_tokens=300), requests[::-1])
    assert backwards[::-1] == first
    some = frozenset(range(1, len(requests), 3))
    part = answers_of(opened(tiny_llama), requests, some)
    assert part == [answer if place in some else None for place, answer in enumerate(first)]


@pytest.mark.slow
def test_an_ended_text_makes_room_for_the_next_at_once(tiny_llama: Path) -> None:
    backend = opened(tiny_llama, batch_tokens=3 * 64)
    backend.network.generation_config.eos_token_id = None
    backend.tokenizer.pretrained.eos_token = None
    base = GenerateRequest(prompt="The guard waited for the", max_tokens=4)
    n_prompt = len(backend.tokenizer.context_ids(base.prompt))
    long = replace(base, max_tokens=64 - n_prompt)
    requests = [long, *(replace(base, sample=index) for index in range(20))]
    all_answers_of(backend, requests)
    with passes_of(backend) as seen:
        answers = all_answers_of(backend, requests)
    assert [answer.n_completion_tokens for answer in answers] == [64 - n_prompt, *[4] * 20]
    sizes = [rows for rows, columns in seen if columns == 1]
    # Three rows: while the long text takes 63 - n_prompt steps, two rows go through the 20 short ones in 3 steps each.
    assert max(sizes) == 3
    trying = 3  # The comparison with the plain way.
    assert len(sizes) == 63 - n_prompt + trying
    assert sizes.count(3) == 30


def test_requests_with_one_prompt_share_its_computation(tiny_llama: Path) -> None:
    backend = opened(tiny_llama, batch_tokens=4096)
    requests = [GenerateRequest(prompt="The nurse", max_tokens=1, temperature=1.0, sample=n) for n in range(40)]
    with passes_of(backend) as seen:
        all_answers_of(backend, requests)
    assert max(rows for rows, _ in seen) <= 2, "40 rows with the same text were computed"


@pytest.mark.slow
def test_too_little_memory_halves_what_runs_side_by_side(tiny_llama: Path) -> None:
    requests = made_requests()
    expected = all_answers_of(opened(tiny_llama), requests)
    backend = opened(tiny_llama, batch_tokens=4096)
    widest = 0

    def small_card(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        nonlocal widest
        rows, columns = named["input_ids"].shape
        kept = named.get("past_key_values")
        if rows * (columns + (0 if kept is None else kept.get_seq_length())) > 200:
            raise torch.OutOfMemoryError("this card holds 200 tokens")
        widest = max(widest, rows)

    backend.network.register_forward_pre_hook(small_card, with_kwargs=True)
    events = list(backend.ask(requests, frozenset(range(len(requests)))))
    assert backend.runtime.settings["generation"] == "continuous"
    assert sum(event.n_attempts for event in events if isinstance(event, Sent)) == len(requests)
    found = {
        place: answer for event in events if not isinstance(event, Sent) for place, answer in event.responses.items()
    }
    assert [found[place] for place in range(len(requests))] == expected
    assert widest > 1


def test_a_single_request_beyond_memory_fails_with_the_remedy(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)
    long, short = (GenerateRequest(prompt="The guard waited " * n, max_tokens=4) for n in (30, 1))

    def small_card(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        if named["input_ids"].shape[1] > 50:
            raise torch.OutOfMemoryError("this card holds 50 tokens")

    backend.network.register_forward_pre_hook(small_card, with_kwargs=True)
    answers = all_answers_of(backend, [short, long, short])
    assert [answer.status for answer in answers] == ["answered", "failed", "answered"]
    assert "out of memory on a single request; use a smaller model" in str(answers[1].error)


def test_every_request_is_announced_before_it_is_answered(tiny_llama: Path) -> None:
    requests = made_requests()
    announced = answered = 0
    for event in opened(tiny_llama).ask(requests, frozenset(range(len(requests)))):
        if isinstance(event, Sent):
            announced += event.n_attempts
        else:
            answered += len(event.responses)
            assert answered <= announced
    assert (announced, answered) == (len(requests), len(requests))
    many = [GenerateRequest(prompt="The nurse", max_tokens=1, temperature=1.0, sample=n) for n in range(100)]
    assert max(len(group.responses) for group in groups_of(opened(tiny_llama, batch_tokens=4096), many)) <= 32


def test_half_precision_goes_on_side_by_side(tiny_llama: Path) -> None:
    backend = opened(tiny_llama, dtype="bfloat16")
    answers = all_answers_of(backend, made_requests(12))
    assert {answer.status for answer in answers} == {"answered"}
    assert backend.runtime.settings["generation"] == "continuous"
