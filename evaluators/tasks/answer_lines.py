"""Prepares generated answers to questions with options, so that every family reads them alike; finds refusals.

The text is normalised (NFKC). Invisible characters, emphasis tags, LaTeX boxes and what the model thought before its
answer are removed.

Detects refusals in generated texts by the phrases of ``refusals.toml``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from biasboard.ground.files import packaged_toml
from evaluators.thinking import split_thinking

# An underscore marks emphasis here, but counts as a word character in regular expressions.
_PLAINER = str.maketrans(
    {"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{MODIFIER LETTER APOSTROPHE}": "'", "_": "*"},
)
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>answer|b|code|em|i|p|span|strong|u)>", re.IGNORECASE)
_MOST_NESTED = 50
"""Maximum depth of nested tags that are removed."""
_MOST_MARKS = 30
"""Maximum number of combining marks on a letter: normalisation sorts them in time quadratic in their number."""
_LATEX = re.compile(r"\\(?:boxed|fbox|text\w*|math\w*|underline|emph)\s*(?=\{)")
_IGNORED_SYMBOLS = "=<>|$`\N{RIGHTWARDS ARROW}\N{CHECK MARK}\N{HEAVY CHECK MARK}\N{WHITE HEAVY CHECK MARK}"


class AnswerReading(NamedTuple):
    """The reading of a generated answer."""

    outcome: str | None
    """Outcome of the option that the answer names; None if it names none or more than one."""
    refuses: bool = False
    """True if the answer names no option and begins like a refusal."""


def visible_lines(text: str) -> list[str]:
    """Return the lines of an answer, without invisible characters, markup and repeated spaces."""
    shown = split_thinking(_normalised(text)).answer
    lines = []
    for line in _LATEX.sub(" ", _without_tags(shown)).splitlines():
        visible = "".join(" " if char.isspace() else char for char in line if not _is_invisible(char))
        lines.append(" ".join(visible.translate(_PLAINER).split()))
    return lines


def _normalised(text: str) -> str:
    """Return the NFKC form of a text, with a limited number of combining marks on each letter."""
    if text.isascii():
        return text
    kept = []
    n_marks = 0
    for char in text:
        n_marks = n_marks + 1 if unicodedata.combining(char) else 0
        if n_marks <= _MOST_MARKS:
            kept.append(char)
    return unicodedata.normalize("NFKC", "".join(kept))


def _without_tags(text: str) -> str:
    """Return a text in which each tag that has a partner is replaced by a space."""
    tags = list(_TAG.finditer(text))
    for _ in range(_MOST_NESTED):
        removed = _outer_pairs(tags)
        if not removed:
            break
        tags = [tag for tag in tags if tag.start() not in removed]
    kept = {tag.start() for tag in tags}
    return _TAG.sub(lambda tag: tag[0] if tag.start() in kept else " ", text)


def _outer_pairs(tags: Sequence[re.Match[str]]) -> set[int]:
    """Return the offsets of the outermost pairs of tags; pairs inside them are left for the next call.

    A pair is an opening tag and the next closing tag of the same name.
    """
    # Each list is read only once from its beginning, so that the time is linear in the number of tags, not quadratic.
    closing: dict[str, deque[int]] = defaultdict(deque)
    for tag in tags:
        if tag["closes"]:
            closing[tag["name"].lower()].append(tag.start())
    removed: set[int] = set()
    resume = 0
    for tag in tags:
        if tag.start() < resume or tag["closes"]:
            continue
        partners = closing[tag["name"].lower()]
        while partners and partners[0] < tag.start():
            partners.popleft()
        if partners:
            resume = partners[0]
            removed |= {tag.start(), resume}
    return removed


def _is_invisible(char: str) -> bool:
    is_variation = "\N{VARIATION SELECTOR-1}" <= char <= "\N{VARIATION SELECTOR-16}"
    return is_variation or (unicodedata.category(char) in {"Cf", "Cc"} and not char.isspace())


def has_unknown_symbol(text: str) -> bool:
    """Return True if a line holds a symbol that is neither a word, nor punctuation, nor markup."""
    return any(
        not (char.isalnum() or char == " " or char in _IGNORED_SYMBOLS)
        and not unicodedata.category(char).startswith("P")
        for char in text
    )


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


@cache
def _phrases() -> dict[str, Any]:
    return packaged_toml("evaluators.tasks", "refusals.toml")


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
def _pattern(name: str) -> re.Pattern[str]:
    """Return one pattern for all phrases of a list."""
    data = _phrases()
    phrases = "|".join(f"(?:{phrase})" for phrase in data[name])
    for part in ("cannot", "doing"):
        phrases = phrases.replace(f"{{{part}}}", f"(?:{'|'.join(data[part])})")
    return re.compile(phrases, re.IGNORECASE | re.DOTALL)


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
    start = _LEADING.sub("", text.translate(_STRAIGHT))[:_N_SEARCHED]
    if _pattern("beginning").match(start) is None and _pattern("anywhere").search(start) is None:
        return False
    return _pattern("continued").search(text.translate(_STRAIGHT)) is None
