"""Asking a fake endpoint through the openai backend, and what came of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from evaluators.backend import GenerateRequest, Request, Response, Sent
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from evaluators.backends.openai.pacing import Patience
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Fault, Received

SERVES = frozenset({"chat", "models"})
QUICK = Patience(n_tries=4, call_seconds=0.5, outage_seconds=4.0, longest_pause=0.1)


def made(n: int) -> list[Request]:
    return [GenerateRequest(prompt=f"Say {number}", max_tokens=3) for number in range(n)]


def opened(endpoint: FakeEndpoint, patience: Patience = QUICK, **options: Any) -> OpenAIBackend:
    backend = open_backend(MODEL, BackendOptions(base_url=endpoint.url, **options))
    backend.patience = patience
    assert backend.capabilities == {"generation"}
    endpoint.received.clear()
    endpoint.answered.clear()
    return backend


class Asked:
    """What a backend handed over, also before an error."""

    def __init__(self) -> None:
        self.responses: dict[int, Response] = {}
        self.sent: list[Sent] = []

    @property
    def n_attempts(self) -> int:
        return sum(event.n_attempts for event in self.sent)

    def of(self, backend: OpenAIBackend, requests: Sequence[Request], missing: frozenset[int] | None = None) -> Asked:
        for event in backend.ask(requests, frozenset(range(len(requests))) if missing is None else missing):
            if isinstance(event, Sent):
                self.sent.append(event)
            else:
                assert not set(self.responses) & set(event.responses), "a request was answered twice"
                self.responses |= event.responses
        return self

    def statuses(self) -> Counter[str]:
        return Counter(response.status for response in self.responses.values())


def ask(
    backend: OpenAIBackend, requests: Sequence[Request], missing: frozenset[int] | None = None
) -> tuple[dict[int, Response], int]:
    """An answer to each missing request, by place, and the number of attempts."""
    asked = Asked().of(backend, requests, missing)
    assert set(asked.responses) == (set(range(len(requests))) if missing is None else missing)
    return asked.responses, asked.n_attempts


def number_in(received: Received) -> int:
    """Which of the made requests it is; -1 for probing."""
    text = received.body["messages"][0]["content"]
    return int(text.removeprefix("Say ")) if text.startswith("Say ") else -1


def first_tries(fault: Callable[[Received], Fault], n: int, of: set[int]) -> Callable[[Received], Fault | None]:
    """A fault on the first tries of some requests."""
    tries: Counter[int] = Counter()

    def before(received: Received) -> Fault | None:
        number = number_in(received)
        tries[number] += 1
        return fault(received) if number in of and tries[number] <= n else None

    return before


def error(message: str) -> bytes:
    return json.dumps({"error": {"message": message}}).encode()
