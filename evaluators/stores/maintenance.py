"""Inspects stores of responses from outside a run, and prunes caches.

A shared cache and the ``responses.sqlite`` of a run are the same kind of file. All functions read both; only
:func:`prune` removes responses, and only from caches.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, RunError
from evaluators.stores.read_only import is_begun, open_store
from evaluators.stores.store import STORE, adapter_of, check_format, store_errors
from schemas.documents.result import Model

_LONGEST_PREFIX = 64
_SHORTEST_PREFIX = 8


class StoredModel(NamedTuple):
    """Counts of the responses of one model in a store."""

    model: Model
    n_choices: int
    n_generations: int
    n_bytes: int
    """Size of the requests and responses in bytes, without the file's indexes and free pages, and without beginnings of
    prompts that other responses share."""
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


class Pruned(NamedTuple):
    """The responses that were removed from a cache, or that a dry run would remove."""

    removed: tuple[StoredModel, ...]
    n_bytes_before: int
    n_bytes_after: int | None
    """Size of the file in bytes after pruning; None for a dry run."""


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
    with open_store(path) as connection:
        return StoreSummary(tuple(_models(connection)), _size(path))


def prune(path: Path, *, model: str | None = None, before: int | None = None, dry_run: bool = False) -> Pruned:
    """Remove responses from a cache and shrink its file.

    Args:
        path: File of the cache.
        model: Id of the model whose responses are removed, or the beginning of its identity; None for all models.
        before: Time in seconds since 1970; only responses stored before it are removed. None for responses of any age.
        dry_run: True to only count what would be removed.

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
    with store_errors(path), closing(_exclusive_connection(path)) as connection:
        chosen = chosen_models(connection, model, path)
        removed = tuple(_models(connection, chosen, before))
        with connection:
            connection.execute("BEGIN EXCLUSIVE")
            for model_id in chosen:
                _delete(connection, model_id, before)
            connection.execute(
                "DELETE FROM heads WHERE id NOT IN (SELECT head_id FROM responses WHERE head_id IS NOT NULL)"
            )
        # SQLite keeps the pages of removed rows until the file is rewritten.
        connection.execute("VACUUM")
    return Pruned(removed, n_bytes, _size(path))


def _exclusive_connection(path: Path) -> sqlite3.Connection:
    """Open an exclusive connection.

    Raises:
        RunError: another process has the store open.
    """
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=1, isolation_level=None)
    try:
        check_format(connection)
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        # Succeeds only for the sole process that has the store open, since it removes the write-ahead log.
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
    return {model_id: adapter_of(Model).validate_json(text) for model_id, text in rows}


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
    """Yield the counts of each chosen model (all if None), for responses stored before a time (any if None)."""
    for model_id, model in (_all_models(connection) if chosen is None else chosen).items():
        row = connection.execute(
            # Both kinds of request have a prompt, but only choices have options.
            "SELECT COALESCE(SUM(choice), 0), COALESCE(SUM(1 - choice), 0), COALESCE(SUM(n_bytes), 0), "
            "MIN(stored_at), MAX(stored_at) FROM (SELECT stored_at, "
            "json_type(CAST(request AS TEXT), '$.options') IS NOT NULL AS choice, "
            "LENGTH(key) + LENGTH(request) + LENGTH(response) AS n_bytes FROM responses "
            "WHERE model_id = ? AND (? IS NULL OR stored_at < ?))",
            (model_id, before, before),
        )
        n_choices, n_generations, n_bytes, oldest, newest = row.fetchone()
        n_bytes += _head_bytes(connection, model_id, before)
        yield StoredModel(model, n_choices, n_generations, n_bytes, oldest, newest)


def _head_bytes(connection: sqlite3.Connection, model_id: int, before: int | None) -> int:
    """Return the size of the beginnings of prompts that no other responses use."""
    chosen = "model_id = :model AND (:before IS NULL OR stored_at < :before)"
    (n_bytes,) = connection.execute(
        "SELECT COALESCE(SUM(LENGTH(CAST(text AS BLOB))), 0) FROM heads "
        f"WHERE id IN (SELECT head_id FROM responses WHERE {chosen}) "
        f"AND id NOT IN (SELECT head_id FROM responses WHERE head_id IS NOT NULL AND NOT ({chosen}))",
        {"model": model_id, "before": before},
    ).fetchone()
    return int(n_bytes)


def _delete(connection: sqlite3.Connection, model_id: int, before: int | None) -> None:
    connection.execute(
        "DELETE FROM responses WHERE model_id = ? AND (? IS NULL OR stored_at < ?)", (model_id, before, before)
    )
    for table, column in (("runtimes", "model_id"), ("choices", "model_id"), ("models", "id")):
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
