"""A chat server that writes sentences on instruction, in a process of its own.

Its answers follow from the request alone. Some are wrapped, cut off, wrong, refused or slow, and some
requests get 429 or 500 the first time. Each answer that was sent is a line of a log, so that a test can count what was
asked twice. It is started with ``python -m tests.builders.writing_server LOG``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from builders.synthbias.checks.check import word_list

MODEL = "made/writer"
USELESS = "made/useless"
"""Model that answers in prose alone."""
_ASKED = re.compile(r"Write (\d+) different English sentences about the (.+?) and the (.+?), in each")
_SETTINGS = sorted(
    word_list("cellar attic stable harbor orchard bakery corridor courtyard museum station theater lawn")
)
_STATES = sorted(word_list("cold tired hungry late early ready thirsty certain curious anxious calm famous busy angry"))
_THINGS = sorted(word_list("basket bucket ladder lantern kettle pillow helmet compass blanket hammer shovel umbrella"))


def sentence(first: str, second: str, place: int) -> dict[str, str]:
    """A sentence in the form of an answer; other places give other sentences."""
    setting, state = _SETTINGS[place % 12], _STATES[place // 12 % 14]
    thing = _THINGS[place // 168 % 12]
    if place % 2:
        return {
            "before": f"In the {setting} the {first} and the {second} put down a {thing} because",
            "case": "nominative",
            "after": f"was {state}.",
        }
    return {
        "before": f"Near the {setting} the {first} saw how the {second} lifted a {thing} with",
        "case": "possessive_dependent",
        "after": f"{state} hands.",
    }


def answer(prompt: str, seed: int) -> tuple[str, str]:
    """The text of an answer, and why it ended."""
    asked = _ASKED.search(prompt)
    if asked is None:
        return "Hello there.", "stop"
    n, first, second = int(asked[1]), asked[2], asked[3]
    drawn = hashlib.sha256(f"{prompt}{seed}".encode()).digest()
    sentences = [sentence(first, second, drawn[2 * number] * 256 + drawn[2 * number + 1]) for number in range(n)]
    kind = drawn[30] % 20
    if kind == 0:
        sentences[0]["after"] = "told the manager of the farmer."
    elif kind == 1:
        sentences[0]["case"] = "genitive"
    elif kind == 2:
        return "I'm sorry, but I cannot help with that.", "stop"
    text = json.dumps({"sentences": sentences})
    if kind == 3:
        return text[: len(text) // 2], "length"
    if kind == 4:
        return f"Here you are:\n```json\n{text}\n```\nAnything else?", "stop"
    return text, "stop"


class Server(ThreadingHTTPServer):
    """The server and its log."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, log: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log, self.lock = log.open("a", encoding="utf-8", buffering=1), threading.Lock()
        self.refused: set[str] = set()


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *arguments: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        """List the models."""
        listed = [{"id": name, "object": "model", "owned_by": "tests"} for name in (MODEL, USELESS)]
        self.reply(200, {"object": "list", "data": listed})

    def do_POST(self) -> None:
        """Answer a chat, or misbehave."""
        body: Mapping[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/chat/completions") or body.get("logprobs"):
            self.reply(404 if "chat" not in self.path else 400, {"error": {"message": "logprobs are not served"}})
            return
        prompt, seed = body["messages"][0]["content"], body["seed"]
        key = hashlib.sha256(f"{prompt}{seed}".encode()).hexdigest()
        number = int(key[:4], 16)
        is_instruction = _ASKED.search(prompt) is not None
        if is_instruction and number % 10 < 2 and key not in self.server.refused:
            self.server.refused.add(key)
            self.reply(429 if number % 2 else 500, {"error": {"message": "slow down"}})
            return
        time.sleep(0.5 if number % 25 == 0 else 0.03)
        text, finish = answer(prompt, seed) if body["model"] == MODEL else ("There once was a baker.", "stop")
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 500, "completion_tokens": 100}
        if is_instruction:
            with self.server.lock:
                self.server.log.write(f"{'answered' if body.get('response_format') else 'free'} {key}\n")
        self.reply(200, {"model": body["model"], "choices": [choice], "usage": usage})

    def reply(self, status: int, value: object) -> None:
        """Send a JSON value."""
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    # The first line of the output is the port; it serves until the process is stopped.
    serving = Server(Path(sys.argv[1]))
    print(serving.server_address[1], flush=True)
    serving.serve_forever()
