"""Types of the options of backends in a call from Python."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict


class BackendChoices(TypedDict, total=False):
    """The options of backends by name: those of :class:`evaluators.backend_options.BackendOptions`."""

    name: str | None
    revision: str | None
    dtype: str | None
    tokenizer: str | None
    chat: bool | None
    lora: str | None
    device: str | None
    batch_tokens: int | None
    scoring: str | None
    batch_images: int | None
    tensor_parallel: int | None
    data_parallel: int | None
    max_model_len: int | None
    gpu_memory: float | None
    end_logprobs: bool | None
    base_url: str | None
    api: str | None
    concurrency: int | None
    timeout: float | None
    prices: Path | None
    max_cost: float | None
    batch: bool | None
    engine: str | None
    address: str | None
    workers: int | None
    worker_cpus: float | None
    worker_gpus: float | None
