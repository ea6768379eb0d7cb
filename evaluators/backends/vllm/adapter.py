"""Finds a LoRA adapter and reads what an engine needs to know about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from evaluators.models.model_files import ModelFiles, find_files
from schemas.errors import ConfigError

_ADAPTER_CONFIG = "adapter_config.json"


class Adapter(NamedTuple):
    """A LoRA adapter in a folder on this machine."""

    files: ModelFiles
    folder: str
    rank: int


def find_adapter(name: str) -> Adapter:
    """Find a LoRA adapter in a folder, or on the Hub as ``ID`` or ``ID@REVISION``.

    Raises:
        ConfigError: the adapter cannot be found, or it lacks its weights or its rank.
    """
    if Path(name).is_dir():
        files = find_files(name, None, needed=_ADAPTER_CONFIG, what="LoRA adapter")
        folder = Path(name)
    else:
        repository, _, revision = name.partition("@")
        files = find_files(repository, revision or None, needed=_ADAPTER_CONFIG, what="LoRA adapter")
        folder = _download(files)
    weights = ("adapter_model.safetensors", "adapter_model.bin")
    if not any((folder / file).is_file() for file in weights):
        raise ConfigError(
            f"LoRA adapter '{name}' has no weights (one of {', '.join(weights)}); save it with save_pretrained"
        )
    try:
        config = json.loads((folder / _ADAPTER_CONFIG).read_text(encoding="utf-8"))
        rank = max([int(config["r"]), *map(int, (config.get("rank_pattern") or {}).values())])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"LoRA adapter '{name}': {_ADAPTER_CONFIG} names no rank 'r'; is it a LoRA?") from error
    return Adapter(files, str(folder), rank)


def _download(files: ModelFiles) -> Path:
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(files.location, revision=files.commit))
    # A download can raise many kinds of errors.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"LoRA adapter '{files.location}' cannot be fetched: {reason}; give a folder") from error
