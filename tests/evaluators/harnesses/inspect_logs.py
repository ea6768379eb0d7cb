"""Logs in the format of inspect_ai 0.3.285, made from exported tasks without the harness."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

HARNESS = "inspect-ai"
NAME = "biasboard_made_type2_mcq2-generate-v1"
"""The task of the config ``type2`` of the dataset under the prompt."""
PROMPT = ("--prompt", "mcq2-generate-v1")
Sample: TypeAlias = dict[str, Any]
Log: TypeAlias = dict[str, Any]
MODEL = "openai-api/local/made"
STARTED = "2026-01-02T03-04-05-00-00"


class Answered(NamedTuple):
    """What a model says to a question."""

    text: str
    stop_reason: str = "stop"
    refusal: bool = False


def facts_of(exported: Path) -> dict[str, Any]:
    """The facts of the only task in an exported folder."""
    (facts,) = json.loads((exported / "biasboard.json").read_text(encoding="utf-8"))["tasks"].values()
    return dict(facts)


def rows_of(exported: Path) -> list[Sample]:
    """The questions of the only task in an exported folder."""
    (path,) = exported.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def sample_of(row: Sample, epoch: int, said: Answered, settings: dict[str, Any]) -> Sample:
    """A sample: a long prompt is kept apart from the event of the call, as the harness does it."""
    key = hashlib.md5(row["input"].encode()).hexdigest()
    content: Any = [{"type": "text", "text": said.text, "refusal": True}] if said.refusal else said.text
    message = {"id": "b", "content": content, "source": "generate", "role": "assistant", "model": MODEL}
    output = {
        "model": "made-2026",
        "choices": [{"message": message, "stop_reason": said.stop_reason}],
        "completion": said.text,
        "usage": {"input_tokens": 5, "output_tokens": 3, "total_tokens": 10, "input_tokens_cache_read": 2},
    }
    call = {"event": "model", "model": MODEL, "input": [], "input_refs": [[0, 1]], "config": settings, "output": output}
    return {
        "id": row["id"],
        "epoch": epoch,
        "input": row["input"],
        "target": row["target"],
        "messages": [{"id": "a", "content": row["input"], "role": "user"}, message],
        "output": output,
        "metadata": row["metadata"],
        "events": [{"event": "span_begin", "name": "solvers"}, call, {"event": "span_end"}],
        "attachments": {key: row["input"]},
        "events_data": {"messages": [{"content": f"attachment://{key}", "role": "user"}], "calls": []},
    }


def made_log(exported: Path, says: Callable[[Sample, int], Answered]) -> Log:
    """The log of the only task in an exported folder.

    Args:
        exported: The folder.
        says: The answer to a row in an epoch, counted from 1.
    """
    facts = facts_of(exported)
    samples = [
        sample_of(row, epoch, says(row, epoch), facts["settings"])
        for epoch in range(1, facts["epochs"] + 1)
        for row in rows_of(exported)
    ]
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": "made-run",
            "created": "2026-01-02T03:04:05+00:00",
            "task": facts["file"].removesuffix(".jsonl"),
            "dataset": {"location": "/home/somebody/questions.jsonl", "samples": len(samples)},
            "model": MODEL,
            "model_args": {"api_key": "sk-secret", "dtype": "bfloat16", "model_path": "/home/somebody/made"},
            "model_base_url": "http://somebody:secret@10.0.0.1/v1",
            "config": {"epochs": facts["epochs"], "fail_on_error": False},
            "packages": {"inspect_ai": "0.3.285"},
            "metadata": {"biasboard": facts},
        },
        "plan": {"steps": [{"solver": "generate", "params": {"tool_calls": "loop"}}], "config": facts["settings"]},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "samples": samples,
    }


def write_json(log: Log, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{STARTED}_{log['eval']['task']}_made.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    return path


def right(row: Sample, epoch: int) -> Answered:
    """The letter of the right option."""
    return Answered("AB"[row["choices"].index(row["target"])])
