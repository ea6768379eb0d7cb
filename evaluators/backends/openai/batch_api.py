"""Sends requests through the batch API, which answers an uploaded file of them within a day, at a discount.

The state of the batches is saved after every step, so that a killed run finds its batches again instead of paying for
them twice.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.plain_text import one_line
from biasboard.ground.progress import note
from evaluators.backend import Answers, Events, Request, Response, Sent
from evaluators.backends.openai.client import Client, Connection
from evaluators.backends.openai.concurrency import run_in_thread
from evaluators.backends.openai.costs import Ledger
from evaluators.backends.openai.meanings import (
    NoAnswerError,
    error_inside,
    error_of,
    error_text,
    list_in,
    mapping_in,
    mappings_in,
)
from evaluators.backends.openai.protocol import CHAT, COMPLETIONS, Call, shown
from evaluators.backends.openai.scoring import Methods, response_of

_RESPONSES_PER_EVENT = 1024
_N_TRIES = 8
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_NO_BATCH_API = "check that the endpoint has a batch API, or leave out --batch"
_KEPT = "Batches on their way are kept"
_MISSING = "the batch ended without an answer to this request; run the same command again"
_TWICE = "the batch ended with two different answers to this request"
# No path leads elsewhere; some providers have folders in ids.
_ID = re.compile(r"(?=.{1,200}$)[A-Za-z0-9][\w.:=@-]*(/[A-Za-z0-9][\w.:=@-]*)*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The largest size of a batch, and the interval at which its status is polled."""

    # OpenAI takes at most 50,000 requests in a file of 200 MB.
    lines: int = 50_000
    bytes: int = 190_000_000
    """Largest size of the uploaded file; the API allows 200 MB."""
    poll_seconds: float = 30.0
    most_seconds: float = 26 * 3600.0
    """Seconds after which a batch that has not ended is given up; the API promises to end it within 24 hours."""


@dataclass(slots=True)
class _Batch:
    """A batch that was uploaded and whose responses have not all been yielded."""

    file_id: str
    batch_id: str | None
    """None until the uploaded file is submitted as a batch."""
    requests: list[str]
    """First 40 hex digits of the hash of each request in the batch."""


@dataclass
class BatchRun:
    """A single call of ``Backend.ask`` that goes through the batch API."""

    connection: Connection
    methods: Methods
    ledger: Ledger
    identity: str
    """Hash of the model, which the file of unfinished batches repeats."""
    state_path: Path | None
    """File in which unfinished batches are recorded; if None, they are forgotten when the process ends."""
    limits: BatchLimits
    _batches: list[_Batch] = field(default_factory=list)

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Submit the missing requests in batches and yield their responses; see ``Backend.ask``."""
        self._load()
        since = time.perf_counter()
        indices_of: dict[str, list[int]] = defaultdict(list)
        for index in sorted(missing):
            indices_of[requests[index].sha256[:40]].append(index)
        under_way = {key for batch in self._batches for key in batch.requests}
        calls: dict[str, Call] = {}
        unaskable: dict[int, Response] = {}
        for key in [key for key in indices_of if key not in under_way]:
            try:
                called = self.methods.calls(requests[indices_of[key][0]])
            except NoAnswerError as error:
                unaskable |= dict.fromkeys(indices_of[key], response_of(error))
                continue
            if len(called) > 1:
                raise ConfigError("--batch sends one call per request, and here options take several; leave it out")
            calls[key] = called[0]
        if unaskable:
            yield Answers(unaskable, 0.0)
        yield from self._submit(calls)
        deadline = time.monotonic() + self.limits.most_seconds
        while self._batches:
            for batch in list(self._batches):
                entries = self._collect(batch, deadline)
                if entries is None:
                    continue
                keys = [key for key in batch.requests if key in indices_of]
                for start in range(0, len(keys), _RESPONSES_PER_EVENT):
                    responses: dict[int, Response] = {}
                    for key in keys[start : start + _RESPONSES_PER_EVENT]:
                        response = self._response(requests[indices_of[key][0]], entries.get(key, _MISSING))
                        responses |= dict.fromkeys(indices_of[key], response)
                    now = time.perf_counter()
                    if (sent := self.ledger.news()) is not None:
                        yield sent
                    yield Answers(responses, now - since)
                    since = now
                # Forget the batch only now: the caller has stored all responses that were yielded.
                self._forget(batch)
            if self._batches:
                time.sleep(self.limits.poll_seconds)

    def _submit(self, calls: Mapping[str, Call]) -> Iterator[Sent]:
        self.ledger.check_batch(calls.values())
        lines: dict[str, bytes] = {}
        size = 0
        for key, call in calls.items():
            entry = {"custom_id": key, "method": "POST", "url": f"/v1{call.route}", "body": dict(call.body)}
            line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
            if lines and (len(lines) == self.limits.lines or size + len(line) > self.limits.bytes):
                yield from self._send(lines)
                lines, size = {}, 0
            lines[key] = line
            size += len(line)
        if lines:
            yield from self._send(lines)

    def _send(self, lines: Mapping[str, bytes]) -> Iterator[Sent]:
        uploaded = self._retry(methodcaller("upload", "requests.jsonl", b"".join(lines.values())))
        batch = _Batch(_checked_id(uploaded, "an uploaded file"), None, list(lines))
        # Saved before the batch exists, so that a process killed in between finds its uploaded file again.
        self._batches.append(batch)
        self._save()
        self.ledger.n_attempts += len(lines)
        if (sent := self.ledger.news()) is not None:
            yield sent
        self._create(batch)

    def _create(self, batch: _Batch, made: Mapping[str, Any] | None = None) -> None:
        """Create a batch of an uploaded file, unless it was ``made`` before, and save its id."""
        if made is None:
            route = CHAT if self.methods.api == "chat" else COMPLETIONS
            body = {"input_file_id": batch.file_id, "endpoint": f"/v1{route}", "completion_window": "24h"}
            made, _ = self._retry(methodcaller("post", Call("/batches", body)))
        batch.batch_id = _checked_id(made.get("id"), "a batch")
        self._save()

    def _collect(self, batch: _Batch, deadline: float) -> dict[str, Any] | None:
        """Return the entries of a batch's result files by ``custom_id``; None if the batch has not ended.

        Raises:
            RunError: the endpoint rejected the batch, did not end it until the deadline, or cannot be reached.
        """
        if batch.batch_id is None:
            # The process was killed while it created the batch. The newest hundred hold it, unless a hundred others
            # were created since.
            newest = mappings_in(self._retry(methodcaller("get", "/batches?limit=100")), "data")
            same = [entry for entry in newest if entry.get("input_file_id") == batch.file_id]
            self._create(batch, same[0] if same else None)
        data = self._retry(methodcaller("get", f"/batches/{_checked_id(batch.batch_id, 'a batch')}"))
        status = data.get("status")
        if not isinstance(status, str):
            raise RunError(
                f"the endpoint gives {shown(status)} as the status of batch {batch.batch_id}; {_NO_BATCH_API}. {_KEPT}"
            )
        status = status.strip().lower()
        if status not in _ENDED:
            if time.monotonic() > deadline:
                hours = self.limits.most_seconds / 3600
                raise RunError(
                    f"batch {batch.batch_id} has not ended within {hours:.3g} hours. {_KEPT}: run again later"
                )
            return None
        if status == "failed":
            self._forget(batch)
            listed = list_in(mapping_in(data, "errors"), "data")[:3]
            reasons = "; ".join(message for message, *_ in map(error_text, listed)) or "no reason given"
            reasons = self.connection.address.clean(reasons)
            raise RunError(f"batch {batch.batch_id} was not accepted: {reasons}. Fix this and run the command again")
        entries: dict[str, Any] = {}
        for name in ("error_file_id", "output_file_id"):  # A response replaces an error of the same request.
            if data.get(name) in (None, ""):
                continue
            route = f"/files/{_checked_id(data[name], 'a file')}/content"
            found: dict[str, Any] = {}
            for entry in self._retry(methodcaller("get_lines", route, len(batch.requests))):
                if not isinstance(custom_id := entry.get("custom_id"), str):
                    continue
                earlier = found.setdefault(custom_id, entry)
                if earlier is _TWICE or earlier.get("response") != entry.get("response"):
                    found[custom_id] = _TWICE
            entries |= found
        return entries

    def _response(self, request: Request, entry: Mapping[str, Any] | str) -> Response:
        """Return the response in an entry of a batch's result files, or say why there is no entry."""
        if isinstance(entry, str):
            return response_of(NoAnswerError(entry))
        response, error = mapping_in(entry, "response"), entry.get("error")
        status, body = response.get("status_code"), response.get("body")
        if status == 200 and isinstance(body, Mapping) and not error and (error := error_inside(body)) is None:
            self.ledger.charge_batch(body)
            return self.methods.response(request, [body])
        # Only this line failed, also by an error that would end a run of single calls.
        known = status if isinstance(status, int) else 400
        return response_of(error_of(known, error or body, self.connection.address.clean, {}))

    def _retry(self, work: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
        """Run ``work`` with a client, and again after faults that may pass, until too many tries failed."""

        async def once() -> Any:
            async with Client(self.connection) as client:
                return await work(client)

        for n_tries in range(_N_TRIES):
            try:
                return run_in_thread(once())
            except NoAnswerError as fault:
                reason = fault.reason
                if not fault.passes:
                    raise RunError(f"{reason}; {fault.remedy or _NO_BATCH_API}. {_KEPT}") from None
                if n_tries + 1 < _N_TRIES:
                    pause = min(self.limits.poll_seconds, fault.retry_after or 2.0**n_tries)
                    host = self.connection.address.host_and_port
                    note(f"no answer from {host}: {reason}; tried again in {pause:.0f} s; Ctrl-C keeps the batches")
                    time.sleep(pause)
        raise RunError(f"{reason}; batches on their way are kept: run the same command again")

    def _load(self) -> None:
        if self.state_path is None or not self.state_path.is_file():
            return
        state: Any = strict_json.read(self.state_path)
        try:
            batches = TypeAdapter(list[_Batch]).validate_python(state["batches"])
            is_other = state["model"] != self.identity
        except (LookupError, TypeError, ValueError) as error:
            raise DataError(f"{self.state_path}: no list of batches ({one_line(error)}); move the file away") from None
        if is_other:
            raise ConfigError(f"{self.state_path}: batches of another model; move the file away")
        self._batches = batches

    def _forget(self, batch: _Batch) -> None:
        self._batches.remove(batch)
        self._save()

    def _save(self) -> None:
        if self.state_path is None:
            return
        if not self._batches:
            self.state_path.unlink(missing_ok=True)
            return
        batches: list[Any] = [asdict(batch) for batch in self._batches]
        strict_json.write(self.state_path, {"model": self.identity, "batches": batches})


def _checked_id(name: object, what: str) -> str:
    """Return an id from the endpoint as text; by what is none, the answers could never be fetched."""
    if isinstance(name, bool) or not isinstance(name, str | int) or not _ID.fullmatch(str(name)):
        raise RunError(f"the endpoint gives {shown(name)} as the id of {what}; {_NO_BATCH_API}. {_KEPT}")
    return str(name)
