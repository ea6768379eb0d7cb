"""An OpenAI-compatible endpoint on 127.0.0.1: it answers from arithmetic, counts, and misbehaves on demand.

Its "language model" is :func:`token_logprob`, which tests call themselves to know what should come back.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tokenizers import Tokenizer

from tests.evaluators.made_data import made_items
from tests.evaluators.made_tokenizers import save_trained

MODEL = "made/model"
CHAT_FRAME = 7
CHAT_TOP: Mapping[str, float] = {"A": -0.7, "B": -1.2, "The": -2.5, " nurse": -3.5}


def token_logprob(before: Sequence[int], token: int) -> float:
    """Of a token after others, in nats."""
    return -1 - zlib.crc32(json.dumps([*before, token]).encode()) % 8000 / 1000


def save_tokenizer(folder: Path, *, template: str | None = None) -> Path:
    """A byte-level tokenizer with a BOS, as :func:`transformers.AutoTokenizer` loads it."""
    texts = [f"{item.sentence} '{item.pronoun}' refers to the {item.reference}." for item in made_items(60)]
    names: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": template}
    save_trained(folder, "bytes", texts, ["<s>", "</s>"], size=500, single="<s> $A", **names)
    return folder


@dataclass(frozen=True)
class Received:
    """One request for the model."""

    number: int
    """From 0, in order of arrival, probing included."""
    route: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    seconds: float


@dataclass(frozen=True)
class Fault:
    """What to do instead of answering."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    cut: bool = False
    """Close the connection in the middle of the body."""
    hang: bool = False


@dataclass
class FakeEndpoint:
    """A server in a thread; a context manager."""

    tokenizer: Tokenizer
    serves: frozenset[str] = frozenset({"option_trie", "echo", "lists", "chat", "top_logprobs", "models"})
    refuses: frozenset[str] = frozenset()
    """Parameters that end in status 400."""
    before: Callable[[Received], Fault | None] = lambda received: None
    alter: Callable[[Received, dict[str, Any]], Any] = lambda received, answer: answer
    headers: Callable[[Received], Mapping[str, str]] = lambda received: {}
    delay: float = 0.0
    adds_bos: bool = False
    port: int = 0
    received: list[Received] = field(default_factory=list)
    n_received: int = 0
    n_prompt_tokens: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    """Answers that were sent whole, by what was asked."""
    most_at_a_time: int = 0

    def __post_init__(self) -> None:
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def n_connections(self) -> int:
        """The number of connections that are open and may still bring a request."""
        return len(self._tasks)

    async def _main(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                    first, *lines = head.strip().split("\r\n")
                    headers = {
                        name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
                    }
                    content = await reader.readexactly(int(headers.get("content-length", 0)))
                    method, path, _ = first.split(" ")
                    if not await self._handle(writer, method, path, headers, content):
                        return
        finally:
            writer.close()

    async def _handle(
        self, writer: asyncio.StreamWriter, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> bool:
        """Answer one request; false to close the connection."""
        route = path.partition("?")[0].removeprefix("/v1")
        if route not in ("/completions", "/chat/completions"):
            status, answer = self.other(method, path.removeprefix("/v1"), content)
            await _write(writer, status, {}, answer if isinstance(answer, bytes) else json.dumps(answer).encode())
            return True
        received = Received(self.n_received, route, json.loads(content), headers, time.monotonic())
        self.n_received += 1
        self.received.append(received)
        self._under_way += 1
        self.most_at_a_time = max(self.most_at_a_time, self._under_way)
        try:
            await asyncio.sleep(self.delay)
            fault = self.before(received)
            if fault is not None:
                if fault.hang:
                    await self._stopped.wait()
                await _write(writer, fault.status, fault.headers, fault.body, cut=fault.cut)
                return not fault.cut
            status, answer = self.answer(received)
            if status == 200:
                self.answered[json.dumps(received.body.get("prompt") or received.body.get("messages"))] += 1
                answer = self.alter(received, answer)
            await _write(writer, status, self.headers(received), json.dumps(answer).encode())
            return True
        finally:
            self._under_way -= 1

    def other(self, method: str, path: str, content: bytes) -> tuple[int, Any]:
        """What is not a request for the model; the batch API adds to it."""
        if path.startswith("/models") and "models" in self.serves:
            entry = {"id": MODEL, "object": "model", "owned_by": "tests"}
            return 200, {"object": "list", "data": [entry]}
        return 404, {"error": {"message": "no such route"}}

    def answer(self, received: Received) -> tuple[int, dict[str, Any]]:
        """What an endpoint without faults answers."""
        body = received.body
        for name in self.refuses & set(body):
            error = {"message": f"Unsupported parameter: '{name}'", "param": name, "code": "unsupported_parameter"}
            return 400, {"error": error}
        if body["model"] != MODEL:
            return 404, {"error": {"message": f"The model '{body['model']}' does not exist", "code": "model_not_found"}}
        if received.route == "/chat/completions":
            return self._chat(body) if "chat" in self.serves else (404, {"detail": "Not Found"})
        return (
            self._completions(body) if self.serves & {"option_trie", "echo", "text"} else (404, {"detail": "Not Found"})
        )

    def _completions(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        prompt = body["prompt"]
        several = isinstance(prompt, list) and not isinstance(prompt[0], int)
        if several and "lists" not in self.serves:
            return 400, {"error": {"message": "prompt must be a string or a list of integers"}}
        prompts = [self.ids(one) for one in (prompt if several else [prompt])]
        n_tokens = sum(map(len, prompts))
        self.n_prompt_tokens += n_tokens
        choices = [self._choice(index, ids, body) for index, ids in enumerate(prompts)]
        usage = {"prompt_tokens": n_tokens, "completion_tokens": len(prompts) * min(body["max_tokens"], 3)}
        return 200, {"model": body["model"], "choices": choices, "usage": usage}

    def ids(self, prompt: str | list[int]) -> list[int]:
        """A prompt's tokens."""
        ids: list[int] = prompt if isinstance(prompt, list) else self.tokenizer.encode(prompt).ids
        return [0, *ids] if self.adds_bos else ids

    def _choice(self, index: int, ids: Sequence[int], body: Mapping[str, Any]) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index, "text": " and so on", "finish_reason": "length", "logprobs": None}
        if body.get("logprobs") is None:
            return choice
        as_ids = body.get("return_tokens_as_token_ids") and "option_trie" in self.serves

        def spelled(token: int) -> str:
            return f"token_id:{token}" if as_ids else self.tokenizer.decode([token], skip_special_tokens=False)

        listed = [*(body.get("logprob_token_ids", ()) if "option_trie" in self.serves else ()), 7]
        top = {spelled(token): token_logprob(ids, token) for token in listed}
        tokens, values = [spelled(7)], [token_logprob(ids, 7)]
        if body.get("echo") and "echo" in self.serves:
            tokens = [*map(spelled, ids), *tokens]
            values = [None, *(token_logprob(ids[:at], ids[at]) for at in range(1, len(ids))), *values]  # type: ignore[list-item]
        choice["logprobs"] = {"tokens": tokens, "token_logprobs": values, "top_logprobs": [top]}
        return choice

    def _chat(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        prompt = body["messages"][0]["content"]
        n_tokens = len(self.tokenizer.encode(prompt, add_special_tokens=False).ids) + CHAT_FRAME
        self.n_prompt_tokens += n_tokens
        most = body.get("max_completion_tokens", body.get("max_tokens"))
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "logprobs": None}
        choice["message"] = {"role": "assistant", "content": f"You said: {prompt}", "refusal": None}
        if body.get("logprobs") and "top_logprobs" in self.serves:
            top = [{"token": token, "logprob": value} for token, value in CHAT_TOP.items()]
            choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        usage = {"prompt_tokens": n_tokens, "completion_tokens": min(most, 5)}
        return 200, {"model": body["model"], "system_fingerprint": "fp_made", "choices": [choice], "usage": usage}


async def _write(
    writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], content: bytes, *, cut: bool = False
) -> None:
    head = {"content-type": "application/json", "content-length": str(len(content) + (10 if cut else 0)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    writer.write(f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode() + content)
    await writer.drain()
