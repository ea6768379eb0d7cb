"""Reads who answered, and on what, from the results of lm-evaluation-harness."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from evaluators.backend import Runtime
from evaluators.harness import LoggedModel, without_path

_TOLD = (
    *("add_bos_token", "attn_implementation", "autogptq", "backend", "delta", "dtype", "gguf_file", "gptqmodel"),
    *("load_in_4bit", "load_in_8bit", "max_length", "max_model_len", "mixed_precision_dtype", "parallelize", "peft"),
    *("prefix_token_id", "quantization", "revision", "softmax_dtype", "subfolder", "tokenizer"),
)
"""Arguments of models that results may show. Others may be keys or addresses, of which only a hash is kept."""
_DTYPES = ("float32", "float16", "bfloat16", "float64")
_TORCH = re.compile(r"PyTorch version: (\S+)")


def logged_model(path: Path, told: Mapping[str, Any]) -> LoggedModel:
    """Return the model that answered.

    Args:
        path: The file of results.
        told: Its content.

    Raises:
        DataError: the results do not name the model.
    """
    config = told["config"]
    arguments = _arguments(config.get("model_args"))
    loaded = arguments.get("pretrained") or arguments.get("model")
    if not loaded:
        raise DataError(f"{path}: does not say which model answered; import the folder as lm-eval wrote it")
    sha = config.get("model_sha") or None
    peft = arguments.get("peft")
    dtype = str(config.get("model_dtype") or arguments.get("dtype") or "").removeprefix("torch.")
    hidden: dict[str, strict_json.JsonValue] = {
        name: value for name, value in arguments.items() if name not in (*_TOLD, "pretrained", "model")
    }
    # Weights without a commit are known only by their name, which others may have too. The evaluation then stands for
    # them, so that two models are never taken for one.
    is_known = bool(sha) and (peft is None or bool(config.get("peft_sha"))) and "delta" not in arguments
    identity = {
        "backend": "import",
        "harness": "lm-eval",
        "harness_version": _text(told.get("lm_eval_version")),
        "model_type": _text(config.get("model")),
        "model": without_path(loaded),
        "commit": sha,
        "peft_commit": config.get("peft_sha") or None,
        "precision": dtype if dtype in _DTYPES else None,
        "device": str(config.get("device") or "").partition(":")[0] or None,
        "arguments": ",".join(f"{name}={without_path(arguments[name])}" for name in _TOLD if name in arguments) or None,
        "other_arguments": strict_json.sha256(hidden) if hidden else None,
        "evaluation": None if is_known else sha256_file(path),
    }
    length, end = told.get("max_length"), told.get("eot_token_id")
    return LoggedModel(
        name=without_path(loaded),
        revision=sha,
        precision=identity["precision"],
        identity=identity,
        # The last token of an option is only predicted, so that one more than the model's length fits.
        context_tokens=length + 1 if isinstance(length, int) and length > 0 else None,
        end_id=end if isinstance(end, int) else None,
    )


def logged_runtime(samples: Path, results: Path, told: Mapping[str, Any]) -> Runtime:
    """Return the device, packages and settings of an evaluation, and the hashes of its files.

    Args:
        samples: The file of samples.
        results: The file of results.
        told: The content of the file of results.
    """
    config = told["config"]
    torch = _TORCH.search(str(told.get("pretty_env_info") or ""))
    packages = {
        "lm_eval": told.get("lm_eval_version"),
        "transformers": told.get("transformers_version"),
        "torch": None if torch is None else torch[1],
    }
    settings = {
        "harness": "lm-eval",
        "samples": samples.name,
        "samples_sha256": sha256_file(samples),
        "results_sha256": sha256_file(results),
        "batch_size": config.get("batch_size"),
        "max_length": told.get("max_length"),
    }
    return Runtime(
        device=_text(config.get("device")),
        packages={name: str(value) for name, value in packages.items() if value is not None},
        settings={name: str(value) for name, value in settings.items() if value is not None},
    )


def _arguments(given: object) -> dict[str, str]:
    """Return the arguments of the model as texts, which older versions write as one text."""
    if isinstance(given, str):
        pairs = (pair.partition("=") for pair in given.split(",") if pair)
        return {name: value for name, _, value in pairs}
    return {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
