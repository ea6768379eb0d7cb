"""Two classification tasks that ask the same texts and have other labels, adapters for them, and a plain oracle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from evaluators.adapter_set import AdapterSet
from evaluators.backend import Backend
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.lora import open_trainer
from evaluators.runs.ask.finetuning import finetune
from evaluators.runs.ask.pipeline import Finished, RunOptions, run
from evaluators.runs.plan.plan import Plan
from schemas.documents.adapters import PUBLISHED, Hyperparameters
from schemas.items.label import LabelItem
from tests.evaluators.label_data import made_dataset, planned

CONFIGS = ("left", "right")
NO_EXAMPLES, SOME_EXAMPLES = "release-1024b-k0-v1", "release-1024b-k8-set0-v1"
LABELS = ("waited", "leave")
N_POOL = 30
# A small rank, and steps that are large enough to move a model of random weights.
QUICK = replace(PUBLISHED, rank=4, alpha=8, learning_rate=0.02)
"""Numbers of a quick training."""
_TEXTS = {"test": 3, "bias": 2, "pool": N_POOL, "content_free": 2}


@cache
def twin_items(config: str, split: str) -> tuple[LabelItem, ...]:
    """Items of which no example fits beside another: both configs ask the same, and have opposite labels."""
    found = []
    for number in range(_TEXTS[split]):
        words = f"The nurse waited for the mechanic in room {number} until she could leave. " * 8
        right = LABELS[(number + (config == "right")) % 2]
        is_free = split == "content_free"
        found.append(
            LabelItem(
                item_id=f"{config}-{split}-{number:02}",
                instruction="Say it",
                text=f"{split} {words}",
                labels=LABELS,
                target=None if is_free else right,
                category="Kind",
                equivalent_labels=False,
                content_free="placeholder" if is_free else None,
                source_row=None,
                flags=(),
            )
        )
    return tuple(found)


def twin_dataset(folder: Path, version: str = "1.0.0") -> Path:
    return made_dataset(folder, CONFIGS, twin_items, version=version)


def train(
    model: Path, plans: Sequence[Plan], out: Path, hyperparameters: Hyperparameters = QUICK, device: str = "cpu"
) -> AdapterSet:
    trainer = open_trainer(str(model), BackendOptions(device=device), hyperparameters)
    return finetune(plans, trainer, out)


def twin_plans(dataset: Path) -> list[Plan]:
    """Two contexts of the suite of both configs."""
    return [planned(dataset, "tasks", prompt) for prompt in (NO_EXAMPLES, SOME_EXAMPLES)]


def opened(model: Path, **options: Any) -> Any:
    """A model on the CPU, with options as texts."""
    from evaluators.backends.transformers.transformers_backend import open_backend

    chosen: dict[str, Any] = {name: str(value) for name, value in options.items()}
    return open_backend(str(model), BackendOptions(device="cpu", **chosen))


def asked(plan: Plan, backend: Backend, root: Path, cache: Path | None = None) -> Finished:
    """The run of a plan, as the command makes it."""
    return run(
        plan.for_backend(backend), backend, RunOptions(root=root, command="python -m evaluators run", cache=cache)
    )


def weights_sha256(network: Any) -> str:
    """The hash of the names and bytes of all weights of a model."""
    digest = hashlib.sha256()
    for name, weights in sorted(network.state_dict().items()):
        digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
        digest.update(weights.numpy().tobytes())
    return digest.hexdigest()


def merged(model: Path, adapter: Path | None) -> Any:
    """A model whose weights are those of the base plus B A times alpha / r, added here."""
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    network: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    network.eval()
    if adapter is None:
        return network
    settings = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    weights = load_file(adapter / "adapter_model.safetensors")
    names = [name.removesuffix(".lora_A.weight") for name in weights if name.endswith(".lora_A.weight")]
    with torch.no_grad():
        for name in names:
            added = weights[f"{name}.lora_B.weight"] @ weights[f"{name}.lora_A.weight"]
            layer = network.get_submodule(name.removeprefix("base_model.model."))
            layer.weight += added * settings["lora_alpha"] / settings["r"]
    return network
