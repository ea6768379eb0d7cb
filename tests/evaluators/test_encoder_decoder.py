"""Models of an encoder and a decoder against plain transformers: one request, one option, one pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.lora import open_trainer
from evaluators.backends.transformers.transformers_backend import TransformersBackend, open_backend
from schemas.documents.adapters import PUBLISHED
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import made_items
from tests.evaluators.made_tokenizers import save_trained

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

EXACT = 1e-4
TEXTS = [f"{item.sentence} '{item.pronoun.title()}' refers to the {item.reference}." for item in made_items(60)]


def save_two_parts(folder: Path, kind: str) -> Path:
    """A small T5 or BART with random weights, and a tokenizer with the special tokens that its kind has."""
    is_t5 = kind == "T5"
    special = ["<pad>", "</s>", "<unk>"] if is_t5 else ["<s>", "<pad>", "</s>", "<unk>"]
    names: dict[str, Any] = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    if is_t5:
        fast = save_trained(folder, "pieces", TEXTS, special, size=300, single="$A </s>", **names)
    else:
        fast = save_trained(folder, "bytes", TEXTS, special, size=400, single="<s> $A </s>", bos_token="<s>", **names)
    torch.manual_seed(7)
    pad, end = special.index("<pad>"), special.index("</s>")
    shared = {"vocab_size": len(fast), "d_model": 32, "pad_token_id": pad, "eos_token_id": end}
    if is_t5:
        config = transformers.T5Config(
            **shared, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=pad, initializer_factor=1.0
        )
        network = transformers.T5ForConditionalGeneration(config)
    else:
        sizes = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
        sides = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in sizes.items()}
        ends = {"bos_token_id": 0, "decoder_start_token_id": end, "forced_eos_token_id": None}
        config = transformers.BartConfig(**shared, **sides, **ends, max_position_embeddings=128, init_std=0.3)
        network = transformers.BartForConditionalGeneration(config)
    network.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["T5", "Bart"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_two_parts(tmp_path_factory.mktemp("models") / "two-parts", request.param)


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_two_parts(tmp_path_factory.mktemp("models") / "t5", "T5")


def plain(folder: Path, prompt: str, option: str) -> tuple[float, float, int]:
    """Log-probability of an option, that of the end after it, and its tokens, by plain ``model(input_ids, labels)``."""
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    labels = tokenizer(option)["input_ids"]
    with torch.no_grad():
        logits = network(torch.tensor([tokenizer(prompt)["input_ids"]]), labels=torch.tensor([labels])).logits[0]
    logprobs = [float(torch.log_softmax(row, dim=-1)[token]) for row, token in zip(logits, labels, strict=True)]
    # BART's targets begin with a token that every target has.
    first = 1 if labels[0] == tokenizer.bos_token_id else 0
    return sum(logprobs[first:-1]), logprobs[-1], len(labels) - 1 - first


REQUESTS = [
    ChoiceRequest(prompt=TEXTS[0], options=(" the nurse", " the guard who waited"), outcomes=("a", "b")),
    ChoiceRequest(prompt=TEXTS[1] + TEXTS[2], options=(" A", " B", " the"), outcomes=("a", "b", "c")),
    ChoiceRequest(prompt="room", options=("could leave", "waited"), outcomes=("a", "b")),
]


@pytest.mark.slow
@pytest.mark.parametrize("batch_tokens", [None, 90])
def test_options_score_as_labels_do_in_plain_transformers(model: Path, batch_tokens: int | None) -> None:
    backend = open_backend(str(model), BackendOptions(device="cpu", batch_tokens=batch_tokens))
    for request, answer in zip(REQUESTS, all_answers_of(backend, REQUESTS), strict=True):
        expected = [plain(model, request.prompt, option.lstrip()) for option in request.options]
        assert answer.option_logprobs == pytest.approx([value for value, _, _ in expected], abs=EXACT)
        assert answer.option_end_logprobs == pytest.approx([end for _, end, _ in expected], abs=EXACT)
        assert answer.option_token_counts == tuple(n for _, _, n in expected)
        assert answer.n_moved_tokens == 0
    assert backend.runtime.settings["option_scoring"] == "plain"


def test_an_answer_that_has_begun_is_continued_by_the_decoder(t5: Path) -> None:
    backend = open_backend(str(t5), BackendOptions(device="cpu"))
    begun = " the nurse"
    request = ChoiceRequest(
        prompt=TEXTS[0] + begun, n_begun=len(begun), options=(" waited", " could leave"), outcomes=("a", "b")
    )
    (answer,) = all_answers_of(backend, [request])
    whole, start = (plain(t5, TEXTS[0], text) for text in (begun + " waited", begun))
    assert answer.option_logprobs[0] == pytest.approx(whole[0] - start[0], abs=EXACT)
    assert answer.option_token_counts[0] == whole[2] - start[2]


@pytest.mark.slow
def test_texts_equal_those_of_generate(model: Path) -> None:
    backend = open_backend(str(model), BackendOptions(device="cpu"))
    requests = [GenerateRequest(prompt=text, max_tokens=12, with_logprob=True) for text in TEXTS[:4]]
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(model, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    for request, answer in zip(requests, all_answers_of(backend, requests), strict=True):
        ids = torch.tensor([tokenizer(request.prompt)["input_ids"]])
        made = network.generate(ids, max_new_tokens=12, do_sample=False, num_beams=1)[0].tolist()
        assert answer.text == tokenizer.decode(made, skip_special_tokens=True)
        assert answer.n_prompt_tokens == ids.shape[1]
        new = made[1:]
        with torch.no_grad():
            logits = network(ids, decoder_input_ids=torch.tensor([made[:-1]])).logits[0]
        logprobs = [float(torch.log_softmax(row, dim=-1)[token]) for row, token in zip(logits, new, strict=True)]
        assert answer.text_logprob == pytest.approx(sum(logprobs), abs=EXACT)
        assert answer.n_completion_tokens == len(new)


def test_what_does_not_fit_is_refused_in_one_line(t5: Path) -> None:
    for options, said in (
        (BackendOptions(scoring="packed"), "--scoring packed: is for models that continue a text"),
        (BackendOptions(chat=True), "the tokenizer has no chat template"),
    ):
        with pytest.raises(ConfigError, match=said):
            open_backend(str(t5), options)
    with pytest.raises(ConfigError, match="has an encoder, and adapters are trained for models that continue a text"):
        open_trainer(str(t5), BackendOptions(device="cpu"), PUBLISHED)


def test_what_is_too_long_or_empty_fails_alone(tmp_path: Path) -> None:
    backend = open_backend(str(save_two_parts(tmp_path, "Bart")), BackendOptions(device="cpu"))
    assert isinstance(backend, TransformersBackend)
    assert backend.context_tokens == 128
    long = ChoiceRequest(prompt="a " * 200, options=(" A", " B"), outcomes=("a", "b"))
    empty = ChoiceRequest(prompt="a", options=(" ", " B"), outcomes=("a", "b"))
    too_long, nothing, whole = all_answers_of(backend, [long, empty, REQUESTS[0]])
    assert "tokens, the model 128" in str(too_long.error)
    assert nothing.error == "option ' ' has no tokens of its own"
    assert whole.status == "answered"
