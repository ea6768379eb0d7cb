"""Whether a text declines what it was asked to do, instead of doing it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

PUBLISHED_PREFIXES = ("I'm sorry", "I am sorry", "It seems like", "It looks like")
"""What the code of the paper takes for a refusal in recognition (F4)."""
PUBLISHED_PREFIXES_CONTINUATION = (*PUBLISHED_PREFIXES, "I understand")
"""The same for continuation (F5)."""

_STRAIGHT = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT SINGLE QUOTATION MARK}": "'", "`": "'"})
_LEADING = re.compile(r"^[\s\"'*\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}(\[#:.-]+")
_LOOKED_AT = 300
"""Characters, from the beginning."""


class _Patterns(NamedTuple):
    version: str
    beginning: re.Pattern[str]
    anywhere: re.Pattern[str]
    continued: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    text = resources.files("evaluators.detectors").joinpath("refusals.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    parts = {name: f"(?:{'|'.join(data[name])})" for name in ("cannot", "doing")}

    def compiled(name: str) -> re.Pattern[str]:
        """All patterns of one list as one."""
        alternatives = [
            pattern.replace("{cannot}", parts["cannot"]).replace("{doing}", parts["doing"]) for pattern in data[name]
        ]
        return re.compile("|".join(f"(?:{pattern})" for pattern in alternatives), re.IGNORECASE | re.DOTALL)

    return _Patterns(data["version"], compiled("beginning"), compiled("anywhere"), compiled("continued"))


def version() -> str:
    """Of the list of patterns."""
    return _patterns().version


def is_refusal(text: str) -> bool:
    """Whether a text declines, asks back or talks about its task instead of doing it.

    Its beginning decides; apostrophes may be curly, and quotes may stand before it. A text that goes on after a remark
    is no refusal, nor is one in which a character says sorry.

    >>> is_refusal('"I am sorry, but I can\N{RIGHT SINGLE QUOTATION MARK}t help with that.')
    True
    >>> is_refusal("I'm sorry for her, said the baker.")
    False
    """
    patterns = _patterns()
    start = _LEADING.sub("", text.translate(_STRAIGHT))[:_LOOKED_AT]
    if patterns.beginning.match(start) is None and patterns.anywhere.search(start) is None:
        return False
    return patterns.continued.search(text.translate(_STRAIGHT)) is None


def has_published_prefix(text: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the code of the paper drops a text: case and apostrophe have to be exactly these, with nothing before."""
    return text.startswith(prefixes)
