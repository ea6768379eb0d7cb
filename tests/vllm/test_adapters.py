"""LoRA adapters, against the same weights added to the model by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.backend import open_backend
from evaluators.models.tokenizer import Rows
from schemas.errors import ConfigError
from tests.evaluators.asking import all_answers_of
from tests.vllm.conftest import HEAD_SIZE
from tests.vllm.made_requests import choices
from tests.vllm.plain_model import load_plain, plain_logprob

RANK, ALPHA = 4, 8
WIDTH = 4 * HEAD_SIZE


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"lora_A": (RANK, WIDTH), "lora_B": (WIDTH, RANK)}
    return {
        f"base_model.model.model.layers.{layer}.self_attn.q_proj.{part}.weight": 0.2
        * torch.randn(shape, generator=generator)
        for layer in (0, 1)
        for part, shape in shapes.items()
    }


@pytest.fixture(scope="module")
def adapter(weights: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapters") / "made-adapter"
    folder.mkdir()
    save_file(weights, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA}
    config |= {"target_modules": ["q_proj"], "lora_dropout": 0.0, "bias": "none", "base_model_name_or_path": None}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_an_adapter_changes_the_answers_as_its_weights_say(
    made_llama: Path, adapter: Path, weights: dict[str, Any]
) -> None:
    backend = open_backend(str(made_llama), BackendOptions(dtype="float32", lora=str(adapter)))
    bare = open_backend(str(made_llama), BackendOptions(dtype="float32"))
    assert backend.model.id == "local/made-adapter"
    assert backend.model.identity_sha256 != bare.model.identity_sha256
    assert "--lora made-adapter" in backend.arguments
    request = choices(2)[1]
    (response,) = all_answers_of(backend, [request])
    network = load_plain(made_llama)
    rows = backend.tokenizer.rows(request)
    assert isinstance(rows, Rows)
    without = logprobs(network, rows)
    with torch.no_grad():
        for layer in (0, 1):
            name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
            added = weights[f"{name}.lora_B.weight"] @ weights[f"{name}.lora_A.weight"] * (ALPHA / RANK)
            network.model.layers[layer].self_attn.q_proj.weight += added
    expected = logprobs(network, rows)
    assert max(abs(one - other) for one, other in zip(expected, without, strict=True)) > 0.1
    assert response.option_logprobs == pytest.approx(expected, abs=1e-3)


def logprobs(network: Any, rows: Rows) -> list[float]:
    return [plain_logprob(network, ids, rows.n_context) for ids in rows.ids]


def test_an_adapter_without_weights_or_rank_is_refused(made_llama: Path, adapter: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"has no weights \(one of adapter_model\.safetensors"):
        open_backend(str(made_llama), BackendOptions(lora=str(tmp_path)))
    (tmp_path / "adapter_model.safetensors").write_bytes((adapter / "adapter_model.safetensors").read_bytes())
    with pytest.raises(ConfigError, match="names no rank 'r'"):
        open_backend(str(made_llama), BackendOptions(lora=str(tmp_path)))
    (tmp_path / "adapter_config.json").unlink()
    with pytest.raises(ConfigError, match=r"has no adapter_config\.json"):
        open_backend(str(made_llama), BackendOptions(lora=str(tmp_path)))
