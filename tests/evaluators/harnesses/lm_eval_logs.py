"""Logs in the format of lm-evaluation-harness 0.4.13, made from exported tasks without the harness."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Sample: TypeAlias = dict[str, Any]
TIME = "2026-01-02T03-04-05.678901"


def settings_of(task: Path) -> dict[str, Any]:
    """The settings in the YAML of a task, with its functions as texts."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: str(node.value))
    settings: dict[str, Any] = yaml.load(task.read_text(encoding="utf-8"), Loader=Loader)
    return settings


def sample_of(number: int, question: Sample, logprobs: list[float]) -> Sample:
    """A line of samples; log-probabilities are texts, as the harness writes them."""
    calls = {
        f"gen_args_{place}": {"arg_0": question["context"], "arg_1": option}
        for place, option in enumerate(question["options"])
    }
    return {
        "doc_id": number,
        "doc": question,
        "target": str(question["target"]),
        "arguments": calls,
        "resps": [[[str(value), "False"]] for value in logprobs],
        "filtered_resps": [[str(value), "False"] for value in logprobs],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(logprobs.index(max(logprobs)) == question["target"]),
    }


def task_hash(samples: list[Sample]) -> str:
    """The hash of all samples, as the harness stores it in its results."""
    joined = ""
    for sample in samples:
        document = json.dumps(sample["doc"], indent=2, ensure_ascii=False)
        for text in (document, sample["arguments"]["gen_args_0"]["arg_0"], sample["target"]):
            joined += hashlib.sha256(text.encode()).hexdigest()
    return hashlib.sha256(joined.encode()).hexdigest()


def write_log(
    exported: Path,
    folder: Path,
    logprobs: Callable[[Sample], list[float]],
    *,
    change: Callable[[list[Sample]], object] = lambda samples: None,
    rehash: bool = True,
    **told: Any,
) -> Path:
    """Write the log of the only task in an exported folder.

    Args:
        exported: The folder.
        folder: Where the log goes.
        logprobs: Log-probabilities of the options of a question.
        change: What to do to the samples before they are written.
        rehash: True to store the hash of the changed samples, as somebody who covers up the change would.
        told: What the results tell otherwise; ``config`` is merged.

    Returns:
        The file of samples.
    """
    (task,) = exported.glob("*.yaml")
    settings = settings_of(task)
    lines = task.with_suffix(".jsonl").read_text(encoding="ascii").splitlines()
    questions = [json.loads(line) for line in lines]
    samples = [sample_of(number, question, logprobs(question)) for number, question in enumerate(questions)]
    first_hash = task_hash(samples)
    change(samples)
    config = {
        "model": "hf",
        "model_args": {"pretrained": "/home/somebody/models/made", "dtype": "float32", "token": "hf_secret"},
        "model_dtype": "torch.float32",
        "model_revision": "main",
        "model_sha": "",
        "batch_size": 1,
        "device": "cpu",
    }
    results = {
        "results": {task.stem: {"alias": task.stem, "acc,none": 0.5, "acc_stderr,none": float("nan")}},
        "configs": {task.stem: settings},
        "n-shot": {task.stem: 0},
        "config": {**config, **told.pop("config", {})},
        "pretty_env_info": "PyTorch version: 2.13.0+cpu\nOS: made",
        "transformers_version": "5.23.0",
        "lm_eval_version": "0.4.13",
        "eot_token_id": 2,
        "max_length": 256,
        "task_hashes": {task.stem: task_hash(samples) if rehash else first_hash},
        "system_instruction_sha": None,
        "chat_template": None,
        "chat_template_sha": None,
        **told,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task.stem}_{TIME}.jsonl"
    path.write_text("".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples), encoding="utf-8")
    (folder / f"results_{TIME}.json").write_text(json.dumps(results), encoding="utf-8")
    return path
