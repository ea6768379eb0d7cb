"""The options of backends, declared once for all commands that open a backend."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.options import from_texts, option

T = TypeVar("T")
MODEL_PANEL = "Model"
COST_PANEL = "Cost"
DTYPES = ("float32", "bfloat16", "float16")
"""Precisions that ``--dtype`` names."""
PRECISIONS = (*DTYPES, "float64", "float8_e4m3fn", "float8_e5m2")
"""Precisions of models: also those that a checkpoint may have."""
_LOCAL = "Backend transformers"
_CLIP = "Backend clip"
_VLLM = "Backend vllm"
_API = "Backend openai"
_RAY = "Backend ray"
_MOST_BYTES_OF_PROMPT = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """The user's options for a backend; None leaves the choice to the backend."""

    name: str | None = option("Name of the model in results, for example if --model is a path.", panel=MODEL_PANEL)
    revision: str | None = option("Commit, tag or branch on the Hub.", panel=MODEL_PANEL)
    dtype: str | None = option("float32, bfloat16 or float16.", panel=MODEL_PANEL)
    tokenizer: str | None = option(
        "Hub id or folder of the tokenizer, if the model has none of its own.", panel=MODEL_PANEL
    )
    chat: bool | None = option("Send prompts through the model's chat template.", panel=MODEL_PANEL)
    chat_template_args: str | None = option(
        "JSON object of arguments of the chat template, such as '{\"enable_thinking\": false}'.", panel=MODEL_PANEL
    )
    system_prompt: Path | None = option("File with a system prompt to send before every message.", panel=MODEL_PANEL)
    thinking_tokens: int | None = option(
        "Tokens that the model may think with before its answer; by default 8192 where it is known to think, else 0.",
        panel=MODEL_PANEL,
        min=0,
    )
    lora: str | None = option(
        "LoRA adapter: a folder, or a Hub id as ID or ID@REVISION. Or a folder of finetune, with an adapter for each "
        "config and prompt.",
        panel=MODEL_PANEL,
    )
    backend_option: tuple[str, ...] | None = option(
        "NAME=VALUE: an option that the backend of a plug-in declares. Repeatable.", panel=MODEL_PANEL
    )
    device: str | None = option("cpu, cuda, cuda:N or mps.", panel=_LOCAL)
    batch_tokens: int | None = option("Tokens per batch, including padding.", panel=_LOCAL, min=1)
    scoring: str | None = option(
        "packed or plain; by default packed, if it gives the same scores as plain.", panel=_LOCAL
    )
    batch_images: int | None = option("Images per batch.", panel=_CLIP, min=1)
    tensor_parallel: int | None = option("GPUs that share one copy of the model.", panel=_VLLM, min=1)
    data_parallel: int | None = option("Copies of the model, each in its own process.", panel=_VLLM, min=1)
    max_model_len: int | None = option("Longest context in tokens.", panel=_VLLM, min=1)
    gpu_memory: float | None = option("Share of a GPU's memory for the engine, from 0 to 1.", panel=_VLLM, min=0)
    end_logprobs: bool | None = option(
        "Also score the end token after each option, for --normalisation sum_with_end.", panel=_VLLM
    )
    base_url: str | None = option("Address of the endpoint; by default OPENAI_BASE_URL.", panel=_API)
    api: str | None = option("chat or completions; by default the one that can do more at this endpoint.", panel=_API)
    concurrency: int | None = option("Largest number of requests in flight.", panel=_API, min=1)
    timeout: float | None = option("Seconds to wait for an answer.", panel=_API, min=0)
    header: tuple[str, ...] | None = option(
        "Header to send, as NAME=VALUE, or NAME=$VARIABLE to take the value from the environment; may be repeated. "
        "Values are never stored.",
        panel=_API,
    )
    extra_body: str | None = option(
        "JSON object of further fields to send with every request, such as those of one provider.", panel=_API
    )
    reasoning_effort: str | None = option(
        "How much the model thinks: low, medium, high or another word of the endpoint, or off.", panel=_API
    )
    prices: Path | None = option("File of prices per million tokens, for the backend openai.", panel=COST_PANEL)
    max_cost: float | None = option("Stop before this many US dollars are spent.", panel=COST_PANEL, min=0)
    batch: bool | None = option("Send everything through the endpoint's batch API.", panel=COST_PANEL)
    engine: str | None = option("Engine of each worker: transformers or vllm.", panel=_RAY)
    address: str | None = option("Address of the Ray cluster; by default a local one is started.", panel=_RAY)
    workers: int | None = option(
        "Number of workers, each with its own copy of the model; by default one per GPU.", panel=_RAY, min=1
    )
    worker_cpus: float | None = option("CPUs per worker; by default 1.", panel=_RAY, min=0)
    worker_gpus: float | None = option("GPUs that each worker takes; left out, what it needs.", panel=_RAY, min=0)

    def own(self, kind: type[T]) -> T:
        """Return the options that a plug-in's backend declares by :func:`biasboard.ground.options.option`.

        ``kind`` is the frozen dataclass that declares them.

        Raises:
            ConfigError: the user gave one that is not declared, or a value that it does not take.
        """
        return from_texts(kind, self.backend_option or (), flag="--backend-option")

    @property
    def usual_backend(self) -> str:
        """The backend that is meant if the user names none."""
        return "openai" if self.base_url is not None else "transformers"

    @property
    def template_arguments(self) -> Mapping[str, Any]:
        """The arguments of the chat template.

        Raises:
            ConfigError: they are no JSON object.
        """
        return json_object("--chat-template-args", self.chat_template_args)

    @property
    def system_text(self) -> str | None:
        """The text of the system prompt; None if there is none.

        Raises:
            ConfigError: the file cannot be read, or is empty.
        """
        path = self.system_prompt
        if path is None:
            return None
        try:
            if path.exists():
                check_readable(path, most=_MOST_BYTES_OF_PROMPT)
            text = path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ConfigError(f"--system-prompt {path}: cannot be read as text ({error}); name a text file") from error
        if not text:
            raise ConfigError(f"--system-prompt {path} is empty; write the prompt into it, or leave the option out")
        return text

    @property
    def chat_settings(self) -> dict[str, Any]:
        """The arguments of ``load_tokenizer`` that say how prompts become messages.

        Raises:
            ConfigError: one of the options cannot be read.
        """
        return {
            "chat": bool(self.chat),
            "template_arguments": self.template_arguments,
            "system_prompt": self.system_text,
        }

    @property
    def chat_arguments(self) -> dict[str, object]:
        """The options of chats that open the same model again; a file without the folder that it lies in."""
        return {
            "chat-template-args": f"'{self.chat_template_args}'" if self.chat_template_args else None,
            "system-prompt": None if self.system_prompt is None else self.system_prompt.name,
            "thinking-tokens": self.thinking_tokens,
        }

    def chat_conditions(self, thinking_tokens: int) -> dict[str, str]:
        """Return what answers depend on beside the model, its template and the prompt, by name.

        ``thinking_tokens`` is the number of tokens that the model thinks with.
        """
        conditions = {"thinking_tokens": str(thinking_tokens)} if thinking_tokens else {}
        if self.chat_template_args:
            conditions["chat_template_args"] = strict_json.canonical(dict(self.template_arguments)).decode()
        if (prompt := self.system_text) is not None:
            conditions["system_prompt"] = hashlib.sha256(prompt.encode()).hexdigest()
        return conditions

    def refuse_others(self, backend: str, *, but: Sequence[str] = ()) -> None:
        """Refuse options that a backend would ignore.

        Raises:
            ConfigError: an option is set that is not in ``but``.
        """
        for declared in fields(self):
            if declared.name not in but and getattr(self, declared.name) is not None:
                name = declared.name.replace("_", "-")
                raise ConfigError(f"backend '{backend}' has no use for --{name}; leave it out")

    def check_dtype(self) -> None:
        """Check that the requested precision is one of :data:`DTYPES`.

        Raises:
            ConfigError: it is not.
        """
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ConfigError(f"--dtype {self.dtype} does not exist; have: {', '.join(DTYPES)}")


def json_object(name: str, text: str | None) -> Mapping[str, Any]:
    """Return the JSON object in the value of an option; an empty one if it is not given.

    Raises:
        ConfigError: it is no JSON object.
    """
    if text is None:
        return {}
    try:
        value = strict_json.loads(text, where=name)
    except DataError as error:
        raise ConfigError(f"{error}; write an object such as '{{\"name\": 1}}'") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{name} is no JSON object; write one such as '{{\"name\": 1}}'")
    return value


def as_arguments(options: Mapping[str, object]) -> tuple[str, ...]:
    """Return options as on a command line; True becomes a bare flag, and None and False are left out.

    >>> as_arguments({"model": "acme/one", "dtype": None, "batch-tokens": 64, "chat": True})
    ('--model acme/one', '--batch-tokens 64', '--chat')
    """
    present = ((name, value) for name, value in options.items() if value is not None and value is not False)
    return tuple(f"--{name}" if value is True else f"--{name} {value}" for name, value in present)
