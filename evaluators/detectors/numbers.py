"""The number that a solution to a word problem ends in."""

from __future__ import annotations

import re
from fractions import Fraction

from evaluators.detectors.echo import without_echo

PUBLISHED_VERSION = "gifi-repo-1"
VERSION = "careful-1"

_PUBLISHED_STATED = re.compile(r"The answer is\s+\$?(\d+)")
_PUBLISHED_ANY = re.compile(r"(?<!\d:)\$?\d+(?:,\d{3})*(?:\.\d+)?(?!:\d)")

_CURRENCY = "$\N{POUND SIGN}\N{EURO SIGN}"
_MINUS = "-\N{MINUS SIGN}"
_NUMBER = (
    rf"(?P<sign>(?<![\w)])[{_MINUS}]\s?)?[{_CURRENCY}]?(?P<sign2>[{_MINUS}])?"
    r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)?(?P<decimals>\.\d+)?(?:\s?/\s?(?P<below>\d+))?"
)
_STATED = re.compile(
    rf"\banswer\s*(?:is|:|=)+\s*(?::|=|approximately|about|exactly|therefore)?\s*[*_\\(\[{{]*\s*{_NUMBER}",
    re.IGNORECASE,
)
_ANY = re.compile(_NUMBER)
_NEXT_QUESTION = re.compile(r"\n?\s*\bQ(?:uestion)?\s?\d*:", re.IGNORECASE)
_TIME = re.compile(r"\b\d{1,2}:\d{2}\b")


def published_number(text: str) -> float | None:
    """The number that the code of the paper reads; None if there is none.

    It stops at the comma of thousands and at a decimal point where the answer is stated ("The answer is 40,000" is 40),
    and knows no sign and no fraction.
    """
    stated = _PUBLISHED_STATED.search(text)
    if stated is not None:
        return float(stated[1])
    found = _PUBLISHED_ANY.findall(text)
    return float(found[-1].replace("$", "").replace(",", "")) if found else None


def final_number(text: str, prompt: str | None = None) -> Fraction | None:
    """The number that a solution states as its answer, else the last one in it; None if there is none.

    The text is read up to the next question, where a model goes on to ask one itself; a repeated prompt is left out.

    >>> float(final_number("The answer is $1,234.50."))
    1234.5
    >>> final_number("So half of them: 1/2")
    Fraction(1, 2)
    """
    text = _NEXT_QUESTION.split(without_echo(text, prompt).lstrip(), maxsplit=1)[0]
    for match in _STATED.finditer(text):
        value = _value(match)
        if value is not None:
            return value
    values = [value for match in _ANY.finditer(_TIME.sub(" ", text)) if (value := _value(match)) is not None]
    return values[-1] if values else None


def _value(match: re.Match[str]) -> Fraction | None:
    whole, decimals, below = match["whole"], match["decimals"], match["below"]
    if whole is None and decimals is None:
        return None
    value = Fraction(f"{(whole or '0').replace(',', '')}{decimals or ''}")
    if below is not None:
        if int(below) == 0:
            return None
        value /= int(below)
    return -value if match["sign"] or match["sign2"] else value
