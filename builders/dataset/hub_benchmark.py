"""Renders the eval.yaml of a dataset folder, by which the Hugging Face Hub takes its repository for a benchmark."""

from __future__ import annotations

import yaml

from schemas.documents.dataset import Manifest

BENCHMARK_FILE = "eval.yaml"
FRAMEWORK = "biasboard"
"""Name of this framework. The Hub takes only names from a list of its own, to which one is added on request."""


def render_benchmark(manifest: Manifest) -> str:
    """Return the eval.yaml of a dataset: one task for each split of each config."""
    told = {
        "name": manifest.title,
        "description": _description(manifest),
        "evaluation_framework": FRAMEWORK,
        "tasks": [
            {"id": task_id(manifest, entry.config, entry.split), "config": entry.config, "split": entry.split}
            for entry in manifest.splits
        ],
    }
    text: str = yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=1000)
    return text


def task_id(manifest: Manifest, config: str, split: str) -> str:
    """Return the id of a task: the name of the config, followed by that of the split if the config has several."""
    n_splits = sum(entry.config == config for entry in manifest.splits)
    return config if n_splits == 1 else f"{config}-{split}"


def _description(manifest: Manifest) -> str:
    n_items = sum(entry.n_items for entry in manifest.splits)
    configs = "1 config" if len(manifest.configs) == 1 else f"{len(manifest.configs)} configs"
    validated = "people wrote or checked the texts" if manifest.human_validated else "no human has validated the texts"
    return (
        f"Dataset {manifest.name}, version {manifest.version}, of the benchmark {manifest.benchmark}: "
        f"{n_items:,} items in {configs}; {validated}."
    )
