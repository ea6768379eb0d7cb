"""Reads who answered, and how, from the header of a log of inspect_ai."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import Runtime
from evaluators.harness import LoggedModel, without_path
from evaluators.harnesses.inspect_ai.header import Header

_TOLD = (
    *("attn_implementation", "chat_template", "device", "dtype", "enable_thinking", "gguf_file", "max_model_len"),
    *("model_path", "quantization", "revision", "tokenizer", "tokenizer_path", "torch_dtype"),
)
"""Arguments of models that results may show. Others may be keys or addresses, of which only a hash is kept."""
_DTYPES = ("float32", "float16", "bfloat16", "float64")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LONGEST = 80
"""Number of characters up to which an argument is shown; a chat template is longer."""


def logged_model(header: Header) -> LoggedModel:
    """Return the model that answered."""
    spec = header.eval
    provider, _, name = spec.model.partition("/")
    arguments = {name: str(value) for name, value in spec.model_args.items()}
    shown = {key: arguments[key] for key in _TOLD if key in arguments and len(arguments[key]) <= _LONGEST}
    hidden: dict[str, JsonValue] = {key: value for key, value in arguments.items() if key not in shown}
    if spec.model_base_url is not None:
        hidden["base_url"] = spec.model_base_url
    revision = arguments.get("revision", "")
    commit = revision if _COMMIT.fullmatch(revision) else None
    dtype = (arguments.get("dtype") or arguments.get("torch_dtype") or "").removeprefix("torch.")
    identity = {
        "backend": "import",
        "harness": "inspect-ai",
        "harness_version": spec.packages.get("inspect_ai"),
        "provider": provider,
        "model": without_path(name or provider),
        "commit": commit,
        "precision": dtype if dtype in _DTYPES else None,
        # A provider applies the template of the model, which the log does not tell.
        "api": "chat",
        "arguments": ",".join(f"{key}={without_path(value)}" for key, value in shown.items()) or None,
        "other_arguments": strict_json.sha256(hidden) if hidden else None,
        # Without a commit, others may have the name too. The evaluation then stands for the model.
        "evaluation": None if commit is not None else spec.run_id,
    }
    return LoggedModel(
        name=without_path(name or provider),
        revision=commit,
        precision=identity["precision"],
        identity=identity,
        context_tokens=None,
        end_id=None,
    )


def logged_runtime(path: Path, header: Header, answered: Iterable[str]) -> Runtime:
    """Return the packages and settings of an evaluation, and the hash of its log.

    Args:
        path: The log.
        header: Its header.
        answered: The names under which models answered.
    """
    settings = {
        "harness": "inspect-ai",
        "api": "chat",
        "log": path.name,
        "log_sha256": sha256_file(path),
        "reported_model": ", ".join(sorted({without_path(name) for name in answered})),
    }
    return Runtime(
        device=None,
        packages=dict(sorted(header.eval.packages.items())),
        settings={name: value for name, value in settings.items() if value},
    )
