"""Reads stores of responses from outside a run, without changing them: what is answered, how much, and how fast.

A shared cache and the ``responses.sqlite`` of a run are the same kind of file, and all functions read both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from evaluators.backend import Request, Response, Runtime
from evaluators.stores.store import (
    adapter_of,
    check_format,
    store_errors,
    stored_rows,
)
from schemas.documents.result import Model

_BUSY_SECONDS = 2.0
"""Seconds to wait for another process that has locked a store, whose answers only save time."""


@contextmanager
def open_store(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a snapshot of a store that other processes may be using, and leave no new file beside it.

    Even for reading, SQLite creates log files beside a store, and it removes them only if it may write. So a store
    without a log is opened as immutable, which creates none.

    Yields:
        A connection inside a transaction.

    Raises:
        RunError: the file is not a store.
    """
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    address = f"{path.resolve().as_uri()}?{mode}"
    with store_errors(path), closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)) as connection:
        connection.execute("BEGIN")
        check_format(connection)
        yield connection


def is_begun(path: Path) -> bool:
    """Return True if a store's file is not empty; SQLite creates it empty."""
    return path.is_file() and path.stat().st_size > 0


def answered_keys(path: Path, keys: Iterable[bytes]) -> set[bytes]:
    """Return the keys to which a store holds a response; none if there is no store. No file is created.

    Args:
        path: File of the store.
        keys: Keys of responses.

    Raises:
        RunError: the file is not a store.
    """
    if not is_begun(path):
        return set()
    with open_store(path) as connection:
        return {key for (key,) in stored_rows(connection, "key", list(keys))}


def stored_responses(
    path: Path, keys: Iterable[bytes], model: Model
) -> tuple[dict[bytes, Response], tuple[Runtime, ...]]:
    """Read a model's responses to some keys from a store, and the distinct runtimes of the model.

    Args:
        path: File of the store.
        keys: Keys of responses.
        model: Model that the keys belong to.

    Raises:
        RunError: the file is not a store, or one of the responses cannot be read.
    """
    decode_response, decode_runtime = adapter_of(Response).validate_json, adapter_of(Runtime).validate_json
    with open_store(path) as connection:
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


def pace(path: Path, identity_sha256: str | None) -> Pace | None:
    """Return how fast a model gave the answers in a store; None if unknown.

    A store records one total time for all its models, so the pace is known only if it has a single model.

    Args:
        path: File of the store.
        identity_sha256: Identity of the model; None for any.

    Raises:
        RunError: the file is not a store.
    """
    if not is_begun(path):
        return None
    with open_store(path) as connection:
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
    with open_store(path) as connection:
        rows = connection.execute(
            "SELECT request, response, COALESCE(text, '') FROM responses LEFT JOIN heads ON heads.id = head_id"
        )
        answers: dict[str, Response] = {}
        for request, response, head in rows:
            # A beginning that prompts share is stored once, and the rest of each with its request.
            rest: Request = adapter_of(Request).validate_json(request)
            if rest.adapter is None:
                whole = replace(rest, prompt=head + rest.prompt)
                answers[whole.sha256] = adapter_of(Response).validate_json(response)
        return answers


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
        with open_store(path):
            pass
