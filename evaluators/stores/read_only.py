"""Reads stores of responses from outside a run, without changing them: what is answered, how much, and all as a file.

A shared cache and the ``responses.sqlite`` of a run are the same kind of file, and all functions read both.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import ChoiceRequest, Request, Response, Runtime
from evaluators.stores.store import (
    BUSY_SECONDS,
    REQUEST_COLUMNS,
    STORE,
    adapter_of,
    check_format,
    store_errors,
    stored_request,
    stored_rows,
)
from schemas.documents.result import Model
from schemas.files import contract

_SHORTEST_PREFIX = 8


@contextmanager
def open_store(
    path: Path, *, leave_no_trace: bool = False, busy_seconds: float = BUSY_SECONDS
) -> Iterator[sqlite3.Connection]:
    """Open a snapshot of a store that other processes may be using.

    Even for reading, SQLite creates log files beside a store, and it removes them only if it may write. So if no file
    may be left behind, or the store is read-only, a store without a log is opened as immutable, which creates none.

    Args:
        path: File of the store.
        leave_no_trace: True to leave no new file beside the store.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Yields:
        A connection inside a transaction.

    Raises:
        RunError: the file is not a store.
    """
    no_log = not path.with_name(f"{path.name}-wal").exists()
    is_frozen = no_log and (leave_no_trace or not os.access(path.parent, os.W_OK) or not os.access(path, os.W_OK))
    mode = "immutable=1" if is_frozen else "mode=ro" if leave_no_trace else "mode=rw"
    address = f"{path.resolve().as_uri()}?{mode}"
    with store_errors(path), closing(sqlite3.connect(address, uri=True, timeout=busy_seconds)) as connection:
        connection.execute("BEGIN")
        check_format(connection)
        yield connection


def is_begun(path: Path) -> bool:
    """Return True if a store's file is not empty; SQLite creates it empty."""
    return path.is_file() and path.stat().st_size > 0


def answered_keys(path: Path, keys: Iterable[bytes], *, busy_seconds: float = BUSY_SECONDS) -> set[bytes]:
    """Return the keys to which a store holds a response; none if there is no store. No file is created.

    Args:
        path: File of the store.
        keys: Keys of responses.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Raises:
        RunError: the file is not a store.
    """
    if not is_begun(path):
        return set()
    with open_store(path, leave_no_trace=True, busy_seconds=busy_seconds) as connection:
        return {key for (key,) in stored_rows(connection, "key", list(keys))}


def stored_responses(
    path: Path, keys: Iterable[bytes], model: Model, *, busy_seconds: float = BUSY_SECONDS
) -> tuple[dict[bytes, Response], tuple[Runtime, ...]]:
    """Read a model's responses to some keys from a store, and the distinct runtimes of the model.

    Args:
        path: File of the store.
        keys: Keys of responses.
        model: Model that the keys belong to.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Raises:
        RunError: the file is not a store, or one of the responses cannot be read.
    """
    decode_response, decode_runtime = adapter_of(Response).validate_json, adapter_of(Runtime).validate_json
    with open_store(path, leave_no_trace=True, busy_seconds=busy_seconds) as connection:
        responses = {key: decode_response(text) for key, text in stored_rows(connection, "key, response", list(keys))}
        if not responses:
            return {}, ()
        rows = connection.execute(
            "SELECT runtime FROM runtimes JOIN models ON models.id = model_id WHERE model_sha256 = ? ORDER BY runtime",
            (model.identity_sha256,),
        )
        return responses, tuple(decode_runtime(text) for (text,) in rows.fetchall())


class Pace(NamedTuple):
    """A number of answers, and the time that a model took for them."""

    n_answers: int
    seconds: float


def pace(path: Path, identity_sha256: str | None, *, busy_seconds: float = BUSY_SECONDS) -> Pace | None:
    """Return how fast a model gave the answers in a store; None if unknown.

    A store records one total time for all its models, so the pace is known only if it has a single model.

    Args:
        path: File of the store.
        identity_sha256: Identity of the model; None for any.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Raises:
        RunError: the file is not a store.
    """
    if not is_begun(path):
        return None
    with open_store(path, leave_no_trace=True, busy_seconds=busy_seconds) as connection:
        models = connection.execute(
            "SELECT model_sha256, COUNT(*) FROM models JOIN responses ON models.id = model_id GROUP BY model_sha256"
        ).fetchall()
        n_sent, seconds = connection.execute(
            "SELECT COALESCE(SUM(n_attempts), 0), COALESCE(SUM(seconds), 0) FROM usage"
        ).fetchone()
    if len(models) != 1 or identity_sha256 not in (None, models[0][0]) or not seconds:
        return None
    # Copied answers took no time here, so no more answers count than were sent; a request may be sent more than once.
    return Pace(min(models[0][1], n_sent or models[0][1]), seconds)


def read_answers(path: Path) -> dict[str, Response]:
    """Read all responses that any model in a store gave without an adapter, by the hash of the request.

    Raises:
        RunError: the file is not a store.
    """
    with open_store(path, leave_no_trace=True) as connection:
        rows = connection.execute(f"SELECT {REQUEST_COLUMNS}, response FROM responses")
        decode = adapter_of(Response).validate_json
        answers = ((stored_request(request, head), response) for request, head, response in rows)
        return {request.sha256: decode(response) for request, response in answers if request.adapter is None}


class StoredModel(NamedTuple):
    """Counts of the responses of one model in a store."""

    model: Model
    n_choices: int
    n_generations: int
    n_bytes: int
    """Size of the requests and responses in bytes, without the file's indexes and free pages, and without beginnings of
    prompts that are stored once."""
    oldest: int | None
    """Time at which the oldest response was stored, in seconds since 1970; None if there is no response."""
    newest: int | None
    """Time at which the newest response was stored, in seconds since 1970; None if there is no response."""

    @property
    def n_answers(self) -> int:
        """The number of responses, choices and generations together."""
        return self.n_choices + self.n_generations


class StoreSummary(NamedTuple):
    """The contents of a store, model by model."""

    models: tuple[StoredModel, ...]
    n_bytes: int
    """Size of the file in bytes, including its write-ahead log."""

    @property
    def n_answers(self) -> int:
        """The number of responses of all models."""
        return sum(model.n_answers for model in self.models)


def find_store(path: Path) -> Path:
    """Return the store that a user's path names: the file itself, or the store in the folder of a run.

    Raises:
        ConfigError: there is no such file.
    """
    store = path / STORE if path.is_dir() else path
    # SQLite would take an empty file for a new store, and fill it.
    if not is_begun(store):
        raise ConfigError(f"{store}: no such store; name a file that --cache made, or the folder of a run")
    return store


def check_cache(path: Path) -> None:
    """Check that a path can be used as a cache, before a model is loaded.

    Raises:
        ConfigError: the path is a folder, a pipe or a device.
        RunError: the path is a file of another kind or of another version.
    """
    if path.is_dir():
        raise ConfigError(f"--cache {path} is a folder; name a file, such as {path / 'answers.sqlite'}")
    if path.exists() and not path.is_file():
        raise ConfigError(f"--cache {path} is not a regular file; name one, or one that does not exist yet")
    if is_begun(path):
        with open_store(path, leave_no_trace=True):
            pass


def summarise(path: Path) -> StoreSummary:
    """Count the responses in a store, model by model.

    Raises:
        RunError: the file is not a store.
    """
    found = []
    with open_store(path) as connection:
        for model_id, model in chosen_models(connection, None, path).items():
            counts = connection.execute(
                # Both kinds of request have a prompt, but only choices have options.
                "SELECT COALESCE(SUM(choice), 0), COALESCE(SUM(1 - choice), 0), COALESCE(SUM(n_bytes), 0), "
                "MIN(stored_at), MAX(stored_at) FROM (SELECT stored_at, "
                "json_type(CAST(request AS TEXT), '$.options') IS NOT NULL AS choice, "
                "LENGTH(key) + LENGTH(request) + LENGTH(response) AS n_bytes FROM responses WHERE model_id = ?)",
                (model_id,),
            )
            found.append(StoredModel(model, *counts.fetchone()))
    log = path.with_name(f"{path.name}-wal")
    return StoreSummary(tuple(found), path.stat().st_size + (log.stat().st_size if log.exists() else 0))


def export(path: Path, out: Path, *, model: str | None = None, with_prompts: bool = True) -> int:
    """Write the answers of one model as JSON lines, in the order of their keys, which the backend replay reads.

    Args:
        path: Path of the store.
        out: Path of a ``.jsonl`` file; it is written completely or not at all.
        model: Id, or beginning of the identity, of the model whose answers are written; None if there is only one.
        with_prompts: False to write only hashes of the prompts: the licence of a dataset may forbid redistribution.

    Returns:
        Number of answers that were written.

    Raises:
        ConfigError: there is no such model, several are meant, its answers cannot be replayed, or the output file has
            another ending or exists.
        RunError: the file is not a store of answers.
    """
    if out.suffix != ".jsonl":
        raise ConfigError(f"--out {out}: unknown format; name a file that ends in .jsonl")
    if out.exists():
        raise ConfigError(f"--out {out} exists already; name another file, or remove it")
    with open_store(path) as connection:
        chosen = chosen_models(connection, model, path)
        for one in chosen.values():
            if one.endpoint == "baseline":
                raise ConfigError(
                    f"{one.id} is a baseline, whose answers depend on more than what was asked; name another model "
                    "with --model, and run baselines with --backend baseline"
                )
            if one.adapters_sha256 is not None:
                raise ConfigError(
                    f"{one.id} answers one question in several ways, with an adapter for each context, which cannot be "
                    "replayed; take the records of its runs"
                )
        if len(chosen) > 1:
            have = ", ".join(f"{one.id} ({one.identity_sha256[:12]})" for one in chosen.values())
            raise ConfigError(
                f"{len(chosen)} models are meant, and a file is replayed as one; give --model an id or the start of an "
                f"identity; have: {have}"
            )
        n_rows = 0
        with replacing(out) as temporary, temporary.open("w", encoding="ascii", newline="\n") as file:
            for model_id, one in chosen.items():
                for request, head, response in connection.execute(
                    f"SELECT {REQUEST_COLUMNS}, response FROM responses WHERE model_id = ? ORDER BY key", (model_id,)
                ):
                    answer = adapter_of(Response).validate_json(response)
                    line = _line(one, stored_request(request, head), answer, with_prompts)
                    # Non-ASCII is escaped: some readers take characters such as U+2028 for the end of a line.
                    file.write(json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n")
                    n_rows += 1
    return n_rows


def _line(model: Model, request: Request, response: Response, with_prompts: bool) -> JsonValue:
    """Return an answer as a line; null and empty fields are left out, except the answer to a choice."""
    is_choice = isinstance(request, ChoiceRequest)
    # Texts may quote a dataset whose licence forbids redistribution.
    asked = ["prompt", "options" if is_choice else "stop"] if with_prompts else []
    asked += [] if is_choice else ["max_tokens", "temperature", "top_p", "sample", "seed"]
    line = {
        "model": model.id,
        "model_sha256": model.identity_sha256,
        "kind": "choice" if is_choice else "generate",
        "request_sha256": request.sha256,
        **{name: getattr(request, name) for name in asked},
        **asdict(response),
    }
    return contract.plain(
        {name: value for name, value in line.items() if value not in (None, (), []) or name == "option_logprobs"}
    )


def chosen_models(connection: sqlite3.Connection, name: str | None, path: Path) -> dict[int, Model]:
    """Return models of a store by their number in it.

    Args:
        connection: Connection to the store.
        name: Id of a model, or at least the first eight characters of its identity; None for all models.
        path: File of the store, for the error message.

    Raises:
        ConfigError: there is no model of that name.
    """
    rows = connection.execute("SELECT id, model FROM models ORDER BY id")
    models: dict[int, Model] = {model_id: adapter_of(Model).validate_json(text) for model_id, text in rows}
    if name is None:
        return models
    is_prefix = len(name) >= _SHORTEST_PREFIX
    chosen = {
        model_id: model
        for model_id, model in models.items()
        if model.id == name or (is_prefix and model.identity_sha256.startswith(name))
    }
    if not chosen:
        have = ", ".join(dict.fromkeys(model.id for model in models.values())) or "none"
        raise ConfigError(f"{path} holds no answers of model '{name}'; have: {have}")
    return chosen


def names(models: Sequence[StoredModel]) -> str:
    """Join the ids of models for a message."""
    return ", ".join(dict.fromkeys(stored.model.id for stored in models)) or "no model"
