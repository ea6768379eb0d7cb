"""Reads stores of responses from outside a run and leaves them as they are."""

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
    check_format,
    request_columns,
    response_adapter,
    runtime_adapter,
    store_errors,
    stored_request,
    stored_rows,
)
from schemas.documents.result import Model


@contextmanager
def open_store(
    path: Path, *, leave_no_trace: bool = False, busy_seconds: float = BUSY_SECONDS
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


def is_begun(path: Path) -> bool:
    """Return True if something was written to the file of a store, which SQLite creates empty."""
    return path.is_file() and path.stat().st_size > 0


def answered_keys(path: Path, keys: Iterable[bytes], *, busy_seconds: float = BUSY_SECONDS) -> set[bytes]:
    """Return those of the keys that a store holds a response to.

    If there is no store, the result is empty. No file is created.

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


class StoredResponses(NamedTuple):
    """Responses in a store, and where they were computed."""

    responses: dict[bytes, Response]
    runtimes: tuple[Runtime, ...]
    """Each distinct runtime of the model that gave them."""


def stored_responses(
    path: Path, keys: Iterable[bytes], model: Model, *, busy_seconds: float = BUSY_SECONDS
) -> StoredResponses:
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
        responses = {key: decode_response(text) for key, text in stored_rows(connection, "key, response", list(keys))}
        if not responses:
            return StoredResponses({}, ())
        rows = connection.execute(
            "SELECT runtime FROM runtimes JOIN models ON models.id = model_id WHERE model_sha256 = ? ORDER BY runtime",
            (model.identity_sha256,),
        )
        return StoredResponses(responses, tuple(decode_runtime(text) for (text,) in rows.fetchall()))


class Pace(NamedTuple):
    """The time in which a model gave some answers."""

    n_answers: int
    seconds: float


def pace(path: Path, identity_sha256: str | None, *, busy_seconds: float = BUSY_SECONDS) -> Pace | None:
    """Return how fast a model gave the answers of a store; None if it is unknown.

    A store adds up the times of all its models, so that those of one of several are unknown.

    Args:
        path: File of the store.
        identity_sha256: Identity of the model; None for whichever model the store has.
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
    # Answers that were taken over from another store took no time here; one request may be sent as several.
    return Pace(min(models[0][1], n_sent or models[0][1]), seconds)


def read_answers(path: Path) -> dict[str, Response]:
    """Read all responses of a store that were given without an adapter, of whatever model, by the hash of the request.

    Raises:
        RunError: the file is not a store.
    """
    with open_store(path, leave_no_trace=True) as connection:
        rows = connection.execute(f"SELECT {request_columns(connection)}, response FROM responses")
        decode = response_adapter().validate_json
        answers = ((stored_request(request, head), response) for request, head, response in rows)
        return {request.sha256: decode(response) for request, response in answers if request.adapter is None}
