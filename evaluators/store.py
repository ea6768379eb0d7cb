"""The response store: one SQLite file per run, from which a run resumes and a score is traced to what the model said.

A key is the sha256 of the model's identity and of the request, so that two models never share an answer. A batch is
committed whole or not at all: a killed process loses the batch that it was waiting for and nothing else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

from pydantic import TypeAdapter, ValidationError

from evaluators.backend import Request, Response
from schemas import contract, strict_json
from schemas.errors import RunError
from schemas.result import Model
from schemas.strict_json import JsonValue

STORE = "responses.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS responses (
    key TEXT PRIMARY KEY, model_sha256 TEXT NOT NULL, request TEXT NOT NULL, response TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS models (model_sha256 TEXT PRIMARY KEY, model TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (id INTEGER PRIMARY KEY, n_requests INTEGER NOT NULL, seconds REAL);
"""
_VARIABLES = 30_000  # SQLite allows 32,766 in one statement.


class Totals(NamedTuple):
    """What was sent to the backend in all sessions of the run."""

    n_attempts: int
    """Requests in batches that were sent, answered or not."""
    seconds: float
    """Time in answered batches."""


def store_key(model: Model, request: Request, *, with_facts: bool) -> str:
    """Key of an answer.

    Args:
        model: Who is asked.
        request: What is asked.
        with_facts: Whether the answer depends on the request's facts too.
    """
    facts: dict[str, JsonValue] | None = dict(request.facts) if with_facts else None
    return strict_json.sha256({"model": model.identity_sha256, "request": request.sha256(), "facts": facts})


class ResponseStore:
    """Answers of one run; a context manager."""

    def __init__(self, path: Path, model: Model) -> None:
        """Open or make the store.

        Args:
            path: The SQLite file.
            model: Who is asked; recorded beside the answers.

        Raises:
            RunError: the file is no store.
        """
        self.path = path
        self._model = model
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path)
        with _store_errors(path):
            # With a write-ahead log a commit survives kill -9 without waiting for the disk.
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            with self._connection:
                self._connection.executescript(_TABLES)
                self._connection.execute(
                    "INSERT OR IGNORE INTO models VALUES (?, ?)",
                    (model.identity_sha256, strict_json.canonical(contract.plain(asdict(model))).decode()),
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Fold the log into the file, so that the file alone is the store, and close it."""
        with suppress(sqlite3.DatabaseError):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def started(self, n_requests: int) -> int:
        """Note that a batch is being sent, before it is; returns its id."""
        with _store_errors(self.path), self._connection:
            cursor = self._connection.execute("INSERT INTO batches (n_requests) VALUES (?)", (n_requests,))
        return cast(int, cursor.lastrowid)

    def add(self, batch: int, answers: Mapping[str, tuple[Request, Response]], seconds: float) -> None:
        """Store the answers of a batch in one transaction; failed ones are left out, so that they are asked again."""
        rows = [
            (key, self._model.identity_sha256, _encode_request(request), _encode_response(response))
            for key, (request, response) in answers.items()
            if response.status != "failed"
        ]
        with _store_errors(self.path), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)", rows)
            self._connection.execute("UPDATE batches SET seconds = ? WHERE id = ?", (seconds, batch))

    def responses(self, keys: Iterable[str]) -> dict[str, Response]:
        """The stored answers among these keys."""
        wanted = list(keys)
        found: dict[str, Response] = {}
        with _store_errors(self.path):
            for start in range(0, len(wanted), _VARIABLES):
                part = wanted[start : start + _VARIABLES]
                marks = ",".join("?" * len(part))
                rows = self._connection.execute(f"SELECT key, response FROM responses WHERE key IN ({marks})", part)
                found.update((key, _decode_response(text)) for key, text in rows)
        return found

    def totals(self) -> Totals:
        """What was sent so far."""
        row = self._connection.execute("SELECT COALESCE(SUM(n_requests), 0), COALESCE(SUM(seconds), 0.0) FROM batches")
        return Totals(*row.fetchone())


def read_answers(path: Path) -> dict[str, Response]:
    """Every answer of a store by the hash of its request, whoever gave it.

    Raises:
        RunError: the file is no store.
    """
    with _store_errors(path), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT request, response FROM responses").fetchall()
        return {_decode_request(request).sha256(): _decode_response(response) for request, response in rows}


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """A full disk or a broken file ends the run with one line; what was committed stays."""
    try:
        yield
    except (sqlite3.Error, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"{path}: not a usable response store ({reason}); make room on the disk, or move it away to start over"
        ) from error


@cache
def _request_adapter() -> TypeAdapter[Request]:
    return TypeAdapter(Request)


@cache
def _response_adapter() -> TypeAdapter[Response]:
    return TypeAdapter(Response)


def _encode_request(request: Request) -> str:
    return strict_json.canonical(_request_adapter().dump_python(request, mode="json")).decode()


def _encode_response(response: Response) -> str:
    # pydantic's own JSON would turn a log-probability of minus infinity into null, which means that it is unknown.
    return strict_json.canonical(contract.plain(_response_adapter().dump_python(response, mode="json"))).decode()


def _decode_request(text: str) -> Request:
    return _request_adapter().validate_json(text)


def _decode_response(text: str) -> Response:
    return _response_adapter().validate_json(text)
