"""A server on 127.0.0.1 that answers with bytes as the test wrote them, however wrong."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from tests.evaluators.fake_endpoint import MODEL


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


@dataclass
class RawServer:
    """A server in threads, one for each connection; a context manager."""

    answer: Callable[[str, Mapping[str, Any]], Raw]
    """Function of the path, and of the JSON that was sent."""
    n_received: int = 0
    paths: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._main)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}/v1"

    def _main(self) -> None:
        threads = []
        while not self._stopped.is_set():
            try:
                connection, _ = self._server.accept()
            except OSError:
                break
            threads.append(threading.Thread(target=self._serve, args=(connection,)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            path, sent = _request(connection)
            self.n_received += 1
            self.paths.append(path)
            raw = self.answer(path, sent)
            if not raw.pause:
                connection.sendall(raw.content)
            for one in raw.content if raw.pause else b"":
                if self._stopped.is_set():
                    return
                connection.sendall(bytes([one]))
                time.sleep(raw.pause)
            if raw.stays:
                self._stopped.wait()


def _request(connection: socket.socket) -> tuple[str, Mapping[str, Any]]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _part(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    while len(body) < length:
        body += _part(connection)
    return head.split(b" ")[1].decode(), json.loads(body) if body else {}


def _part(connection: socket.socket) -> bytes:
    """Return what has come; a client that gave up in the middle of a request would be waited for without end."""
    part = connection.recv(65536)
    if not part:
        raise ConnectionError
    return part
