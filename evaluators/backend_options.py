"""Declares the command-line options of backends once, for all commands that open a backend."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from biasboard.ground.errors import ConfigError


def _option(help_text: str, panel: str, *, minimum: float | None = None) -> Any:
    """Declare an option as a field that is None if the user leaves it out."""
    return field(default=None, metadata={"option": {"help": help_text, "rich_help_panel": panel, "min": minimum}})


_MODEL = "Model"
_LOCAL = "Backend transformers"
_CLIP = "Backend clip"
_VLLM = "Backend vllm"
_API = "Backend openai"
_RAY = "Backend ray"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """The user's options for a backend; None leaves the choice to the backend."""

    name: str | None = _option("Name of the model in results, for example if --model is a path.", _MODEL)
    revision: str | None = _option("Commit, tag or branch on the Hub.", _MODEL)
    dtype: str | None = _option("float32, bfloat16 or float16.", _MODEL)
    tokenizer: str | None = _option("Hub id or folder of the tokenizer, if the model has none of its own.", _MODEL)
    chat: bool | None = _option("Send prompts through the model's chat template.", _MODEL)
    lora: str | None = _option("LoRA adapter for everything: a folder, or a Hub id as ID or ID@REVISION.", _MODEL)
    adapters: str | None = _option("Folder of LoRA adapters, one for each config and prompt; see finetune.", _MODEL)
    device: str | None = _option("cpu, cuda, cuda:N or mps.", _LOCAL)
    batch_tokens: int | None = _option("Tokens per batch, including padding.", _LOCAL, minimum=1)
    scoring: str | None = _option("packed or plain; by default packed, if it gives the same scores as plain.", _LOCAL)
    batch_images: int | None = _option("Images per batch.", _CLIP, minimum=1)
    tensor_parallel: int | None = _option("GPUs that share one copy of the model.", _VLLM, minimum=1)
    data_parallel: int | None = _option("Copies of the model, each in its own process.", _VLLM, minimum=1)
    max_model_len: int | None = _option("Longest context in tokens.", _VLLM, minimum=1)
    gpu_memory: float | None = _option("Share of a GPU's memory for the engine, from 0 to 1.", _VLLM, minimum=0)
    end_logprobs: bool | None = _option(
        "Also score the end token after each option, for --normalisation sum_with_end.", _VLLM
    )
    base_url: str | None = _option("Address of the endpoint; by default OPENAI_BASE_URL.", _API)
    api: str | None = _option("chat or completions; by default the one that can do more at this endpoint.", _API)
    concurrency: int | None = _option("Largest number of requests in flight.", _API, minimum=1)
    timeout: float | None = _option("Seconds to wait for an answer.", _API, minimum=0)
    prices: Path | None = _option("File of prices per million tokens.", _API)
    max_cost: float | None = _option("Stop before this many US dollars are spent.", _API, minimum=0)
    batch: bool | None = _option("Send everything through the endpoint's batch API.", _API)
    engine: str | None = _option("Engine of each worker: transformers, vllm or http.", _RAY)
    address: str | None = _option("Address of the Ray cluster; by default a local one is started.", _RAY)
    workers: int | None = _option(
        "Number of workers, each with its own copy of the model; by default one per GPU.", _RAY, minimum=1
    )
    worker_cpus: float | None = _option("CPUs per worker; by default 1.", _RAY, minimum=0)
    worker_gpus: float | None = _option("GPUs that each worker takes; left out, what it needs.", _RAY, minimum=0)

    def refuse_others(self, backend: str, *, but: Sequence[str] = ()) -> None:
        """Refuse options that a backend would ignore.

        Raises:
            ConfigError: an option is set that is not in ``but``.
        """
        for option in fields(self):
            if option.name not in but and getattr(self, option.name) is not None:
                name = option.name.replace("_", "-")
                raise ConfigError(f"backend '{backend}' has no use for --{name}; leave it out")


def with_backend_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add each field of :class:`BackendOptions` as an option to a typer command, which receives them as ``options``."""
    signature = inspect.signature(command, eval_str=True)
    types = get_type_hints(BackendOptions)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "options"]
    added = [
        inspect.Parameter(
            declared.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[types[declared.name], _flag(declared.name, types[declared.name], declared.metadata)],
        )
        for declared in fields(BackendOptions)
    ]
    names = [parameter.name for parameter in added]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        options = BackendOptions(**{name: values.pop(name) for name in names})
        command(**values, options=options)

    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return wrapped


def _flag(name: str, kind: Any, metadata: Any) -> Any:
    # Without an explicit name, typer would add a --no- option to each flag, which would do nothing.
    names = [f"--{name.replace('_', '-')}"] if kind == bool | None else []
    return typer.Option(*names, **metadata["option"])
