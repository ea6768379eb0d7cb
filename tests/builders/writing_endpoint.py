"""A chat endpoint that writes sentences on instruction.

Its answers follow from the request alone. Some are wrapped, cut off, wrong or refused, and some requests get 429 or 500
the first time.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from builders.synthbias.checks.check import word_list
from tests.evaluators.fake_endpoint import FakeEndpoint, Received

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


def written(prompt: str, seed: int) -> tuple[str, str]:
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


@dataclass
class WritingEndpoint(FakeEndpoint):
    tokenizer: Any = None
    delay: float = 0.03
    is_useful: bool = True
    """False for one that answers in prose alone."""
    sent: list[str] = field(default_factory=list)
    """Instructions in the wanted form that were answered."""
    refused: set[str] = field(default_factory=set)

    def answer(self, received: Received) -> tuple[int, dict[str, Any]]:
        body = received.body
        if received.route != "/chat/completions" or body.get("logprobs"):
            return 400, {"error": {"message": "logprobs are not served"}}
        prompt, seed = body["messages"][0]["content"], body["seed"]
        key = hashlib.sha256(f"{prompt}{seed}".encode()).hexdigest()
        number = int(key[:4], 16)
        is_instruction = _ASKED.search(prompt) is not None
        if is_instruction and number % 10 < 2 and key not in self.refused:
            self.refused.add(key)
            return 429 if number % 2 else 500, {"error": {"message": "slow down"}}
        text, finish = written(prompt, seed) if self.is_useful else ("There once was a baker.", "stop")
        if is_instruction and body.get("response_format"):
            self.sent.append(key)
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 500, "completion_tokens": 100}
        return 200, {"model": body["model"], "choices": [choice], "usage": usage}
