"""Texts that are generated side by side, and their ends, against a loop that makes one at a time without a cache."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluators.backend import GenerateRequest, Sent
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers import decoding
from evaluators.backends.transformers.option_scoring import state_name
from evaluators.backends.transformers.transformers_backend import TransformersBackend, open_backend
from tests.commands import run
from tests.evaluators.asking import all_answers_of, answers_of
from tests.evaluators.made_data import save_flat_llama, save_tiny_llama
from tests.evaluators.plain_generation import ENDS, assert_equals_plain_loop, decoded, made_requests, opened, plain

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")


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
def test_texts_side_by_side_equal_a_loop_over_single_requests_whichever_are_missing(tiny_llama: Path) -> None:
    requests = made_requests()
    answers = assert_equals_plain_loop(opened(tiny_llama), requests)
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}, "one way of ending was not tried"
    some = frozenset(range(1, len(requests), 3))
    part = answers_of(opened(tiny_llama), requests, some)
    assert part == [answer if place in some else None for place, answer in enumerate(answers)]


WIDE = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
KINDS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "a window that no text leaves": ("Mistral", {**WIDE, "num_hidden_layers": 2, "sliding_window": 64}, None),
    "a window that texts leave": ("Mistral", {**WIDE, "num_hidden_layers": 2, "sliding_window": 8},
        "the last 8 tokens"),
    "a state that runs through all tokens": ("Mamba", {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 2},
        "keeps a state"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_models_of_other_kinds_equal_the_loop_one_text_at_a_time_where_they_must(
    name: str, tiny_llama: Path, tmp_path: Path
) -> None:
    kind, sizes, left_out = KINDS[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(vocab_size=600, initializer_range=0.3, **sizes)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_llama / file, tmp_path)
    backend = opened(tmp_path)
    assert_equals_plain_loop(backend, made_requests(16), generation="single" if left_out else "continuous")
    assert (left_out or "None") in str(backend.runtime.settings.get("continuous_generation_left_out"))


@pytest.mark.slow
def test_a_model_that_ignores_masks_is_found_out(tiny_llama: Path) -> None:
    backend = opened(tiny_llama)

    def without_mask(_module: Any, given: Any, named: dict[str, Any]) -> Any:
        return given, {name: value for name, value in named.items() if name != "attention_mask"}

    backend.network.register_forward_pre_hook(without_mask, with_kwargs=True)
    assert_equals_plain_loop(backend, made_requests(8), generation="single")
    assert "nats from decoding one text at a time" in backend.runtime.settings["continuous_generation_left_out"]


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
        kept = named.get(state_name(backend.network))
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


@pytest.mark.slow
def test_every_request_is_announced_before_it_is_answered(tiny_llama: Path) -> None:
    requests = made_requests(60)
    announced = answered = 0
    for event in opened(tiny_llama).ask(requests, frozenset(range(len(requests)))):
        if isinstance(event, Sent):
            announced += event.n_attempts
        else:
            answered += len(event.responses)
            assert answered <= announced
            assert len(event.responses) <= 32, "a killed process would lose more"
    assert (announced, answered) == (len(requests), len(requests))


def opened_alone(folder: Path, batch_tokens: int | None = None) -> TransformersBackend:
    return open_backend(str(folder), BackendOptions(device="cpu", batch_tokens=batch_tokens))


def widest_pass(backend: TransformersBackend, requests: list[GenerateRequest]) -> int:
    """The largest number of texts that were given their next token in one pass."""
    with passes_of(backend) as seen:
        all_answers_of(backend, requests)
    return max(rows for rows, columns in seen if columns == 1)


@pytest.mark.slow
@pytest.mark.parametrize("is_flat", [False, True], ids=["made", "flat"])
def test_answers_are_equal_whatever_runs_side_by_side(tiny_llama: Path, tmp_path: Path, is_flat: bool) -> None:
    # A flat model prefers no token, so that rounding could decide each of them.
    model = save_flat_llama(tmp_path / "flat", hidden_size=64) if is_flat else tiny_llama
    requests = [
        replace(request, stop=(" the",) if index % 5 == 0 else ()) for index, request in enumerate(made_requests(24))
    ]
    alone = all_answers_of(opened_alone(model, 1), requests)
    assert {answer.status for answer in alone} == {"answered"}
    assert len({answer.n_completion_tokens for answer in alone}) > 5, "answers of one length try nothing"
    for batch_tokens in (100, None):
        backend = opened_alone(model, batch_tokens)
        assert all_answers_of(backend, requests) == alone
        assert "tokens_left_to_rounding" not in backend.runtime.settings


@pytest.mark.slow
def test_what_rounding_may_have_decided_is_counted(tiny_llama: Path) -> None:
    requests = [request for request in made_requests(60) if request.temperature > 0]
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu", dtype="bfloat16"))
    answers = all_answers_of(backend, requests)
    assert {answer.status for answer in answers} == {"answered"}
    assert backend.runtime.settings["generation"] == "continuous"
    n_tokens = sum(answer.n_completion_tokens or 0 for answer in answers)
    assert 0 < int(backend.runtime.settings["tokens_left_to_rounding"]) <= n_tokens


@pytest.mark.slow
def test_without_a_choice_memory_decides_and_not_the_budget_of_scoring(tiny_llama: Path) -> None:
    base = GenerateRequest(prompt="The guard waited for the", max_tokens=100, temperature=1.0)
    requests = [replace(base, sample=index) for index in range(12)]
    backend = opened_alone(tiny_llama)
    backend.network.generation_config.eos_token_id = None
    backend.tokenizer.pretrained.eos_token = None
    assert backend.batch_tokens == 1024
    assert widest_pass(backend, requests) == 12
    backend.wanted_tokens = 330
    assert widest_pass(backend, requests) == 3


@pytest.mark.slow
def test_ids_without_a_token_are_never_generated(
    tiny_llama: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    n_more = 700
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_llama)
    network: Any = transformers.AutoModelForCausalLM.from_pretrained(tiny_llama)
    network.resize_token_embeddings(len(tokenizer) + n_more)
    with torch.no_grad():
        # Larger weights than those of tokens: without a mask, nearly every token would be one of these.
        network.get_output_embeddings().weight[len(tokenizer) :].normal_(std=3.0)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backend = opened_alone(tmp_path)
    backend.network.generation_config.eos_token_id = list(ENDS)
    requests = made_requests(12)
    with caplog.at_level(logging.WARNING, "evaluators"):
        answers = all_answers_of(backend, requests)
    assert backend.runtime.settings["ids_without_token"] == str(n_more)
    assert "name that one with --tokenizer" in caplog.text
    for request, answer in zip(requests, answers, strict=True):
        expected = plain(backend, request)
        assert (answer.n_completion_tokens, answer.finish_reason) == (len(expected.ids), expected.finish_reason)


_THREADS = """
import os
from evaluators.backends.transformers import load
torch = load.import_torch()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
print(load.set_threads(torch), os.environ.get("OMP_WAIT_POLICY"))
os.environ["OMP_NUM_THREADS"] = "2"
torch.set_num_threads(2)
print(load.set_threads(torch))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity of processes")
def test_threads_are_those_of_the_user_or_the_usable_cores() -> None:
    left_out: dict[str, Any] = dict.fromkeys(name for name in os.environ if name.startswith(("OMP_", "MKL_")))
    found = run("-c", _THREADS, status=0, fresh=True, **left_out)
    # Programs that are started later do not inherit the policy.
    assert found.stdout == "1 None\n2\n"
    assert found.stderr.count("threads that outnumber cores") == 1


NOISE = 1e-3


def drawn_by(logits: Any, *, temperature: float = 1.0, top_p: float = 1.0, seed: int = 0) -> Any:
    n, n_tokens = logits.shape
    numbers = torch.from_numpy(np.random.default_rng(seed).random((n, decoding.n_choices(n_tokens))))
    options = {"dtype": torch.float64}
    temperatures, masses = torch.full((n, 1), temperature, **options), torch.full((n, 1), top_p, **options)
    return decoding.draw(logits, temperatures, masses, numbers, NOISE)


@pytest.mark.parametrize(
    ("spread", "temperature", "top_p", "most"),
    # Where all tokens are about equally probable, many lie at the border of top_p.
    [(1.0, 0.5, 1.0, 160), (1.0, 1.0, 0.95, 160), (0.05, 0.7, 0.5, 2400), (6.0, 1.0, 0.95, 160)],
)
def test_what_rounding_changes_is_in_doubt(spread: float, temperature: float, top_p: float, most: int) -> None:
    # Far more rounding than there is, and few tokens, so that it changes some of them.
    logits = torch.from_numpy(np.random.default_rng(1).normal(0, spread, (8000, 32))).float()
    noise = torch.from_numpy(np.random.default_rng(2).uniform(-NOISE, NOISE, logits.shape))
    first, second = (
        drawn_by(each, temperature=temperature, top_p=top_p) for each in (logits, (logits + noise).float())
    )
    changed = {row for row, (a, b) in enumerate(zip(first[0], second[0], strict=True)) if a != b}
    assert changed
    for drawn in (first, second):
        assert changed <= {row for row, doubtful in enumerate(drawn[1]) if doubtful}
        assert sum(drawn[1]) <= most


def test_tokens_are_drawn_as_often_as_they_are_probable_and_in_doubt_where_they_equally_are() -> None:
    n = 20_000
    for n_tokens in (2, 13):
        probabilities = np.arange(1, n_tokens + 1) / (n_tokens * (n_tokens + 1) / 2)
        logits = torch.from_numpy(np.log(probabilities)).float().expand(n, -1)
        shares = np.bincount(drawn_by(logits)[0], minlength=n_tokens) / n
        assert shares == pytest.approx(probabilities, abs=5 * float(np.sqrt(0.25 / n)))
    drawn = drawn_by(torch.zeros((50, 64)), top_p=0.5)
    assert set(drawn[0]) <= set(range(32)), "among equally probable tokens, lower ids come first"
    assert all(drawn[1])


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
