"""The response store: an SQLite file per run, from which the run resumes and every score can be traced to responses.

A key is the SHA-256 of the model's identity and the request, so that two models never share a response. Responses are
committed in groups as they arrive, one transaction each, by the store's own thread while the backend works on the next
group. A killed process loses the responses it was waiting for, and at most the group that was being written. A cache
that several runs share is also a store, with the responses of many models; the functions at the end read both kinds.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import TypeAdapter, ValidationError

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, RunError
from biasboard.ground.files import disk_full
from evaluators.backend import ChoiceRequest, Request, Response, Runtime, Sent
from schemas.documents.result import Model
from schemas.files import contract

STORE = "responses.sqlite"
_FORMAT = 3
# Appending rows and indexing their keys takes half the time of a table ordered by key.
_TABLES = """
CREATE TABLE IF NOT EXISTS models (id INTEGER PRIMARY KEY, model_sha256 TEXT NOT NULL UNIQUE, model TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS responses (
    key BLOB NOT NULL UNIQUE, model_id INTEGER NOT NULL, request BLOB NOT NULL, response BLOB NOT NULL,
    stored_at INTEGER NOT NULL, head_id INTEGER
);
CREATE TABLE IF NOT EXISTS heads (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS usage (n_attempts INTEGER NOT NULL, seconds REAL NOT NULL, cost_usd REAL);
CREATE TABLE IF NOT EXISTS runtimes (
    model_id INTEGER NOT NULL, runtime TEXT NOT NULL, PRIMARY KEY (model_id, runtime)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS choices (
    model_id INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (model_id, name)
) WITHOUT ROWID;
"""
_VARIABLES = 30_000  # SQLite allows 32,766 in one statement.
_BUSY_SECONDS = 60
"""Seconds to wait for another process that writes to a store."""
# With both limits the store slows a backend of 10,000 requests a second by 2 to 3 %; without them, by 8 %.
_PATIENCE = 0.05
"""Longest wait for a commit before the run continues, as a share of the time that its responses took."""
_UNHURRIED = 1e-3
"""Seconds per response below which a run never waits for a commit, since waiting costs more than it saves."""
# With prompts of 1.8 kB that show solved examples, an answer took 4,152 bytes; storing shared beginnings once: 739.
LEAST_HEAD = 256
"""Number of characters from which a shared beginning is worth a row of its own."""
_MOST_HEADS = 16
"""Number of latest beginnings that a prompt is compared with."""
_MOST_RECENT = 8


class Totals(NamedTuple):
    """Totals of the requests sent in all sessions of a run."""

    n_attempts: int
    """Number of requests sent, answered or not, including repetitions."""
    seconds: float
    """Seconds that the responses took."""
    cost_usd: float | None
    """Cost in US dollars; None if a price is unknown."""


def store_key(model: Model, request: Request, *, with_facts: bool) -> bytes:
    """Return the key of a response, 32 bytes.

    It includes the model, because a cache without it gave one model the answers of another in lm-evaluation-harness
    (issue #4063).

    Args:
        model: Model that is asked.
        request: Request to the model.
        with_facts: True if the response also depends on the request's facts.
    """
    facts = strict_json.sha256(dict(request.facts)) if with_facts else ""
    # Two contexts may send the same request but are answered by different adapters.
    adapter = "" if request.adapter is None else f":{request.adapter}"
    # In a chat, the same text is another question if a part of it is the model's own.
    is_begun = isinstance(request, ChoiceRequest) and request.n_begun and model.chat_template_sha256 is not None
    begun = ":begun" if is_begun else ""
    return hashlib.sha256(f"{model.identity_sha256}:{request.sha256}:{facts}{adapter}{begun}".encode()).digest()


class ResponseStore:
    """A file with the responses of one run, or of many runs and models; a context manager."""

    def __init__(self, path: Path, model: Model) -> None:
        """Open the store, or create it if it does not exist.

        Args:
            path: SQLite file of the store.
            model: Model that is asked; it is recorded beside its responses.

        Raises:
            RunError: the file is not a store.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite releases the interpreter lock while it works. A single thread keeps the order of the calls.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._writing: list[Future[None]] = []
        self._noted: Runtime | None = None
        try:
            self._thread.submit(self._open, model).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def _open(self, model: Model) -> None:
        with store_errors(self.path):
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS)
            # With a write-ahead log a commit survives kill -9 without waiting for the disk.
            _use_log(self._connection)
            self._connection.execute("PRAGMA synchronous=NORMAL")
            with self._connection:
                # One transaction, so that another process sees all tables with their format, or none.
                self._connection.execute("BEGIN IMMEDIATE")
                check_format(self._connection)
                for statement in _TABLES.split(";"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version={_FORMAT}")
                self._connection.execute(
                    "INSERT OR IGNORE INTO models (model_sha256, model) VALUES (?, ?)",
                    (model.identity_sha256, strict_json.canonical(contract.plain(asdict(model))).decode()),
                )
            row = self._connection.execute("SELECT id FROM models WHERE model_sha256 = ?", (model.identity_sha256,))
            (self._model_id,) = row.fetchone()
            latest = self._connection.execute("SELECT text FROM heads ORDER BY id DESC LIMIT ?", (_MOST_HEADS,))
            self._heads = Heads(reversed([text for (text,) in latest.fetchall()]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish writing, merge the write-ahead log into the file and close it.

        Raises:
            RunError: the responses that were added last could not be written.
        """
        try:
            self._settle()
        finally:
            self._thread.submit(self._close).result()
            self._thread.shutdown()

    def _close(self) -> None:
        # Commits are safe in the log; if it cannot be merged now, the next process that opens the store merges it.
        with suppress(sqlite3.DatabaseError):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def sent(self, sent: Sent) -> None:
        """Record the number and cost of requests that are being sent."""
        self._settle(timeout=0.0)
        self._write_later("INSERT INTO usage VALUES (?, 0, ?)", sent)

    def add(self, answers: Mapping[bytes, tuple[Request, Response]], seconds: float = 0.0) -> None:
        """Store responses in one transaction; failed ones are left out, so that they are asked again.

        Args:
            answers: Requests and responses by key.
            seconds: Seconds that the responses took; 0 if they were copied from another store.

        Raises:
            RunError: these or earlier responses could not be written.
        """
        self._settle()
        self._writing.append(self._thread.submit(self._write, answers, seconds))
        if seconds >= _UNHURRIED * len(answers):
            self._settle(timeout=_PATIENCE * seconds)

    def _settle(self, timeout: float | None = None) -> None:
        """Wait for pending writes, at most ``timeout`` seconds each (any time if None), and raise their errors."""
        while self._writing:
            try:
                self._writing[0].result(timeout)
            except TimeoutError:
                return
            except BaseException:
                self._writing.clear()
                raise
            self._writing.pop(0)

    def _write_later(self, statement: str, values: Sequence[object]) -> None:
        def execute() -> None:
            with store_errors(self.path), self._connection:
                self._connection.execute(statement, values)

        self._writing.append(self._thread.submit(execute))

    def _write(self, answers: Mapping[bytes, tuple[Request, Response]], seconds: float) -> None:
        responses, now = adapter_of(Response), int(time.time())
        sound = {key: answer for key, answer in answers.items() if answer[1].status != "failed"}
        heads = {key: self._heads.head_of(request.prompt) for key, (request, _) in sound.items()}
        with store_errors(self.path), self._connection:
            ids = {head: self._head_id(head) for head in dict.fromkeys(heads.values())}
            rows = [
                (
                    key,
                    self._model_id,
                    request_bytes(request, heads[key]),
                    responses.dump_json(response, exclude_defaults=True),
                    now,
                    ids[heads[key]],
                )
                for key, (request, response) in sound.items()
            ]
            # REPLACE, because two runs that share a cache may answer the same request at the same time.
            self._connection.executemany(
                "INSERT OR REPLACE INTO responses (key, model_id, request, response, stored_at, head_id) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                rows,
            )
            # Copied responses took no time, and recording their unknown cost would make the total unknown.
            if seconds:
                self._connection.execute("INSERT INTO usage VALUES (0, ?, 0)", (seconds,))

    def _head_id(self, head: str) -> int | None:
        """Return the row id of a beginning of prompts, storing it if new; None for the empty beginning."""
        if not head:
            return None
        digest = hashlib.sha256(head.encode()).digest()
        self._connection.execute("INSERT OR IGNORE INTO heads (sha256, text) VALUES (?, ?)", (digest, head))
        (head_id,) = self._connection.execute("SELECT id FROM heads WHERE sha256 = ?", (digest,)).fetchone()
        return int(head_id)

    def responses(self, keys: Iterable[bytes]) -> dict[bytes, Response]:
        """Return the stored responses by key, without keys that have none."""
        rows = self._read(lambda connection: stored_rows(connection, "key, response", list(keys)))
        decode = adapter_of(Response).validate_json
        with store_errors(self.path):
            return {key: decode(text) for key, text in rows}

    def _read(self, query: Callable[[sqlite3.Connection], Iterable[Any]]) -> list[Any]:
        """Return the rows of a query, after all earlier writes."""

        def rows() -> list[Any]:
            with store_errors(self.path):
                return list(query(self._connection))

        self._settle()
        return self._thread.submit(rows).result()

    def totals(self) -> Totals:
        """Return the totals of the requests sent so far."""
        (totals,) = self._read(
            lambda connection: connection.execute(
                "SELECT COALESCE(SUM(n_attempts), 0), COALESCE(SUM(seconds), 0.0), "
                # SUM skips unknown costs, and the sum would look complete.
                "CASE WHEN COUNT(cost_usd) = COUNT(*) THEN SUM(cost_usd) END FROM usage"
            )
        )
        return Totals(*totals)

    def note_runtime(self, runtime: Runtime) -> None:
        """Record where and how the responses of this session are computed."""
        if runtime == self._noted:
            return
        # Obstacles only explain refusals; they are not part of an answer's environment.
        fields = {name: value for name, value in asdict(runtime).items() if name != "obstacles"}
        text = strict_json.canonical(contract.plain(fields)).decode()
        self._write_later("INSERT OR IGNORE INTO runtimes VALUES (?, ?)", (self._model_id, text))
        self._noted = runtime

    def keep_choice(self, name: str, value: str) -> None:
        """Store how something is computed, so that the run does the same after a stop."""
        self._write_later("INSERT OR REPLACE INTO choices VALUES (?, ?, ?)", (self._model_id, name, value))

    def choices(self) -> dict[str, str]:
        """Return the stored choices by name."""
        statement = "SELECT name, value FROM choices WHERE model_id = ?"
        return dict(self._read(lambda connection: connection.execute(statement, (self._model_id,))))

    def runtimes(self) -> list[Runtime]:
        """Return where and how the responses of all sessions were computed, each distinct runtime once."""
        statement = "SELECT runtime FROM runtimes WHERE model_id = ? ORDER BY runtime"
        rows = self._read(lambda connection: connection.execute(statement, (self._model_id,)))
        with store_errors(self.path):
            return [adapter_of(Runtime).validate_json(text) for (text,) in rows]


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch the write-ahead log on.

    If another process does so at the same time, SQLite fails at once instead of waiting, hence the retries.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def check_format(connection: sqlite3.Connection) -> None:
    """Check that a file is empty or has the format of this version.

    Raises:
        sqlite3.DatabaseError: the file has another format.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if n_tables and version != _FORMAT:
        raise sqlite3.DatabaseError(f"written in format {version}, this version reads {_FORMAT}")


def stored_rows(connection: sqlite3.Connection, columns: str, keys: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Return columns of the stored responses to some keys."""
    # A list, because a cursor left open by an error could only be closed in the thread that opened it.
    rows: list[tuple[bytes, ...]] = []
    for start in range(0, len(keys), _VARIABLES):
        part = keys[start : start + _VARIABLES]
        marks = ",".join("?" * len(part))
        rows += connection.execute(f"SELECT {columns} FROM responses WHERE key IN ({marks})", part).fetchall()
    return rows


def request_bytes(request: Request, head: str) -> bytes:
    """Return the JSON of a request whose prompt lacks its beginning."""
    return adapter_of(Request).dump_json(replace(request, prompt=request.prompt[len(head) :]) if head else request)


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite, such as a full disk or a broken file, into a one-line ``RunError``.

    Committed responses stay in the file.
    """
    try:
        yield
    except (sqlite3.Error, ValidationError) as error:
        reason = str(error).splitlines()[0]
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        # Of a full quota, and where a file cannot grow that SQLite maps into memory, it says the latter.
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise RunError(disk_full(path, reason=reason, answers_kept=True)) from error
        if code == sqlite3.SQLITE_BUSY:
            raise RunError(
                f"{path}: another process has been writing to it for too long; wait for it or stop it"
            ) from error
        if code == sqlite3.SQLITE_CANTOPEN:
            raise RunError(f"{path}: {reason}; choose a place that can be read and written") from error
        raise RunError(f"{path}: not a usable response store ({reason}); move it away to start over") from error


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return what converts a type, such as :class:`Response`, to and from the JSON of a store."""
    return TypeAdapter(kind)


class Heads:
    """The beginnings that recent prompts share.

    Prompts of a task arrive close together, whatever the order in which a backend answers. It is thus enough to compare
    a prompt with the latest beginnings, and then with the latest prompts.
    """

    def __init__(self, heads: Iterable[str] = ()) -> None:
        """Start with some beginnings.

        Args:
            heads: Beginnings in the order in which they were last used.
        """
        self._heads = deque(heads, maxlen=_MOST_HEADS)
        self._recent: deque[str] = deque(maxlen=_MOST_RECENT)

    def head_of(self, prompt: str) -> str:
        """Return the beginning of a prompt that is stored separately; empty if the prompt is stored whole."""
        fitting = [head for head in self._heads if prompt.startswith(head)]
        head = max(fitting, key=len, default="") or self._new_head(prompt)
        if head:
            if head in self._heads:
                self._heads.remove(head)
            self._heads.append(head)
        self._recent.append(prompt)
        return head

    def _new_head(self, prompt: str) -> str:
        length = max((_n_shared(prompt, other) for other in self._recent), default=0)
        # A beginning cut at the end of a line is shared by more prompts than one cut inside it.
        line = prompt.rfind("\n", 0, length) + 1
        length = line if line >= LEAST_HEAD else length
        return prompt[:length] if length >= LEAST_HEAD else ""


def _n_shared(left: str, right: str) -> int:
    """Return the length of the common beginning of two texts.

    >>> _n_shared("the baker", "the banker")
    6
    """
    # Bisection compares slices: a fraction of the time of os.path.commonprefix on texts of a megabyte.
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left.startswith(right[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


# From outside a run, stores are read without changing them: what is answered, how much, and how fast.


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
    # Another process may have locked it: two seconds are enough for answers that only save time.
    with store_errors(path), closing(sqlite3.connect(address, uri=True, timeout=2.0)) as connection:
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
    """A number of answers, and the time and tokens that a model took for them."""

    n_answers: int
    seconds: float
    tokens: tuple[float, float] | None = None
    """Mean numbers of prompt and completion tokens of an answer; None if the model did not state them."""


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
        tokens = connection.execute(
            "SELECT AVG(json_extract(response, '$.n_prompt_tokens')), "
            "AVG(json_extract(response, '$.n_completion_tokens')) FROM responses"
        ).fetchone()
    if len(models) != 1 or identity_sha256 not in (None, models[0][0]) or not seconds:
        return None
    # Copied answers took no time here, so no more answers count than were sent; a request may be sent more than once.
    return Pace(min(models[0][1], n_sent or models[0][1]), seconds, None if None in tokens else tokens)


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
