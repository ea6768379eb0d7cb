"""Weights in GGUF: the same model in a file of another form, written here with the package gguf."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.transformers_backend import open_backend
from evaluators.models.model_files import find_model
from evaluators.models.outline import outline_of
from tests.evaluators.asking import all_answers_of

pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

REQUESTS: list[Request] = [
    ChoiceRequest(prompt="The nurse waited for the", options=(" guard", " man"), outcomes=("a", "b")),
    GenerateRequest(prompt="The guard", max_tokens=5),
]


def write_gguf(model: Path, path: Path) -> None:
    """Write a Llama and its byte-level tokenizer as llama.cpp would, without quantising."""
    gguf = pytest.importorskip("gguf", reason="the extra quantised is not installed")
    network = transformers.AutoModelForCausalLM.from_pretrained(model)
    config = network.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    tokens = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(tokens["vocab"], key=tokens["vocab"].__getitem__))
    writer.add_token_types([1] * len(tokens["vocab"]))
    writer.add_token_merges([" ".join(pair) for pair in tokens["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in network.state_dict().items():
        weights = tensor.float().numpy()
        for kind, n_heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if name.endswith(f"{kind}.weight"):
                # llama.cpp interleaves the halves that rotary embeddings turn.
                halves = weights.reshape(n_heads, 2, weights.shape[0] // n_heads // 2, weights.shape[1])
                weights = halves.swapaxes(1, 2).reshape(weights.shape)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), np.ascontiguousarray(weights))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.slow
def test_a_file_in_gguf_answers_as_the_model_that_it_holds(tiny_llama: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in-gguf"
    folder.mkdir()
    write_gguf(tiny_llama, folder / "tiny.gguf")
    shutil.copy(folder / "tiny.gguf", folder / "other.gguf")
    backend = open_backend(str(folder), BackendOptions(device="cpu", gguf_file="tiny.gguf"))
    plain = all_answers_of(open_backend(str(tiny_llama), BackendOptions(device="cpu")), REQUESTS)
    choice, text = all_answers_of(backend, REQUESTS)
    assert choice.option_logprobs == pytest.approx(plain[0].option_logprobs, abs=1e-4)
    assert choice.option_end_logprobs == pytest.approx(plain[0].option_end_logprobs, abs=1e-4)
    assert text.text == plain[1].text
    # Which file it is belongs to the model.
    assert "--gguf-file tiny.gguf" in backend.arguments
    other = open_backend(str(folder), BackendOptions(device="cpu", gguf_file="other.gguf"))
    assert other.model.identity_sha256 != backend.model.identity_sha256
    outline = outline_of("transformers", str(folder), BackendOptions(gguf_file="tiny.gguf"))
    assert outline.count_tokens(REQUESTS) == backend.count_tokens(REQUESTS)


def test_a_folder_with_gguf_alone_says_how_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.Q4_K_M.gguf").touch()
    named = r"name the file with --backend transformers --gguf-file a\.Q4_K_M\.gguf$"
    with pytest.raises(ConfigError, match=named):
        find_model(str(tmp_path), None)
    with pytest.raises(ConfigError, match=named):
        find_model(str(tmp_path), None, gguf_file="b.gguf")
    with pytest.raises(ConfigError, match=f"is a file; give --model {tmp_path} --gguf-file a"):
        find_model(str(tmp_path / "a.Q4_K_M.gguf"), None)
    with pytest.raises(ConfigError, match="backend 'vllm' has no use for --gguf-file"):
        BackendOptions(gguf_file="a.gguf").refuse_others("vllm", but=("dtype",))


def test_a_file_that_is_no_gguf_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the extra quantised is not installed")
    (tmp_path / "a.gguf").write_bytes(b"no weights at all")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        open_backend(str(tmp_path), BackendOptions(device="cpu", gguf_file="a.gguf"))
