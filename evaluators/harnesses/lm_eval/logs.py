"""Reads what lm-evaluation-harness writes with --log_samples: a file of samples per task, and one of results.

Both have the time of the evaluation in their names. The results say which model was asked and how, and hold the
metadata of each task, in which an exported task carries our facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable, sha256_file
from evaluators.backend import Runtime
from evaluators.harness import FACTS, HarnessLog, argument_fields, exported_facts, precision_of, without_path
from evaluators.harnesses.lm_eval.samples import read_samples

HOW_TO_ASK = "lm_eval run --log_samples --output_path FOLDER"
NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl")
"""Name of a file of samples."""
_AGAIN = "import the folder as lm-eval wrote it"
_SHOWN = (
    *("add_bos_token", "attn_implementation", "autogptq", "backend", "delta", "dtype", "gguf_file", "gptqmodel"),
    *("load_in_4bit", "load_in_8bit", "max_length", "max_model_len", "mixed_precision_dtype", "parallelize", "peft"),
    *("prefix_token_id", "quantization", "revision", "softmax_dtype", "subfolder", "tokenizer"),
)
"""Arguments of models that results may show. Others may be keys or addresses, of which only a hash is kept."""
_TORCH = re.compile(r"PyTorch version: (\S+)")


def read_log(path: Path) -> HarnessLog | None:
    """Read a file of samples and the results beside it; see ``Harness.read_log``."""
    name = NAME.fullmatch(path.name)
    if name is None:
        raise ConfigError(
            f"--input {path}: is not called samples_TASK_TIME.jsonl, as lm-eval names its logs; ask with {HOW_TO_ASK}"
        )
    beside = sorted(path.parent.glob(f"*_{name['time']}.json"))
    if len(beside) != 1:
        raise ConfigError(
            f"{path}: needs one file results_{name['time']}.json beside it, which says who answered; found "
            f"{len(beside)}; {_AGAIN}"
        )
    results, task = _read_results(beside[0]), name["task"]
    config = results["configs"].get(task)
    metadata = config.get("metadata") if isinstance(config, dict) else None
    facts = metadata.get(FACTS) if isinstance(metadata, dict) else None
    if facts is None:
        return None
    _check_asked_plainly(results, task, path.name)
    answers, doubt = read_samples(path, results["task_hashes"].get(task))
    length, end_id = results.get("max_length"), results.get("eot_token_id")
    return HarnessLog(
        name=path.name,
        task=task,
        exported=exported_facts(facts, path.name),
        answers=answers,
        identity=_identity(beside[0], results),
        runtime=_runtime(path, beside[0], results),
        # The last token of an option is only predicted, so that one more than the model's length fits.
        context_tokens=length + 1 if isinstance(length, int) and length > 0 else None,
        end_id=end_id if isinstance(end_id, int) else None,
        doubt=doubt,
    )


def _read_results(path: Path) -> dict[str, Any]:
    check_readable(path)
    try:
        # Not strict: the harness writes NaN for values that it could not compute.
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error}); {_AGAIN}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: is no JSON object; {_AGAIN}")
    for name in ("configs", "config", "task_hashes", "n-shot"):
        if not isinstance(value.get(name), dict):
            raise DataError(f"{path}: has no '{name}', which lm-eval writes; {_AGAIN}")
    return value


def _check_asked_plainly(results: Mapping[str, Any], task: str, where: str) -> None:
    """Check that nothing was put around the questions."""
    for name, words, option in (
        ("chat_template", "through a chat template", "--apply_chat_template"),
        ("system_instruction", "with a system instruction", "--system_instruction"),
    ):
        if results.get(f"{name}_sha") is not None or results.get(name) is not None:
            raise DataError(f"{where}: asked {words}; ask again without {option}")
    n_shots = results["n-shot"].get(task)
    if n_shots != 0:
        raise DataError(f"{where}: asked with {n_shots} examples before each question; ask again without --num_fewshot")


def _identity(path: Path, results: Mapping[str, Any]) -> dict[str, str | None]:
    config = results["config"]
    arguments = _arguments(config.get("model_args"))
    loaded = arguments.get("pretrained") or arguments.get("model")
    if not loaded:
        raise DataError(f"{path}: does not say which model answered; {_AGAIN}")
    commit, peft_commit = config.get("model_sha") or None, config.get("peft_sha") or None
    # Weights without a commit are known only by their name, which others may have too. The evaluation then stands for
    # them, so that two models are never taken for one.
    is_known = commit and (peft_commit or "peft" not in arguments) and "delta" not in arguments
    return {
        "backend": "import",
        "harness": "lm-eval",
        "harness_version": _text(results.get("lm_eval_version")),
        "model_type": _text(config.get("model")),
        "model": without_path(loaded),
        "commit": commit,
        "peft_commit": peft_commit,
        "precision": precision_of(config.get("model_dtype") or arguments.get("dtype")),
        "device": str(config.get("device") or "").partition(":")[0] or None,
        **argument_fields(
            {name: arguments[name] for name in _SHOWN if name in arguments},
            {name: value for name, value in arguments.items() if name not in (*_SHOWN, "pretrained", "model")},
        ),
        "evaluation": None if is_known else sha256_file(path),
    }


def _runtime(samples: Path, path: Path, results: Mapping[str, Any]) -> Runtime:
    """Return the device, packages and settings of an evaluation, and the hashes of its files."""
    config = results["config"]
    torch = _TORCH.search(str(results.get("pretty_env_info") or ""))
    packages = {
        "lm_eval": results.get("lm_eval_version"),
        "transformers": results.get("transformers_version"),
        "torch": None if torch is None else torch[1],
    }
    settings = {
        "harness": "lm-eval",
        "samples": samples.name,
        "samples_sha256": sha256_file(samples),
        "results_sha256": sha256_file(path),
        "batch_size": config.get("batch_size"),
        "max_length": results.get("max_length"),
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
