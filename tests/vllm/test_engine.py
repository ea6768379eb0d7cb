"""The backend on the real engine, against plain forward passes and greedy decoding with transformers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, plan_blocks
from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.vllm_backend import VllmBackend, open_backend
from tests.evaluators.asking import all_answers_of, answers_of
from tests.evaluators.made_data import save_tiny_llama
from tests.vllm.conftest import HEAD_SIZE, choices, load_plain, plain_logprob

TOLERANCE = 1e-3
PROMPT = "The guard waited for the nurse in room 3 until"


@pytest.fixture(scope="module")
def network(made_llama: Path) -> Any:
    return load_plain(made_llama)


@pytest.fixture(scope="module")
def tokenizer(made_llama: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(made_llama)


def sampled(n: int, **chosen: Any) -> list[GenerateRequest]:
    return [
        GenerateRequest(prompt=PROMPT, max_tokens=12, temperature=1.0, sample=index, **chosen) for index in range(n)
    ]


def test_options_and_end_tokens_equal_plain_passes_and_what_was_used_is_recorded(
    engine: VllmBackend, network: Any, tokenizer: Any
) -> None:
    request = ChoiceRequest(prompt=PROMPT, options=(" she", " she could", " she could leave"), outcomes=("a", "b", "c"))
    (response,) = all_answers_of(engine, [request])
    n_context = len(tokenizer(PROMPT)["input_ids"])
    rows = [tokenizer(PROMPT + option)["input_ids"] for option in request.options]
    plain = [plain_logprob(network, ids, n_context) for ids in rows]
    ends = [plain_logprob(network, [*ids, tokenizer.eos_token_id], len(ids)) for ids in rows]
    assert response.option_logprobs == pytest.approx(plain, abs=TOLERANCE)
    assert response.option_end_logprobs == pytest.approx(ends, abs=TOLERANCE)
    assert response.option_token_counts == tuple(len(ids) - n_context for ids in rows)
    assert (response.n_prompt_tokens, response.n_moved_tokens) == (n_context, 0)
    assert engine.runtime.settings["option_scoring"] == "option_trie"
    assert engine.runtime.settings["batch_invariant"] == "0"
    assert {"vllm", "torch", "transformers", "tokenizers"} <= set(engine.runtime.packages)
    assert engine.arguments == ("--model made-llama", "--dtype float32", "--end-logprobs")


def test_a_resumed_run_gets_the_same_answers(engine: VllmBackend) -> None:
    asked: list[Request] = [*choices(60), *sampled(6)]
    small = replace(engine, chunk_texts=40)
    chunks = plan_blocks(asked, small.block_limits)
    assert len(chunks) >= 4
    whole = all_answers_of(small, asked)
    left = frozenset(place for chunk in chunks[2:] for place in chunk)
    resumed = answers_of(small, asked, left)
    assert [place for place, answer in enumerate(resumed) if answer is not None] == sorted(left)
    assert all(resumed[place] == whole[place] for place in left)


def test_more_tokens_than_one_engine_request_takes(engine: VllmBackend, network: Any, tokenizer: Any) -> None:
    context = tokenizer(PROMPT)["input_ids"]
    words = {tokenizer.decode([token]) for token in range(3, len(tokenizer))}
    options = sorted(word for word in words if tokenizer(PROMPT + word)["input_ids"][:-1] == context)
    assert len(options) > 128
    request = ChoiceRequest(prompt=PROMPT, options=tuple(options), outcomes=tuple(options))
    (response,) = all_answers_of(engine, [request])
    with torch.no_grad():
        after = torch.log_softmax(network(torch.tensor([context])).logits[0, -1].double(), dim=-1)
    plain = [float(after[tokenizer(PROMPT + option)["input_ids"][-1]]) for option in options]
    assert response.option_logprobs == pytest.approx(plain, abs=TOLERANCE)


def test_what_does_not_fit_fails_alone(engine: VllmBackend) -> None:
    long = "The guard waited. " * 80
    asked: list[Request] = [
        ChoiceRequest(prompt=long, options=(" a", " b"), outcomes=("a", "b")),
        GenerateRequest(prompt=long, max_tokens=8),
        *choices(1),
        GenerateRequest(prompt=PROMPT, max_tokens=300),
    ]
    answers = all_answers_of(engine, asked)
    assert [answer.status for answer in answers] == ["failed", "failed", "answered", "answered"]
    assert str(answers[0].error).endswith("tokens, the model 256")
    assert "leaves none of the model's 256 for an answer" in str(answers[1].error)
    # An answer that is cut off at the end of the room, not one that is refused for what it might have become.
    counts = answers[3].n_prompt_tokens, answers[3].n_completion_tokens
    assert None not in counts
    assert sum(count or 0 for count in counts) <= 256


def test_greedy_text_equals_plain_decoding(engine: VllmBackend, network: Any, tokenizer: Any) -> None:
    ids = tokenizer(PROMPT)["input_ids"]
    logprob = 0.0
    with torch.no_grad():
        while len(ids) < len(tokenizer(PROMPT)["input_ids"]) + 8:
            logprobs = torch.log_softmax(network(torch.tensor([ids])).logits[0, -1], dim=-1)
            logprob += float(logprobs.max())
            ids = [*ids, int(logprobs.argmax())]
    text = tokenizer.decode(ids)[len(tokenizer.decode(tokenizer(PROMPT)["input_ids"])) :]
    (answer,) = all_answers_of(engine, [GenerateRequest(prompt=PROMPT, max_tokens=8, with_logprob=True)])
    assert (answer.text, answer.n_completion_tokens, answer.finish_reason) == (text, 8, "length")
    assert answer.text_logprob == pytest.approx(logprob, abs=8 * TOLERANCE)
    middle = text[len(text) // 2 :][:4]
    (stopped,) = all_answers_of(engine, [GenerateRequest(prompt=PROMPT, max_tokens=8, stop=(middle,))])
    assert (stopped.text, stopped.finish_reason) == (text[: text.index(middle)], "stop")


def test_samples_depend_on_their_request_alone(engine: VllmBackend) -> None:
    asked = sampled(16)
    together = [answer.text for answer in all_answers_of(engine, asked)]
    assert len(set(together)) > 8
    assert [answer.text for answer in all_answers_of(engine, asked[::-1])] == together[::-1]
    assert [answer.text for answer in all_answers_of(engine, asked[5:6])] == together[5:6]
    assert [answer.text for answer in all_answers_of(engine, sampled(16, seed=1))] != together


def test_chat_asks_through_the_template(made_llama: Path, engine: VllmBackend, network: Any, tokenizer: Any) -> None:
    chat = open_backend(str(made_llama), BackendOptions(dtype="float32", chat=True))
    assert chat.model.chat_template_sha256 is not None
    assert chat.model.identity_sha256 != engine.model.identity_sha256
    request = ChoiceRequest(prompt=PROMPT, options=(" he", " she"), outcomes=("he", "she"))
    # The same engine: a template changes what is asked, not who answers.
    (response,) = all_answers_of(replace(chat, loaded=engine.pool()), [request])
    texts = [f"<s>The user: {PROMPT} The nurse: {option}" for option in ("", "he", "she")]
    context, *rows = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)
    while any(ids[: len(context)] != context for ids in rows):
        context = context[:-1]
    assert response.option_logprobs == pytest.approx(
        [plain_logprob(network, ids, len(context)) for ids in rows], abs=TOLERANCE
    )


def test_a_model_that_the_engine_cannot_compute_is_one_clear_line(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path / "small-heads")
    backend = open_backend(str(folder), BackendOptions())
    with pytest.raises(ConfigError, match=r"vLLM refuses model .*head_dim=16.*; use --backend transformers$") as caught:
        all_answers_of(backend, choices(1))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dtype": "float8"}, r"--dtype float8 does not exist; have: float32, bfloat16, float16"),
        ({"max_model_len": 1000}, r"max_model_len \(1000\) is greater.*; give another --max-model-len"),
        ({"gpu_memory": 1.5}, r"--gpu-memory 1\.5 is no share"),
        ({"tensor_parallel": 2}, "--tensor-parallel needs a GPU"),
        ({"data_parallel": 4096}, "--data-parallel 4096 needs as many cores"),
    ],
)
def test_options_that_cannot_be_met_are_refused(made_llama: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_backend(str(made_llama), BackendOptions(**options))


def test_other_weights_or_precision_are_another_model(made_llama: Path, engine: VllmBackend, tmp_path: Path) -> None:
    other = save_tiny_llama(tmp_path / made_llama.name, seed=1, head_size=HEAD_SIZE)
    (other / "chat_template.jinja").write_bytes((made_llama / "chat_template.jinja").read_bytes())
    models = [
        open_backend(str(folder), BackendOptions(dtype=dtype, end_logprobs=True)).model
        for folder, dtype in ((made_llama, "float32"), (made_llama, "bfloat16"), (other, "float32"))
    ]
    assert models[0] == engine.model
    assert {model.id for model in models} == {"local/made-llama"}
    assert len({model.identity_sha256 for model in models}) == 3
