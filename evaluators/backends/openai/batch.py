"""Sends requests through the batch API, which answers an uploaded file of them within a day, at a discount.

The state of the batches is saved after every step, so that a run that was killed finds its batches again instead of
paying for them twice.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, RunError
from biasboard.ground.progress import note
from evaluators.backend import Answers, Events, Request, Response, Sent
from evaluators.backends.openai.budget import Budget
from evaluators.backends.openai.caller import Connection, Tally, run_apart
from evaluators.backends.openai.calls import Ways, failed, rejected
from evaluators.backends.openai.client import MOST_BYTES_OF_FILE, Call, Client, FaultError, RejectedError, quiet_logs

_HAND_OVER = 1024
_KEY_LENGTH = 40
_N_TRIES = 8
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The largest size of a batch, and the interval at which its status is polled."""

    lines: int = 50_000
    bytes: int = 190_000_000
    """Largest size of the uploaded file; the API allows 200 MB."""
    poll_seconds: float = 30.0


@dataclass(slots=True)
class _Batch:
    """A batch that was uploaded and whose responses were not all handed over."""

    file_id: str
    batch_id: str | None
    """None until the uploaded file is submitted as a batch."""
    requests: list[str]
    """First 40 hex digits of the hash of each request in the batch."""


@dataclass
class BatchRun:
    """A single call of ``Backend.ask`` that goes through the batch API."""

    connection: Connection
    ways: Ways
    budget: Budget
    tally: Tally
    identity: str
    state_path: Path | None
    """File in which unfinished batches are recorded; if None, they are forgotten when the process ends."""
    limits: BatchLimits
    _batches: list[_Batch] = field(default_factory=list)

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Submit the missing requests in batches and yield their responses; see ``Backend.ask``."""
        self._load()
        places: dict[str, list[int]] = defaultdict(list)
        for place in sorted(missing):
            places[requests[place].sha256[:_KEY_LENGTH]].append(place)
        since = time.perf_counter()
        on_its_way = {key for batch in self._batches for key in batch.requests}
        fresh = {key: requests[of[0]] for key, of in places.items() if key not in on_its_way}
        calls = {key: self.ways.calls(request) for key, request in fresh.items()}
        unaskable = {key: failed(reason) for key, reason in calls.items() if isinstance(reason, str)}
        if unaskable:
            yield Answers({place: response for key, response in unaskable.items() for place in places[key]}, 0.0)
        yield from self._submit({key: many for key, many in calls.items() if not isinstance(many, str)})
        while self._batches:
            for batch in list(self._batches):
                replies = self._collect(batch)
                if replies is None:
                    continue
                wanted = {key: requests[places[key][0]] for key in batch.requests if key in places}
                for part in _parts(list(wanted), _HAND_OVER):
                    answers, cost = self._answers({key: wanted[key] for key in part}, replies)
                    now = time.perf_counter()
                    if cost is not None:
                        yield Sent(0, cost)
                    yield Answers({place: answers[key] for key in part for place in places[key]}, now - since)
                    since = now
                # Forget the batch only now: the caller has stored all responses that were yielded.
                self._batches.remove(batch)
                self._save()
            if self._batches:
                time.sleep(self.limits.poll_seconds)

    def _submit(self, fresh: Mapping[str, Sequence[Call]]) -> Iterator[Sent]:
        self.budget.check(sum(self.budget.at_most(call, batch=True) for calls in fresh.values() for call in calls))
        lines: list[bytes] = []
        keys: list[str] = []
        size = 0
        for key, calls in fresh.items():
            new = [_line(f"{key}-{number}", call) for number, call in enumerate(calls)]
            n_bytes = sum(map(len, new))
            if lines and (len(lines) + len(new) > self.limits.lines or size + n_bytes > self.limits.bytes):
                yield from self._send(lines, keys)
                lines, keys, size = [], [], 0
            lines += new
            keys.append(key)
            size += n_bytes
        if lines:
            yield from self._send(lines, keys)

    def _send(self, lines: Sequence[bytes], keys: Sequence[str]) -> Iterator[Sent]:
        content = b"".join(lines)
        file_id = self._reach(lambda client: client.upload("requests.jsonl", content))
        batch = _Batch(file_id, None, list(keys))
        self._batches.append(batch)
        self._save()
        yield Sent(len(lines), 0.0 if self.budget.has_price else None)
        self.tally.n_attempts += len(lines)
        self._create(batch)

    def _create(self, batch: _Batch) -> None:
        route = "/v1/chat/completions" if self.ways.generation.api == "chat" else "/v1/completions"
        body = {"input_file_id": batch.file_id, "endpoint": route, "completion_window": "24h"}
        made = self._reach(lambda client: client.post(Call("/batches", body))).data
        batch.batch_id = str(made["id"])
        self._save()

    def _collect(self, batch: _Batch) -> dict[str, Any] | None:
        """Return the entries of a batch's result files by ``custom_id``; None if the batch has not ended.

        Raises:
            RunError: the endpoint did not accept the batch, or cannot be reached.
        """
        if batch.batch_id is None:
            self._find(batch)
        data = self._reach(lambda client: client.get(f"/batches/{batch.batch_id}")).data
        status = data.get("status")
        if status not in _ENDED:
            return None
        if status == "failed":
            self._batches.remove(batch)
            self._save()
            held = (data.get("errors") or {}).get("data") or []
            reasons = "; ".join(str(error.get("message")) for error in held[:3]) or "no reason given"
            reasons = self.connection.address.clean(reasons)
            raise RunError(f"batch {batch.batch_id} was not accepted: {reasons}. Fix this and run the command again")
        replies: dict[str, Any] = {}
        for name in ("error_file_id", "output_file_id"):  # A response replaces an error of the same request.
            file_id = data.get(name)
            if file_id:
                text = self._read(str(file_id))
                for line in filter(None, text.splitlines()):
                    entry = json.loads(line, parse_constant=lambda _: None)
                    replies[str(entry.get("custom_id"))] = entry
        return replies

    def _read(self, file_id: str) -> str:
        return self._reach(lambda client: client.get_text(f"/files/{file_id}/content"))

    def _find(self, batch: _Batch) -> None:
        """Find the id of a batch that was being created when the process was killed, or create the batch now."""
        listed = self._reach(lambda client: client.get("/batches?limit=100")).data.get("data") or []
        same = [entry for entry in listed if entry.get("input_file_id") == batch.file_id]
        if same:
            batch.batch_id = str(same[0]["id"])
            self._save()
        else:
            self._create(batch)

    def _answers(
        self, wanted: Mapping[str, Request], replies: Mapping[str, Any]
    ) -> tuple[dict[str, Response], float | None]:
        cost = 0.0
        answers = {}
        for key, request in wanted.items():
            calls = self.ways.calls(request)
            assert not isinstance(calls, str)
            entries = [replies.get(f"{key}-{number}") for number in range(len(calls))]
            bodies = []
            for entry in entries:
                body = self._body(entry)
                if isinstance(body, Response):
                    answers[key] = body
                    break
                bodies.append(body)
                self.tally.see(body)
                cost += self.budget.cost_usd(body, batch=True) or 0.0
            else:
                answers[key] = self.ways.response(request, bodies)
        self.budget.spent_usd += cost
        self.tally.cost_usd += cost
        return answers, cost if self.budget.has_price else None

    def _body(self, entry: Any) -> Mapping[str, Any] | Response:
        """Return the reply in an entry of a batch's result files, or the response that its error stands for."""
        if not isinstance(entry, Mapping):
            return failed("the batch ended without an answer to this request; run the same command again")
        response = entry.get("response")
        status = response.get("status_code") if isinstance(response, Mapping) else None
        body = response.get("body") if isinstance(response, Mapping) else None
        if status == 200 and isinstance(body, Mapping):
            return body
        error = entry.get("error") or (body.get("error") if isinstance(body, Mapping) else None) or {}
        fields = error if isinstance(error, Mapping) else {"message": error}
        reason = self.connection.address.clean(f"HTTP {status}: {fields.get('message') or 'no reason given'}")
        return rejected(RejectedError(400, reason, str(fields.get("code") or ""), ""))

    def _reach(self, work: Callable[[Client], Coroutine[Any, Any, _T]]) -> _T:
        """Run ``work`` with a client, and again after faults that may pass.

        Raises:
            RunError: the endpoint refused the call, or every try failed.
        """

        async def once() -> _T:
            with quiet_logs(self.connection.address):
                async with Client(
                    self.connection.address, self.connection.timeout, most_bytes=MOST_BYTES_OF_FILE
                ) as client:
                    return await work(client)

        for n_tries in range(_N_TRIES):
            try:
                return run_apart(once)
            except FaultError as fault:
                reason = fault.reason
                if n_tries + 1 < _N_TRIES:
                    pause = min(self.limits.poll_seconds, fault.retry_after or 2.0**n_tries)
                    place = self.connection.address.place
                    note(f"no answer from {place}: {reason}; tried again in {pause:.0f} s; Ctrl-C keeps the batches")
                    time.sleep(pause)
            except RejectedError as error:
                remedy = error.remedy or "check that the endpoint has a batch API, or leave out --batch"
                raise RunError(f"{error.reason}; {remedy}. Batches on their way are kept") from None
        raise RunError(f"{reason}; batches on their way are kept: run the same command again")

    def _load(self) -> None:
        if self.state_path is None or not self.state_path.is_file():
            return
        state: Any = strict_json.read(self.state_path)
        if state.get("model") != self.identity:
            raise ConfigError(f"{self.state_path}: batches of another model; move the file away")
        self._batches = [_Batch(**entry) for entry in state["batches"]]

    def _save(self) -> None:
        if self.state_path is None:
            return
        if not self._batches:
            self.state_path.unlink(missing_ok=True)
            return
        entries: list[Any] = [
            {"file_id": batch.file_id, "batch_id": batch.batch_id, "requests": list(batch.requests)}
            for batch in self._batches
        ]
        strict_json.write(self.state_path, {"model": self.identity, "batches": entries})


def _line(custom_id: str, call: Call) -> bytes:
    entry = {"custom_id": custom_id, "method": "POST", "url": f"/v1{call.route}", "body": dict(call.body)}
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _parts(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (values[start : start + size] for start in range(0, len(values), size))
