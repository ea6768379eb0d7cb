"""Logs in the format of inspect_ai 0.3.285, made from exported tasks without the harness."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow

HARNESS = "inspect-ai"
NAME = "biasboard_made_type2_mcq2-generate-v1"
"""The task of the config ``type2`` of the dataset under the prompt."""
PROMPT = ("--prompt", "mcq2-generate-v1")
Sample: TypeAlias = dict[str, Any]
Log: TypeAlias = dict[str, Any]
MODEL = "openai-api/local/made"
STARTED = "2026-01-02T03-04-05-00-00"
_MOST = 0xFFFFFFFF


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


def write_eval(log: Log, folder: Path, method: int = 93, **entries: bytes) -> Path:
    """A log as an archive, with further entries."""
    header = {name: value for name, value in log.items() if name != "samples"}
    content = {
        f"samples/{sample['id']}_epoch_{sample['epoch']}.json": json.dumps(sample).encode() for sample in log["samples"]
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{STARTED}_{log['eval']['task']}_made.eval"
    packed = [Entry(name, data, method) for name, data in {**content, **entries}.items()]
    path.write_bytes(zipped([*packed, Entry("header.json", json.dumps(header).encode(), method)]))
    return path


class Entry(NamedTuple):
    """An entry of an archive."""

    name: str
    content: bytes
    method: int = 93
    """0: stored, 8: deflated, 93: Zstandard."""
    declared: int | None = None
    """The size that the archive claims; None for the true one."""


def zipped(entries: list[Entry]) -> bytes:
    """An archive, written field by field, since the standard library neither writes Zstandard nor lies about sizes."""
    body, directory = b"", b""
    for entry in entries:
        name, data = entry.name.encode(), _packed(entry)
        size = len(entry.content) if entry.declared is None else entry.declared
        shared = struct.pack("<HHHHH", 63, 0x800, entry.method, 0, 33)
        # A size of 4 GiB or more stands in a field of its own.
        extra = struct.pack("<HHQ", 1, 8, size) if size >= _MOST else b""
        shared += struct.pack("<IIIHH", zlib.crc32(entry.content), len(data), min(size, _MOST), len(name), len(extra))
        rest = struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + shared + rest + name + extra
        body += b"PK\x03\x04" + shared + name + extra + data
    n = len(entries)
    return body + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, n, n, len(directory), len(body), 0)


def _packed(entry: Entry) -> bytes:
    if entry.method == 93:
        half = len(entry.content) // 2
        # Two frames, as the harness writes them for large entries.
        parts = (entry.content[:half], entry.content[half:])
        return b"".join(pyarrow.compress(part, codec="zstd", asbytes=True) for part in parts if part)
    if entry.method == 8:
        deflate = zlib.compressobj(wbits=-15)
        return deflate.compress(entry.content) + deflate.flush()
    return entry.content


def right(row: Sample, epoch: int) -> Answered:
    """The letter of the right option."""
    return Answered("AB"[row["choices"].index(row["target"])])
