"""Exports stored answers: as JSON lines, which the backend replay reads, or as Parquet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.stores.maintenance import chosen_models
from evaluators.stores.read_only import open_store
from evaluators.stores.store import REQUEST_COLUMNS, adapter_of, stored_request
from schemas.documents.result import Model
from schemas.files import contract

_ROWS_AT_A_TIME = 10_000
# The fields of requests and responses, in the order of the columns.
_ASKED: dict[str, pa.DataType] = {
    "prompt": pa.string(),
    "options": pa.list_(pa.string()),
    "max_tokens": pa.int64(),
    "temperature": pa.float64(),
    "top_p": pa.float64(),
    "stop": pa.list_(pa.string()),
    "sample": pa.int64(),
    "seed": pa.int64(),
}
_ANSWERED: dict[str, pa.DataType] = {
    "status": pa.string(),
    "text": pa.string(),
    "thinking": pa.string(),
    "option_logprobs": pa.list_(pa.float64()),
    "option_is_bound": pa.list_(pa.bool_()),
    "option_end_logprobs": pa.list_(pa.float64()),
    "option_token_counts": pa.list_(pa.int64()),
    "n_moved_tokens": pa.int64(),
    "n_prompt_tokens": pa.int64(),
    "n_completion_tokens": pa.int64(),
    "finish_reason": pa.string(),
    "error": pa.string(),
    "text_logprob": pa.float64(),
}
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("model", "model_sha256", "kind", "request_sha256")),
        *_ASKED.items(),
        *_ANSWERED.items(),
        ("adapter", pa.string()),
    ]
)
_TEXTS = {"prompt", "options", "stop"}
"""Fields that may quote a dataset whose licence forbids redistribution."""


def export(path: Path, out: Path, *, model: str | None = None, with_prompts: bool = True) -> int:
    """Write stored answers to a file, one row or line each.

    Args:
        path: Path of the store.
        out: Path of a ``.jsonl`` or ``.parquet`` file; it is written completely or not at all.
        model: Id, or beginning of the identity, of the model whose answers are written; None for all models.
        with_prompts: False to write only hashes of the prompts: the licence of a dataset may forbid redistribution.

    Returns:
        Number of answers that were written.

    Raises:
        ConfigError: there is no such model or format, the output file exists, or the answers of several models would
            share a ``.jsonl`` file, which could not be replayed.
        RunError: the file is not a store of answers.
    """
    if out.suffix not in (".jsonl", ".parquet"):
        raise ConfigError(f"--out {out}: unknown format; name a file that ends in .jsonl or .parquet")
    if out.exists():
        raise ConfigError(f"--out {out} exists already; name another file, or remove it")
    with open_store(path) as connection:
        chosen = chosen_models(connection, model, path)
        _check_exportable(chosen, out)
        rows = _rows(connection, chosen, with_prompts)
        with replacing(out) as temporary:
            write = _write_lines if out.suffix == ".jsonl" else _write_parquet
            return write(temporary, rows)


def _check_exportable(chosen: Mapping[int, Model], out: Path) -> None:
    if out.suffix != ".jsonl":
        return
    for model in chosen.values():
        if model.endpoint == "baseline":
            raise ConfigError(
                f"{model.id} is a baseline, whose answers depend on more than what was asked; name another model with "
                "--model, and run baselines with --backend baseline"
            )
        if model.adapters_sha256 is not None:
            raise ConfigError(
                f"{model.id} answers one question in several ways, with an adapter for each context; write .parquet"
            )
    if len(chosen) > 1:
        have = ", ".join(f"{model.id} ({model.identity_sha256[:12]})" for model in chosen.values())
        raise ConfigError(
            f"{len(chosen)} models are meant, and a .jsonl file is replayed as one; give --model an id or the start "
            f"of an identity, or write .parquet; have: {have}"
        )


def _rows(connection: sqlite3.Connection, chosen: Mapping[int, Model], with_prompts: bool) -> Iterator[dict[str, Any]]:
    """Yield the answers in the order of their keys, whatever the order in which they were stored."""
    read_response = adapter_of(Response).validate_json
    marks = ",".join("?" * len(chosen))
    rows = connection.execute(
        f"SELECT model_id, {REQUEST_COLUMNS}, response FROM responses WHERE model_id IN ({marks}) ORDER BY key",
        list(chosen),
    )
    for model_id, request, head, response in rows:
        yield _row(chosen[model_id], stored_request(request, head), read_response(response), with_prompts)


def _row(model: Model, request: Request, response: Response, with_prompts: bool) -> dict[str, Any]:
    is_choice = isinstance(request, ChoiceRequest)
    shown = {"prompt", "options"} if is_choice else {*_ASKED} - {"options"}
    shown -= set() if with_prompts else _TEXTS
    return {
        "model": model.id,
        "model_sha256": model.identity_sha256,
        "kind": "choice" if is_choice else "generate",
        "request_sha256": request.sha256,
        **{name: getattr(request, name) if name in shown else None for name in _ASKED},
        **{name: getattr(response, name) for name in _ANSWERED},
        "adapter": request.adapter,
    }


def _write_lines(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    n_rows = 0
    with path.open("w", encoding="ascii", newline="\n") as file:
        for row in rows:
            # Null and empty fields are left out, except the answer to a choice.
            line: JsonValue = contract.plain(
                {name: value for name, value in row.items() if value not in (None, (), []) or name == "option_logprobs"}
            )
            # Non-ASCII is escaped: some readers take characters such as U+2028 for the end of a line.
            file.write(json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n")
            n_rows += 1
    return n_rows


def _write_parquet(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    n_rows = 0
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        while part := list(islice(rows, _ROWS_AT_A_TIME)):
            writer.write_table(pa.Table.from_pylist(part, schema=_SCHEMA))
            n_rows += len(part)
    return n_rows
