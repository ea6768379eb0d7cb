"""LoRA adapters, one for everything or one for each context, against the same weights added to the model by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from evaluators.adapter_set import base_identity
from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.vllm_backend import open_backend
from evaluators.models.model_files import find_model
from evaluators.models.tokenizer import TokenRows
from schemas.documents.adapters import PUBLISHED, Adapters, BaseModel, TrainedAdapter, TrainingData
from schemas.documents.base import SCHEMA_VERSION
from schemas.files import contract
from tests.evaluators.adapted import merged
from tests.evaluators.asking import all_answers_of
from tests.vllm.conftest import HEAD_SIZE, choices, load_plain, plain_logprob

RANK, ALPHA = 4, 8
WIDTH = 4 * HEAD_SIZE


def made_weights(seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"lora_A": (RANK, WIDTH), "lora_B": (WIDTH, RANK)}
    return {
        f"base_model.model.model.layers.{layer}.self_attn.q_proj.{part}.weight": 0.2
        * torch.randn(shape, generator=generator)
        for layer in (0, 1)
        for part, shape in shapes.items()
    }


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_adapter(tmp_path_factory.mktemp("adapters") / "made-adapter", made_weights(0))


def save_adapter(folder: Path, weights: dict[str, Any]) -> Path:
    folder.mkdir(parents=True)
    save_file(weights, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA}
    config |= {"target_modules": ["q_proj"], "lora_dropout": 0.0, "bias": "none", "base_model_name_or_path": None}
    config |= {"inference_mode": True}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_an_adapter_changes_the_answers_as_its_weights_say(made_llama: Path, adapter: Path) -> None:
    backend = open_backend(str(made_llama), BackendOptions(dtype="float32", lora=str(adapter)))
    bare = open_backend(str(made_llama), BackendOptions(dtype="float32"))
    assert backend.model.id == "local/made-adapter"
    assert backend.model.identity_sha256 != bare.model.identity_sha256
    assert "--lora made-adapter" in backend.arguments
    request = choices(2)[1]
    (response,) = all_answers_of(backend, [request])
    rows = backend.tokenizer.rows(request)
    assert isinstance(rows, TokenRows)
    without, expected = logprobs(load_plain(made_llama), rows), logprobs(merged(made_llama, adapter), rows)
    assert max(abs(one - other) for one, other in zip(expected, without, strict=True)) > 0.1
    assert response.option_logprobs == pytest.approx(expected, abs=1e-3)


def write_list(folder: Path, made_llama: Path, contexts: Mapping[str, dict[str, Any]]) -> None:
    """Write adapters for contexts, as finetune does."""
    found = []
    for name, weights in contexts.items():
        path = save_adapter(folder / name, weights)
        config, _, prompt = name.partition("/")
        found.append(
            TrainedAdapter(
                config=config,
                prompt=prompt,
                path=name,
                weights_sha256=sha256_file(path / "adapter_model.safetensors"),
                settings_sha256=sha256_file(path / "adapter_config.json"),
                item_ids=("one",),
                logprob_before=-2.0,
                logprob_after=-1.0,
            )
        )
    files = find_model(str(made_llama), None)
    told = Adapters(
        schema_version=SCHEMA_VERSION,
        base=BaseModel(
            id=files.public_name,
            revision=files.revision,
            identity_sha256=base_identity(files.identity),
            precision="float32",
            tokenizer_sha256=None,
            chat_template_sha256=None,
        ),
        data=TrainingData(
            name="made", version="1.0.0", content_sha256="0" * 64, task="classification", task_version="1.0"
        ),
        hyperparameters=replace(PUBLISHED, n_items=1, rank=RANK, alpha=ALPHA),
        target_modules=("q_proj",),
        computation="float32 on cpu",
        packages={},
        adapters=tuple(found),
    )
    strict_json.write(folder / "adapters.json", contract.dump(told))


def test_each_request_is_answered_with_the_adapter_that_it_names(made_llama: Path, tmp_path: Path) -> None:
    contexts = {"left/k0": made_weights(1), "right/k0": made_weights(2)}
    write_list(tmp_path / "made", made_llama, contexts)
    backend = open_backend(str(made_llama), BackendOptions(dtype="float32", lora=str(tmp_path / "made")))
    assert backend.model.id == f"local/{made_llama.name}-LoRA"
    assert (backend.model.identity or {})["adapters"] == sha256_file(tmp_path / "made" / "adapters.json")
    assert "--lora made" in backend.arguments
    request = choices(2)[1]
    # The same question twice, and in an order that changes adapters.
    asked = [replace(request, adapter=name) for name in ("left/k0", "right/k0", "left/k0")]
    answers = all_answers_of(backend, asked)
    rows = backend.tokenizer.rows(request)
    assert isinstance(rows, TokenRows)
    for one, answer in zip(asked, answers, strict=True):
        expected = logprobs(merged(made_llama, tmp_path / "made" / str(one.adapter)), rows)
        assert answer.option_logprobs == pytest.approx(expected, abs=1e-3)
    first, second, _ = answers
    assert first.option_logprobs != pytest.approx(second.option_logprobs, abs=0.1)
    with pytest.raises(ConfigError, match="has no adapter for a request that names no context"):
        all_answers_of(backend, [request])


def logprobs(network: Any, rows: TokenRows) -> list[float]:
    return [plain_logprob(network, ids, rows.n_context) for ids in rows.ids]
