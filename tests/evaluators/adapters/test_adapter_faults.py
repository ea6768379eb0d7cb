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


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (damaged_list, r"adapters\.json: adapters\[0\].*item_ids"),
        (doubled, r"adapters: context left/release-1024b-k0-v1 stands twice"),
        (outside, r"adapters\[0\]\.path"),
        (lost_weights, r"adapter_model\.safetensors: no such file; train the adapter again"),
        (swapped_weights, r"adapter_model\.safetensors: sha256 .* remove the folder and train the adapter again"),
        (other_scale, r"adapter_config\.json: sha256 .* remove the folder and train the adapter again"),
        (other_shape, r"does not fit LlamaForCausalLM: .*size mismatch"),
        (fewer_layers, r"lacks .*layers\.1.*; give one that was trained for this model"),
    ],
)
def test_damaged_adapters_are_refused(
    model: Path,
    dataset: Path,
    adapters: Path,
    tmp_path: Path,
    damage: Callable[[Path], None],
    expected: str,
) -> None:
    folder = Path(shutil.copytree(adapters, tmp_path / "copy"))
    damage(folder)
    with pytest.raises(BiasboardError, match=expected) as error:
        asked(planned(dataset, "tasks", NO_EXAMPLES), opened(model, lora=folder), tmp_path / "runs")
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "runs").rglob("result.json"))
