"""Tells what a model thinks from what it answers, in texts that hold both.

Models of 2025 and 2026 think aloud before they answer. Some endpoints return the thinking by itself; others, and all
local models, return one text in which marks separate both. Everything that reads a text tells them apart here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

THINKING_TOKENS = 8192
"""Tokens that a model may think with beside those of its answer, unless the user chooses another number."""
_PAIRS = (
    *(
        (f"<{name}>", f"</{name}>")
        for name in ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think", "longcat_think")
    ),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("◁think▷", "◁/think▷"),  # Kimi
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|channel>thought", "<channel|>"),  # Gemma 4
    ("<unused94>thought", "<unused95>"),  # MedGemma
)
"""Marks that begin and end thinking. Where the prompt itself ends with the first, the text has only the second."""
_OPEN = re.compile("|".join(re.escape(begin) for begin, _ in _PAIRS), re.IGNORECASE)
_CLOSE = re.compile("|".join(re.escape(end) for _, end in _PAIRS), re.IGNORECASE)
# gpt-oss writes its answer into the channel "final", or into none, and what it thinks into others before. Decoded
# without special tokens, the names of role and channel are left.
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]*<\|message\|>")
_BARE_FINAL = "assistantfinal"
# Granite's, in words: they count only where an answer begins with them.
_IN_WORDS = re.compile(r"\s*Here is my thought process:(.*?)(?:Here is my response:\s*(.*))?\Z", re.DOTALL)
_SIGNS = (*"<[◁", _BARE_FINAL, "Here is my thought process:")
"""Texts of which every mark holds one."""
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return)\|>(?:<\|start\|>\w+)?")


class Thought(NamedTuple):
    """A text of a model, taken apart."""

    thinking: str | None
    """What it thought; None if the text shows no thinking."""
    answer: str
    """What it answered; empty if the text ends in the middle of thinking."""


def split_thinking(text: str) -> Thought:
    r"""Separate what a model thought from what it answered.

    >>> split_thinking("<think>The cook, so B.</think>\nB")
    Thought(thinking='The cook, so B.', answer='B')
    >>> split_thinking("The cook, so B.</think>B").answer
    'B'
    >>> split_thinking("<think>The cook")
    Thought(thinking='The cook', answer='')
    >>> split_thinking("B")
    Thought(thinking=None, answer='B')
    """
    # Most texts hold no mark at all, and there may be many of them.
    if not any(sign in text for sign in _SIGNS):
        return Thought(None, text)
    if in_words := _IN_WORDS.match(text):
        return Thought(in_words[1].strip(), in_words[2] or "")
    if channels := list(_CHANNEL.finditer(text)):
        last = channels[-1]
        message, *rest = _END_OF_MESSAGE.split(text[last.end() :], maxsplit=1)
        before = text[: last.start()]
        return Thought(before, message) if last[1] == "final" else Thought(before + message, "".join(rest))
    if _BARE_FINAL in text:
        thinking, _, answer = text.rpartition(_BARE_FINAL)
        return Thought(thinking.removeprefix("analysis"), answer)
    # The last end: a model may think again after it began to answer.
    end = next(reversed([*_CLOSE.finditer(text)]), None)
    # Line breaks after the mark belong to it: an answer that ends at the first of them would be empty.
    before, answer = ("", text) if end is None else (text[: end.start()], text[end.end() :].lstrip())
    begin = _OPEN.search(answer)
    if end is None and begin is None:
        return Thought(None, text)
    thinking = _OPEN.sub("", before, count=1)
    if begin is not None:
        thinking, answer = thinking + answer[begin.end() :], answer[: begin.start()]
    return Thought(thinking, answer)


def cut_answer(text: str, stop: Sequence[str]) -> str:
    r"""Return a text of which the answer ends before the first of some texts; what the model thought may hold them.

    >>> cut_answer("<think>A?\nB?</think>B\nA", ("\n",))
    '<think>A?\nB?</think>B'
    """
    start = text.rfind(split_thinking(text).answer) if stop else 0
    return text[: min((place for one in stop if (place := text.find(one, start)) >= 0), default=len(text))]


def opens_thinking(prompt: str) -> bool:
    r"""Return True if a prompt ends in the middle of thinking, so that an answer cannot begin where it ends.

    >>> opens_thinking("<|user|>Who?<|assistant|><think>\\n"), opens_thinking("<think>\\n\\n</think>\\n\\n")
    (True, False)
    """
    begin = next(reversed([*_OPEN.finditer(prompt)]), None)
    return begin is not None and _CLOSE.search(prompt, begin.end()) is None
