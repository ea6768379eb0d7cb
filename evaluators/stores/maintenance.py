"""Inspects stores of responses from outside a run, and prunes caches.

A cache that runs share and the ``responses.sqlite`` of one run are the same kind of file. All functions read both; only
:func:`prune` removes responses, and only from caches.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from evaluators.backend import Response, Runtime
from evaluators.stores.store import (
    STORE,
    check_format,
    request_adapter,
    response_adapter,
    runtime_adapter,
    store_errors,
)
from schemas.errors import ConfigError, RunError
from schemas.result import Model

_VARIABLES = 30_000  # SQLite allows 32,766 in one statement.
_BUSY_SECONDS = 60
_LONGEST_PREFIX = 64
_SHORTEST_PREFIX = 8


class StoredModel(NamedTuple):
    """Counts of the responses of one model in a store."""

    model: Model
    n_choices: int
    n_generations: int
    n_bytes: int
    """Size of the requests and responses in bytes, without the indexes and free pages of the file."""
    oldest: int | None
    """Time at which the oldest response was stored, in seconds since 1970; None if there is no response."""
    newest: int | None
    """Time at which the newest response was stored, in seconds since 1970; None if there is no response."""

    @property
    def n_answers(self) -> int:
        """The number of responses, choices and generations together."""
        return self.n_choices + self.n_generations


class Summary(NamedTuple):
    """The contents of a store, model by model."""

    models: tuple[StoredModel, ...]
    n_bytes: int
    """Size of the file in bytes, including its write-ahead log."""

    @property
    def n_answers(self) -> int:
        """The number of responses of all models."""
        return sum(model.n_answers for model in self.models)


class Pruned(NamedTuple):
    """The responses that were removed from a cache, or that a dry run would remove."""

    removed: tuple[StoredModel, ...]
    n_bytes_before: int
    n_bytes_after: int | None
    """Size of the file in bytes after pruning; None for a dry run."""


def find_store(path: Path) -> Path:
    """Return the path of the store that a user names: the file itself, or the store in the folder of a run.

    Raises:
        ConfigError: there is no such file.
    """
    found = path / STORE if path.is_dir() else path
    if not found.is_file():
        raise ConfigError(f"{found}: no such store; name a file that --cache made, or the folder of a run")
    return found


def check_cache(path: Path) -> None:
    """Check that a path can be used as a cache, so that errors come before a model is loaded.

    Raises:
        ConfigError: the path is a folder.
        RunError: the path is a file of another kind or of another version.
    """
    if path.is_dir():
        raise ConfigError(f"--cache {path} is a folder; name a file, such as {path / 'answers.sqlite'}")
    if path.is_file() and path.stat().st_size:
        with open_store(path, leave_no_trace=True):
            pass


def summarise(path: Path) -> Summary:
    """Count the responses in a store, model by model.

    Raises:
        RunError: the file is not a store.
    """
    with open_store(path) as connection:
        return Summary(tuple(_models(connection)), _size(path))


def known(path: Path, keys: Iterable[bytes], *, busy_seconds: float = _BUSY_SECONDS) -> set[bytes]:
    """Return those of the keys that a store holds a response to.

    If there is no store, the result is empty. No file is created.

    Args:
        path: File of the store.
        keys: Keys of responses.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Raises:
        RunError: the file is not a store.
    """
    if not path.is_file() or not path.stat().st_size:
        return set()
    with open_store(path, leave_no_trace=True, busy_seconds=busy_seconds) as connection:
        return {key for (key,) in _rows_of(connection, "key", list(keys))}


class Kept(NamedTuple):
    """Responses in a store, and where they were computed."""

    responses: dict[bytes, Response]
    runtimes: tuple[Runtime, ...]
    """Each distinct runtime of the model that gave them."""


def kept(path: Path, keys: Iterable[bytes], model: Model, *, busy_seconds: float = _BUSY_SECONDS) -> Kept:
    """Read the responses to some keys of a model from a store that is left as it is.

    Args:
        path: File of the store.
        keys: Keys of responses.
        model: Model whose keys they are.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Raises:
        RunError: the file is not a store, or one of the responses cannot be read.
    """
    decode_response, decode_runtime = response_adapter().validate_json, runtime_adapter().validate_json
    with open_store(path, leave_no_trace=True, busy_seconds=busy_seconds) as connection:
        found = {key: decode_response(text) for key, text in _rows_of(connection, "key, response", list(keys))}
        if not found:
            return Kept({}, ())
        rows = connection.execute(
            "SELECT runtime FROM runtimes JOIN models ON models.id = model_id WHERE model_sha256 = ? ORDER BY runtime",
            (model.identity_sha256,),
        )
        return Kept(found, tuple(decode_runtime(text) for (text,) in rows.fetchall()))


class Pace(NamedTuple):
    """The time in which a model gave some answers."""

    n_answers: int
    seconds: float


def pace(path: Path, identity_sha256: str | None, *, busy_seconds: float = _BUSY_SECONDS) -> Pace | None:
    """Return how fast a model gave the answers of a store; None if the store does not tell.

    A store adds up the times of all its models, so that it tells nothing about one of several.

    Args:
        path: File of the store.
        identity_sha256: Identity of the model; None for whichever model the store has.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Raises:
        RunError: the file is not a store.
    """
    if not path.is_file() or not path.stat().st_size:
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
    # Answers that were taken over from another store took no time here; one request may be sent as several.
    return Pace(min(models[0][1], n_sent or models[0][1]), seconds)


def _rows_of(connection: sqlite3.Connection, columns: str, keys: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    rows: list[tuple[bytes, ...]] = []
    for start in range(0, len(keys), _VARIABLES):
        part = keys[start : start + _VARIABLES]
        marks = ",".join("?" * len(part))
        rows += connection.execute(f"SELECT {columns} FROM responses WHERE key IN ({marks})", part).fetchall()
    return rows


def prune(path: Path, *, model: str | None = None, before: int | None = None, dry_run: bool = False) -> Pruned:
    """Remove responses from a cache and shrink its file.

    Args:
        path: File of the cache.
        model: Id of the model whose responses are removed, or the beginning of its identity; None for all models.
        before: Time in seconds since 1970; only responses stored before it are removed. None for responses of any age.
        dry_run: True to count what would be removed, and to change nothing.

    Returns:
        The responses that were removed, or that would be.

    Raises:
        ConfigError: there is no such model, or neither model nor time was given.
        RunError: the file is not a store, or is the store of a run, or another process has it open.
    """
    if model is None and before is None:
        raise ConfigError("say what to remove: --model or --older-than; to remove all of a cache, delete its file")
    if path.name == STORE:
        raise RunError(
            f"{path} is the store of a run, from which its scores are traced; delete the folder of the run if nobody "
            "needs it, or copy the store under another name and prune that"
        )
    n_bytes = _size(path)
    if dry_run:
        with open_store(path) as connection:
            chosen = chosen_models(connection, model, path)
            return Pruned(tuple(_models(connection, chosen, before)), n_bytes, None)
    with store_errors(path), closing(_alone(path)) as connection:
        chosen = chosen_models(connection, model, path)
        removed = tuple(_models(connection, chosen, before))
        with connection:
            connection.execute("BEGIN EXCLUSIVE")
            for model_id in chosen:
                _delete(connection, model_id, before)
        connection.execute("VACUUM")
    return Pruned(removed, n_bytes, _size(path))


@contextmanager
def open_store(
    path: Path, *, leave_no_trace: bool = False, busy_seconds: float = _BUSY_SECONDS
) -> Iterator[sqlite3.Connection]:
    """Open a store that other processes may be using, and read it as it is at one moment.

    SQLite creates log files beside a store even to read it, and removes them at the end only if it may write. A store
    that has no log is therefore opened as immutable if no file must be left behind, or if it cannot be written: then
    SQLite creates none.

    Args:
        path: File of the store.
        leave_no_trace: True to leave no new file beside the store.
        busy_seconds: Seconds to wait for another process that has locked the file.

    Yields:
        A connection in a transaction.

    Raises:
        RunError: the file is not a store.
    """
    no_log = not path.with_name(f"{path.name}-wal").exists()
    still = no_log and (leave_no_trace or not os.access(path.parent, os.W_OK) or not os.access(path, os.W_OK))
    mode = "immutable=1" if still else "mode=ro" if leave_no_trace else "mode=rw"
    address = f"{path.resolve().as_uri()}?{mode}"
    with store_errors(path), closing(sqlite3.connect(address, uri=True, timeout=busy_seconds)) as connection:
        connection.execute("BEGIN")
        check_format(connection)
        yield connection


def read_answers(path: Path) -> dict[str, Response]:
    """Read all responses of a store, of whatever model, by the hash of the request.

    Raises:
        RunError: the file is not a store.
    """
    with open_store(path, leave_no_trace=True) as connection:
        rows = connection.execute("SELECT request, response FROM responses")
        decode_request, decode_response = request_adapter().validate_json, response_adapter().validate_json
        return {decode_request(request).sha256: decode_response(response) for request, response in rows}


def _alone(path: Path) -> sqlite3.Connection:
    """Open a connection while no other process has one, and keep others out.

    Raises:
        RunError: another process has the store open.
    """
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=1, isolation_level=None)
    try:
        check_format(connection)
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        # SQLite removes the log only for the last process that has the store open.
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise RunError(f"{path}: another process has this store open; wait for it or stop it") from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _all_models(connection: sqlite3.Connection) -> dict[int, Model]:
    rows = connection.execute("SELECT id, model FROM models ORDER BY id")
    return {model_id: _model_adapter().validate_json(text) for model_id, text in rows}


def chosen_models(connection: sqlite3.Connection, name: str | None, path: Path) -> dict[int, Model]:
    """Return models of a store by their number in it.

    Args:
        connection: Connection to the store.
        name: Id of a model, or at least the first eight characters of its identity; None for all models.
        path: File of the store, for the error message.

    Raises:
        ConfigError: there is no model of that name.
    """
    models = _all_models(connection)
    if name is None:
        return models
    is_prefix = _SHORTEST_PREFIX <= len(name) <= _LONGEST_PREFIX
    chosen = {
        model_id: model
        for model_id, model in models.items()
        if model.id == name or (is_prefix and model.identity_sha256.startswith(name))
    }
    if not chosen:
        have = ", ".join(dict.fromkeys(model.id for model in models.values())) or "none"
        raise ConfigError(f"{path} holds no answers of model '{name}'; have: {have}")
    return chosen


def _models(
    connection: sqlite3.Connection, chosen: dict[int, Model] | None = None, before: int | None = None
) -> Iterator[StoredModel]:
    """Yield the counts for each chosen model (all if None), of responses stored before a time (any if None)."""
    for model_id, model in (_all_models(connection) if chosen is None else chosen).items():
        row = connection.execute(
            # Requests of either kind hold a prompt; only choices hold options.
            "SELECT COALESCE(SUM(choice), 0), COALESCE(SUM(1 - choice), 0), COALESCE(SUM(n_bytes), 0), "
            "MIN(stored_at), MAX(stored_at) FROM (SELECT stored_at, "
            "json_type(CAST(request AS TEXT), '$.options') IS NOT NULL AS choice, "
            "LENGTH(key) + LENGTH(request) + LENGTH(response) AS n_bytes FROM responses "
            "WHERE model_id = ? AND (? IS NULL OR stored_at < ?))",
            (model_id, before, before),
        )
        yield StoredModel(model, *row.fetchone())


def _delete(connection: sqlite3.Connection, model_id: int, before: int | None) -> None:
    connection.execute(
        "DELETE FROM responses WHERE model_id = ? AND (? IS NULL OR stored_at < ?)", (model_id, before, before)
    )
    for table, column in (("runtimes", "model_id"), ("models", "id")):
        connection.execute(
            f"DELETE FROM {table} WHERE {column} = ? AND NOT EXISTS (SELECT 1 FROM responses WHERE model_id = ?)",
            (model_id, model_id),
        )


def _size(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def names(models: Sequence[StoredModel]) -> str:
    """Join the ids of models for a message."""
    return ", ".join(dict.fromkeys(stored.model.id for stored in models)) or "no model"


@cache
def _model_adapter() -> TypeAdapter[Model]:
    return TypeAdapter(Model)
