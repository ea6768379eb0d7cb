"""Reads stores of responses from outside a run, without changing them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from evaluators.backend import Response, Runtime
from evaluators.stores.store import (
    BUSY_SECONDS,
    REQUEST_COLUMNS,
    adapter_of,
    check_format,
    store_errors,
    stored_request,
    stored_rows,
)
from schemas.documents.result import Model


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
