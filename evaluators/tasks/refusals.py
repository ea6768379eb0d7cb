"""Detects refusals in generated texts by the phrases of ``refusals.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

# They miss most refusals: of the published continuations of GPT-4, 15 begin with one of the five below and about 107
# decline in other words. Even a quotation mark before the phrase or a curly apostrophe in it defeats them.
PUBLISHED_PREFIXES = ("I'm sorry", "I am sorry", "It seems like", "It looks like")
"""Beginnings of texts that the paper's code counts as refusals in recognition (F4), in just this case and spelling."""
PUBLISHED_PREFIXES_CONTINUATION = (*PUBLISHED_PREFIXES, "I understand")
"""Beginnings of texts that the paper's code counts as refusals in continuation (F5)."""

_STRAIGHT = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT SINGLE QUOTATION MARK}": "'", "`": "'"})
_LEADING = re.compile(r"^[\s\"'*\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}(\[#:.-]+")
_N_SEARCHED = 300
"""Number of characters at the beginning of a text that are searched: later, a character of a story may apologise."""


class _Patterns(NamedTuple):
    beginning: re.Pattern[str]
    anywhere: re.Pattern[str]
    continued: re.Pattern[str]


@cache
def _phrases() -> dict[str, Any]:
    text = resources.files("evaluators.tasks").joinpath("refusals.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def answer_phrases() -> str:
    """Return a regular expression of the phrases with which an answer to a question with options declines."""
    return f"(?:{'|'.join(_phrases()['answer'])})"


def declines_to_answer(line: str) -> bool:
    """Return True if the answer to a question with options begins with a phrase that declines."""
    return _declining().match(line) is not None


@cache
def _declining() -> re.Pattern[str]:
    return re.compile(rf"[\W_]*{answer_phrases()}", re.IGNORECASE)


@cache
def _patterns() -> _Patterns:
    data = _phrases()
    parts = {name: f"(?:{'|'.join(data[name])})" for name in ("cannot", "doing")}

    def compiled(name: str) -> re.Pattern[str]:
        """Combine all patterns of a list into one."""
        alternatives = [
            pattern.replace("{cannot}", parts["cannot"]).replace("{doing}", parts["doing"]) for pattern in data[name]
        ]
        return re.compile("|".join(f"(?:{pattern})" for pattern in alternatives), re.IGNORECASE | re.DOTALL)

    return _Patterns(compiled("beginning"), compiled("anywhere"), compiled("continued"))


# Cached because baselines give the same answer thousands of times.
@lru_cache(maxsize=8192)
def is_refusal(text: str) -> bool:
    """Return True if a text declines, asks back, or talks about its task instead of doing it.

    Only the beginning of the text counts; it may have curly apostrophes and leading quotation marks. A text that goes
    on with its task after a remark is not a refusal, and neither is one in which a character apologises.

    >>> is_refusal('"I am sorry, but I can\N{RIGHT SINGLE QUOTATION MARK}t help with that.')
    True
    >>> is_refusal("I'm sorry for her, said the baker.")
    False
    """
    patterns = _patterns()
    start = _LEADING.sub("", text.translate(_STRAIGHT))[:_N_SEARCHED]
    if patterns.beginning.match(start) is None and patterns.anywhere.search(start) is None:
        return False
    return patterns.continued.search(text.translate(_STRAIGHT)) is None
