"""Asking a fake endpoint, or a server that answers with bytes as the test wrote them, and what came of it."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, NamedTuple, Self, TypeAlias

from evaluators.backend import GenerateRequest, Request, Response, Sent
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from evaluators.backends.openai.pacing import Patience
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Fault, Received

SERVES = frozenset({"chat", "models"})
QUICK = Patience(n_tries=4, call_seconds=0.5, outage_seconds=4.0, longest_pause=0.1)
IMPATIENT = Patience(n_tries=3, n_timeouts=2, call_seconds=0.0, outage_seconds=4.0, longest_pause=0.02)
N = 6
ODD = "Say 3"
"""The one prompt of a few that a server takes offence at."""
Body: TypeAlias = Mapping[str, Any]


class Raw(NamedTuple):
    """An answer in bytes, and the seconds to wait before each of them."""

    content: bytes
    pause: float = 0.0
    stays: bool = False
    """Whether the connection stays open afterwards, without another byte."""


def plain(data: Any, status: int = 200, kind: str = "application/json", more: str = "") -> Raw:
    """An answer as it should be."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    head = f"HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    return Raw(f"{head}{more}\r\n".encode("latin-1") + body)


def kept(data: Any) -> bytes:
    """An answer after which the connection stays open for the next request."""
    return plain(data).content.replace(b"connection: close\r\n", b"")


def models(*names: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in names or (MODEL,)]}


def chat(text: str = "They agree.", **more: Any) -> dict[str, Any]:
    """An answer of the chat API."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"model": MODEL, "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}, **more}


def choice(**fields: Any) -> dict[str, Any]:
    """A chat answer with other fields of its one choice."""
    answer = chat()
    answer["choices"] = [{**answer["choices"][0], **fields}]
    return answer


def ended(reason: str, text: Any = "", **message: Any) -> dict[str, Any]:
    """A chat answer that ended for a reason."""
    return choice(finish_reason=reason, message={"content": text, **message})


def streamed(*parts: Mapping[str, Any], end: str = "data: [DONE]\n\n") -> Raw:
    body = "".join(f": keep-alive\n\ndata: {json.dumps(part)}\n\n" for part in parts) + end
    return plain(body.encode(), kind="text/event-stream; charset=utf-8")


def deltas(*messages: Mapping[str, Any], reason: str = "stop") -> list[dict[str, Any]]:
    parts = [delta_with(message) for message in messages]
    return [
        *parts,
        delta_with({}, finish_reason=reason),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
    ]


def delta_with(message: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "choices": [{"index": 0, "delta": message, **fields}]}


class RawServer(ThreadingTCPServer):
    """A server in threads, one for each connection; a context manager."""

    request_queue_size = 128

    def __init__(self, answer: Callable[[str, Body], Raw]) -> None:
        """Create a server whose answer is a function of the path, and of the JSON that was sent."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.n_received = 0
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(StreamRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        # A client may give up in the middle of a request, or of its answer.
        with suppress(OSError, LookupError, ValueError):
            path = self.rfile.readline().split(b" ")[1].decode()
            length = int(http.client.parse_headers(self.rfile).get("content-length", "0"))
            sent = json.loads(self.rfile.read(length) or b"{}")
            server.n_received += 1
            raw: Raw = server.answer(path, sent)
            if not raw.pause:
                self.wfile.write(raw.content)
            for one in raw.content if raw.pause else b"":
                if server.stopped.wait(raw.pause):
                    return
                self.wfile.write(bytes([one]))
            if raw.stays:
                server.stopped.wait()


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


def prompt_of(sent: Body) -> str:
    return str(sent["messages"][-1]["content"])


def served(answer: Callable[[Body], Raw]) -> RawServer:
    """A server of a list of models and of chats, which answers with bytes as the test wrote them."""

    def serve(path: str, sent: Body) -> Raw:
        if path.partition("?")[0].endswith("/models"):
            return plain(models())
        if not path.partition("?")[0].endswith("/chat/completions"):
            return plain({"error": {"message": "no such route"}}, 404)
        return answer(sent)

    return RawServer(serve)


def of_items(answer: Callable[[str], Raw]) -> RawServer:
    """A sound server but for its answers to the prompts of a run, which are not those that find out what it can do."""
    return served(lambda sent: plain(chat()) if prompt_of(sent).startswith("The clock") else answer(prompt_of(sent)))


def connected(server: RawServer, **options: Any) -> OpenAIBackend:
    backend = open_backend(MODEL, BackendOptions(**{"base_url": server.url, "api": "chat", **options}))
    backend.patience = IMPATIENT
    return backend


def among_others(odd: Callable[[int], Raw], whole: Raw | None = None, **options: Any) -> tuple[Asked, int]:
    """What comes of a few requests of which one gets odd answers, by the number of the try, and how often it was."""
    tries = 0

    def answer(prompt: str) -> Raw:
        nonlocal tries
        if prompt != ODD:
            return whole or plain(chat())
        tries += 1
        return odd(tries)

    with of_items(answer) as server:
        asked = Asked().of(connected(server, **options), made(N))
    assert len(asked.responses) == N
    return asked, tries
