"""Adapters that are damaged, or belong to another model or dataset, are refused before a result is written."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import BiasboardError, ConfigError
from tests.evaluators.adapted import NO_EXAMPLES, asked, opened, twin_dataset
from tests.evaluators.label_data import planned
from tests.evaluators.made_data import save_tiny_llama

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("peft", reason="the extra train is not installed")


def changed(folder: Path, change: Callable[[Any], None]) -> Path:
    """Change the list of the adapters of a copy."""
    path = folder / "adapters.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_adapters_for_other_data_or_another_model_are_refused(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path
) -> None:
    backend = opened(model, lora=adapters)
    newer = twin_dataset(tmp_path / "newer", version="1.0.1")
    with pytest.raises(ConfigError, match=r"was trained on version 1\.0\.0, and version 1\.0\.1 is asked"):
        planned(newer, "tasks", NO_EXAMPLES).for_backend(backend)
    with pytest.raises(
        ConfigError,
        match=r"no adapter for config 'left' with prompt 'release-1024b-k8-set1-v1'; train it with: "
        r"biasboard finetune --dataset out/datasets/tasks .*--config left --prompt release-1024b-k8-set1-v1",
    ):
        planned(dataset, "left", "release-1024b-k8-set1-v1").for_backend(backend)
    other = save_tiny_llama(tmp_path / "other", seed=1, positions=1024)
    with pytest.raises(ConfigError, match=r"was trained for model tiny-llama .*, and --model names another one"):
        opened(other, lora=adapters)
    with pytest.raises(ConfigError, match="was trained with another --tokenizer"):
        opened(model, lora=adapters, tokenizer=other)
    with pytest.raises(
        ConfigError, match=r"holds neither adapter_config\.json nor adapters\.json; name the folder of "
    ):
        opened(model, lora=model)


def damaged_list(folder: Path) -> None:
    changed(folder, lambda value: value["adapters"][0].pop("item_ids"))


def doubled(folder: Path) -> None:
    changed(folder, lambda value: value["adapters"].append(value["adapters"][0]))


def outside(folder: Path) -> None:
    changed(folder, lambda value: value["adapters"][0].update(path="../elsewhere"))


def lost_weights(folder: Path) -> None:
    (folder / "left" / NO_EXAMPLES / "adapter_model.safetensors").unlink()


def swapped_weights(folder: Path) -> None:
    shutil.copy(
        folder / "right" / NO_EXAMPLES / "adapter_model.safetensors",
        folder / "left" / NO_EXAMPLES / "adapter_model.safetensors",
    )


def other_scale(folder: Path) -> None:
    path = folder / "left" / NO_EXAMPLES / "adapter_config.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"lora_alpha": 8', '"lora_alpha": 80'), encoding="utf-8")


def with_hash(folder: Path) -> None:
    path = folder / "left" / NO_EXAMPLES / "adapter_model.safetensors"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    def tell(value: Any) -> None:
        for adapter in value["adapters"]:
            if adapter["path"] == f"left/{NO_EXAMPLES}":
                adapter["weights_sha256"] = sha256

    changed(folder, tell)


def other_shape(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = folder / "left" / NO_EXAMPLES / "adapter_model.safetensors"
    save_file({name: weights[..., :3].contiguous() for name, weights in load_file(path).items()}, path)
    with_hash(folder)


def fewer_layers(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = folder / "left" / NO_EXAMPLES / "adapter_model.safetensors"
    save_file({name: weights for name, weights in load_file(path).items() if "layers.1" not in name}, path)
    with_hash(folder)


def other_settings(folder: Path) -> None:
    path = folder / "left" / NO_EXAMPLES / "adapter_config.json"
    settings = json.loads(path.read_text(encoding="utf-8")) | {"init_lora_weights": "pissa"}
    path.write_text(json.dumps(settings), encoding="utf-8")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    def tell(value: Any) -> None:
        for adapter in value["adapters"]:
            if adapter["path"] == f"left/{NO_EXAMPLES}":
                adapter["settings_sha256"] = sha256

    changed(folder, tell)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (damaged_list, r"adapters\.json: adapters\[0\].*item_ids"),
        (doubled, r"adapters: context left/release-1024b-k0-v1 stands twice"),
        (outside, r"adapters\[0\]\.path"),
        (lost_weights, r"adapter_model\.safetensors: no such file; train the adapter again"),
        (swapped_weights, r"adapter_model\.safetensors: sha256 .* remove the folder and train the adapter again"),
        (other_scale, r"adapter_config\.json: sha256 .* remove the folder and train the adapter again"),
        (other_settings, r"adapter_config\.json: has other settings than finetune writes; remove the folder and "),
        (other_shape, r"does not fit LlamaForCausalLM: .*size mismatch"),
        (fewer_layers, r"lacks .*layers\.1.*; give one that was trained for this model"),
    ],
)
def test_damaged_adapters_are_refused(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path, damage: Callable[[Path], None], expected: str
) -> None:
    folder = Path(shutil.copytree(adapters, tmp_path / "copy"))
    damage(folder)
    with pytest.raises(BiasboardError, match=expected) as error:
        asked(planned(dataset, "tasks", NO_EXAMPLES), opened(model, lora=folder), tmp_path / "runs")
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "runs").rglob("result.json"))


HEAD, SLOW = "base_model.model.lm_head.weight", r"([\w.]+)+!"
SETTINGS_OF_STRANGERS: dict[str, tuple[dict[str, Any], str]] = {
    "ranks that would fill the memory": ({"r": 10**9}, "states rank 1000000000, and its weights have 4"),
    "ranks of some layers": ({"rank_pattern": {"q_proj": 10**9}}, "states rank 1000000000, and its weights have 4"),
    "a rank in words": ({"r": "2"}, "states rank '2', and its weights have 4"),
    "no finite rank": ({"r": float("inf")}, "names no rank 'r'"),
    "ranks by a slow pattern": ({"rank_pattern": {SLOW: 1}}, r"names layers by the pattern '\(\["),
    "scales by a slow pattern": ({"alpha_pattern": {SLOW: 1}}, r"names layers by the pattern '\(\["),
    "copies by a slow pattern": ({"modules_to_save": [SLOW]}, r"names layers by the pattern '\(\["),
    "layers many times": ({"layer_replication": [[0, 2]] * 10**5}, "changes more of a model than its weights"),
    "a module to import": ({"megatron_config": {"a": 1}, "megatron_core": "this"}, "changes more of a model than its"),
}
WEIGHTS_OF_STRANGERS = {
    "a layer of the model": (HEAD, {}),
    "a layer below an adapted one": ("base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight", {}),
    "a layer beside its copy": ("base_model.model.lm_head.original_module.weight", {"modules_to_save": ["lm_head"]}),
}


@pytest.fixture
def single(adapters: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(adapters / "left" / NO_EXAMPLES, tmp_path / "single"))


def set_settings(folder: Path, **settings: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | settings), encoding="utf-8")


@pytest.mark.parametrize(("settings", "said"), SETTINGS_OF_STRANGERS.values(), ids=SETTINGS_OF_STRANGERS)
def test_settings_of_a_strangers_adapter(model: Path, single: Path, settings: dict[str, Any], said: str) -> None:
    set_settings(single, **settings)
    with pytest.raises(ConfigError, match=said) as error:
        opened(model, lora=single)
    assert "\n" not in str(error.value)


def test_nested_settings_are_one_line(model: Path, single: Path) -> None:
    (single / "adapter_config.json").write_text("[" * 100_000, encoding="ascii")
    with pytest.raises(BiasboardError, match=r"adapter_config\.json: cannot be read as JSON"):
        opened(model, lora=single)


@pytest.mark.parametrize(("name", "settings"), WEIGHTS_OF_STRANGERS.values(), ids=WEIGHTS_OF_STRANGERS)
def test_an_adapter_replaces_no_weight_of_its_model(
    model: Path, single: Path, name: str, settings: dict[str, Any]
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    path = single / "adapter_model.safetensors"
    before = load_file(model / "model.safetensors")
    own = before[name.removeprefix("base_model.model.").replace(".base_layer", "").replace(".original_module", "")]
    copied = {HEAD: torch.zeros_like(own)} if settings else {}
    set_settings(single, **settings)
    save_file(load_file(path) | copied | {name: torch.ones_like(own)}, path)
    with pytest.raises(ConfigError, match=r"replaces a weight of the model \(base_model\.model\."):
        opened(model, lora=single)
    # As peft saves the embeddings of a model beside an adapter for them, or with copies of layers.
    save_file(load_file(path) | copied | {name: own.clone()}, path)
    opened(model, lora=single)


@pytest.mark.parametrize(
    "settings",
    [
        {"target_modules": SLOW},
        {"exclude_modules": SLOW},
        {"layers_to_transform": [0], "layers_pattern": [SLOW]},
        {"alpha_pattern": {"^model.layers.*.q_proj": 4}},
    ],
)
def test_layers_are_those_that_the_weights_name(model: Path, single: Path, settings: dict[str, Any]) -> None:
    set_settings(single, **settings)
    opened(model, lora=single)
