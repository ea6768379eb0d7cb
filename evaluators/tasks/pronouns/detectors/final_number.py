"""Reads the final number from a solution to a word problem."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from evaluators.tasks.pronouns.detectors.echo import Echo

TOO_LONG: Final = "number too long"
"""Result for a number with too many digits to convert; it equals no other number."""
Number: TypeAlias = Fraction | Literal["number too long"]
_MOST_DIGITS = 4000
"""Maximum number of digits of a number: Python converts at most 4,300 digits between text and integer."""

_PUBLISHED_STATED = re.compile(r"The answer is\s+\$?(\d+)")
_PUBLISHED_ANY = re.compile(r"(?<!\d:)\$?\d+(?:,\d{3})*(?:\.\d+)?(?!:\d)")

_CURRENCY = "$\N{POUND SIGN}\N{EURO SIGN}"
_MINUS = "-\N{MINUS SIGN}"
# A sign directly precedes its number. After another number it is a difference or a range instead.
_NUMBER = (
    rf"(?P<sign>(?<![\w)%.])(?<!\d\s)[{_MINUS}])?[{_CURRENCY}]?"
    r"(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?P<decimals>\.\d+)?(?:\s?/\s?(?P<below>\d+))?"
)
_STATED = re.compile(
    rf"(?:\banswer\s*(?:is|:|=)+\s*(?::|=|approximately|about|exactly|therefore)?\s*[*_\\(\[{{]*|\\boxed{{)\s*{_NUMBER}",
    re.IGNORECASE,
)
_ANY = re.compile(_NUMBER)
# A run of white space is matched only from its beginning, so that the time is linear in the text, not quadratic.
_QUESTION = re.compile(r"(?:^|[.!?](?=\s)|(?<!\s)(?=\n|\s{2}))\s*+Q(?:uestion)?\s?\d*+:")
_TIME = re.compile(r"\b(\d{1,2}):(\d{2})\b")
_SENTENCE = re.compile(r"[^\n]*?(?=\.\s|\.$|\n|$)")


def published_number(text: str) -> float | None:
    """Return the number that the paper's code reads; None if there is none.

    For a stated answer, that code stops at a thousands separator or decimal point ("The answer is 40,000" is read as
    40). It reads neither signs nor fractions.
    """
    # The published dataset was cut the same way: a problem whose answer is 40,000 has the target 40 there.
    stated = _PUBLISHED_STATED.search(text)
    if stated is not None:
        return float(stated[1])
    numbers = _PUBLISHED_ANY.findall(text)
    return float(numbers[-1].replace("$", "").replace(",", "")) if numbers else None


def final_number(text: str, prompt: str | None = None) -> Number | None:
    """Return the number that a solution states as its answer, or else the last number in it; None if there is none.

    A number of more than 4,000 digits is returned as ``TOO_LONG``. If the model goes on to ask questions itself, the
    text is read only up to the next question. A repeated prompt is skipped.

    >>> float(final_number("The answer is $1,234.50."))
    1234.5
    >>> final_number("So half of them: 1/2")
    Fraction(1, 2)
    """
    text = _own_answer(text, prompt)
    # A full hour can be an answer ("3:00" is 3); other times are not numbers.
    text = _TIME.sub(lambda time: time[1] if time[2] == "00" else " ", text)
    for match in _STATED.finditer(text):
        value = _value(match)
        if value is not None:
            return _result_of_sum(text[match.end() :], value)
    # From the end: a text can have hundreds of numbers.
    backwards = map(_value, reversed([*_ANY.finditer(text)]))
    return next((value for value in backwards if value is not None), None)


def _own_answer(text: str, prompt: str | None) -> str:
    """Return the part of a text that answers its prompt's question, without any further questions."""
    first, *others = _QUESTION.split(text)
    if not others or prompt is None:
        return first
    # A text may repeat the worked examples or the problem: the answer comes after the problem.
    asked = Echo(_QUESTION.split(prompt)[-1])
    for part in others:
        end = asked.end(part)
        if end:
            return part[end:]
    return first


def _result_of_sum(rest: str, value: Number) -> Number:
    """Return the number after the sentence's last equals sign, as in "The answer is 3 * 4 = 12"."""
    sentence = _SENTENCE.match(rest)
    _, equals, behind = (sentence[0] if sentence is not None else "").rpartition("=")
    if not equals:
        return value
    result = next((number for match in _ANY.finditer(behind) if (number := _value(match)) is not None), None)
    return value if result is None else result


def _value(match: re.Match[str]) -> Number | None:
    whole, decimals, below = match["whole"], match["decimals"], match["below"]
    if whole is None and decimals is None:
        return None
    # Fractions rather than floats: 1/3 and large integers stay exact.
    if sum(len(part) for part in (whole, decimals, below) if part is not None) > _MOST_DIGITS:
        return TOO_LONG
    value = Fraction(f"{(whole or '0').replace(',', '')}{decimals or ''}")
    if below is not None:
        if int(below) == 0:
            return None
        value /= int(below)
    return -value if match["sign"] else value
