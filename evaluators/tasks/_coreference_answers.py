"""Reads which option a generated answer names: rules, not a model, so that everybody reads the same.

The rules belong to the task: a change of them raises the task's version, and stored answers are read again by
``rescore``. They read what an answer says first and leave unread whatever could be meant otherwise:

1. Quotation marks and marks of emphasis are left out, and white space counts as one space.
2. An answer *names* an option at a place if there stands its letter, in brackets (``(B)``), before a mark or the end
   (``B.``, ``B``), or as a capital before a word (``B the nurse``); or its text, whatever the case, with or without an
   article (``nurse``, ``The nurse``); or that it cannot be determined, where that is an option. ``A`` before a word is
   the article, unless the word goes on about the letter (``A is``, ``A because``); it is read with the word.
3. What counts is the option that is named where the answer begins or, failing that, first after words that lead to it:
   *answer*, *option*, *choice*, *refers to*, *means*, *is*. A negation before it leaves the answer unread.
4. If another option is named right after it, with or without *and*, *or*, a comma or a slash, the answer is unread:
   ``A or B``, ``B. the guard`` where B is the nurse. A letter's own text may stand in between. What comes later, and
   what comes in a sentence after the text of an option, is an explanation and is not read.
5. An answer that names none is a refusal if it begins as one (``I cannot``, ``I'm sorry``, ``As an AI``), and unread if
   not: ``Both``, ``D``, the name of somebody else, nothing at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evaluators.metrics._coreference import UNDETERMINED

_SIMPLER = str.maketrans(
    {
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
    }
)
_IGNORED = re.compile(r"[*_`\"]|(?<!\w)'|'(?!\w)")
_LEADING = re.compile(r"\b(?:answer|option|choice|refers? to|means|is|it's|he's|she's)\b[\s:]*", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|cannot|neither|nor|never|\w+n't)\b", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:(?:i am|i'm|we are)\s+)?(?:so\s+|very\s+|really\s+)?(?:sorry|unable|not able)\b"
    r"|(?:i|we)\s+(?:can't|cannot|can not|won't|will not|must decline|decline|refuse)\b"
    r"|as an? (?:ai|artificial|language model)\b|(?:i|we) apologi[sz]e\b",
    re.IGNORECASE,
)
_NO_ANSWER = (
    r"(?:that\s+)?(?:it\s+|this\s+)?(?:cannot|can't|can not|could not|couldn't)\s+be\s+determined\b|undetermined\b"
)
_BETWEEN = r"(?:(?:and/or|and|or)\b\s*)?(?:(?:option|choice|answer)\b\s*)?"
_AFTER_LETTER = re.compile(r"[\s.):;,\]/&-]*" + _BETWEEN, re.IGNORECASE)
_AFTER_TEXT = re.compile(r"[\s,/&]*" + _BETWEEN, re.IGNORECASE)
_ABOUT_THE_LETTER = r"\s+(?:is|was|because|since|as|or|and)\b"


class Answer(NamedTuple):
    """What a text says."""

    outcome: str | None
    """Of the option that it names; None if it names none, or more than one."""
    refuses: bool = False


def read_answer(text: str, outcomes: Sequence[str]) -> Answer:
    """Which option an answer names.

    Args:
        text: As it was generated.
        outcomes: What the options stand for, in the order of their letters.

    >>> read_answer(" (B) the nurse", ["guard", "nurse"])
    Answer(outcome='nurse', refuses=False)
    >>> read_answer("A or B", ["guard", "nurse"])
    Answer(outcome=None, refuses=False)
    """
    plain = " ".join(_IGNORED.sub("", text.translate(_SIMPLER)).split())
    for place in (0, *(match.end() for match in _LEADING.finditer(plain))):
        found = _named(plain, place, outcomes)
        if found is None:
            continue
        if _NEGATION.search(plain, 0, place) or _contradicted(plain, found, outcomes):
            return Answer(None)
        return Answer(found.outcome)
    return Answer(None, refuses=_REFUSAL.match(plain) is not None)


class _Named(NamedTuple):
    outcome: str
    end: int
    is_letter: bool


def _named(text: str, place: int, outcomes: Sequence[str]) -> _Named | None:
    """The option that is named at a place."""
    for letter, outcome in zip("ABCDEFGH", outcomes, strict=False):
        if (match := _letter(letter).match(text, place)) is not None:
            return _Named(outcome, match.end(), is_letter=True)
    # The longer text first: one may begin as the other.
    for outcome in sorted(outcomes, key=len, reverse=True):
        if (match := _text(outcome).match(text, place)) is not None:
            return _Named(outcome, match.end(), is_letter=False)
    return None


def _letter(letter: str) -> re.Pattern[str]:
    before_a_word = _ABOUT_THE_LETTER if letter == "A" else r"\s"
    in_brackets = rf"[(\[]\s*(?i:{letter})\s*[)\]]"
    before_a_mark = rf"(?i:{letter})(?=\s*$|\s*[.):;,/\]]|\s+-|-\s)"
    return re.compile(rf"{in_brackets}|{before_a_mark}|{letter}(?={before_a_word})")


def _text(outcome: str) -> re.Pattern[str]:
    if outcome == UNDETERMINED:
        return re.compile(_NO_ANSWER, re.IGNORECASE)
    return re.compile(rf"(?:(?:the|an?|this|that)\s+)?{re.escape(outcome)}\b(?!'s\b)", re.IGNORECASE)


def _contradicted(text: str, found: _Named, outcomes: Sequence[str]) -> bool:
    """Whether another option is named right after one."""
    between = (_AFTER_LETTER if found.is_letter else _AFTER_TEXT).match(text, found.end)
    other = _named(text, between.end() if between else found.end, outcomes)
    if other is None:
        return False
    # The letter's own text may follow it, and then yet another option.
    return other.outcome != found.outcome or _contradicted(text, other, outcomes)
