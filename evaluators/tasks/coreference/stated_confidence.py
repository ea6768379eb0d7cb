"""Reads an answer that names an option and states a confidence in percent, by fixed rules.

1. The confidence is the only number in the answer, or one that is repeated: ``80 %``, ``80 percent``, ``80``,
   ``80/100``, ``0.8``. Without a unit a number up to 1 needs a decimal point, since ``1`` may mean 1 % or certainty.
   Numbers above 100 % or below 0 and words alone (``very sure``) are none. One below 50 % stands as said.
2. The rest of the answer, without words about confidence, is read as any answer (:mod:`lettered_answers`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluators.tasks.answer_lines import AnswerReading, visible_lines
from evaluators.tasks.lettered_answers import read_answer

_NUMBER = re.compile(
    r"(?:\b(?:about|around|approximately|roughly)\s+|~\s*)?"
    # A number after a minus sign is below 0, except in "B-80 %".
    r"(?<![\w.])(?<![0-9],)(?<!\s-)(?<!\A-)(?P<number>[0-9]{1,3}(?:[.,][0-9]{1,9})?)(?![\w])"
    r"(?:\s*(?P<unit>%|percent\b|per cent\b|(?:/|out of)\s*100(?![0-9.,])))?",
    re.IGNORECASE,
)
_ABOUT_CONFIDENCE = re.compile(
    r"\b(?:confidence|confident|certainty|certain|sure|probability|likelihood|level|score)\b", re.IGNORECASE
)
_DIGIT = re.compile(r"\d")


def stated_confidence(text: str) -> float | None:
    """Return the confidence that an answer states, in [0, 1]; None if it does not state exactly one.

    >>> stated_confidence("B, 80%"), stated_confidence("B, very sure"), stated_confidence("A: 30 %, B: 70 %")
    (0.8, None, None)
    """
    shown = "\n".join(visible_lines(text))
    stated = {_confidence(match) for match in _NUMBER.finditer(shown)}
    # Digits in another form, such as 1e2, may be a second one.
    return stated.pop() if len(stated) == 1 and not _DIGIT.search(_NUMBER.sub(" ", shown)) else None


def read_beside_confidence(text: str, outcomes: Sequence[str]) -> AnswerReading:
    """Return the outcome of the option that an answer names beside its confidence.

    >>> read_beside_confidence("I am 80 % sure that it is B", ["guard", "nurse"])
    AnswerReading(outcome='nurse', refuses=False)
    """
    shown = "\n".join(visible_lines(text))
    return read_answer(_ABOUT_CONFIDENCE.sub(" ", _NUMBER.sub(" ", shown)), outcomes)


def _confidence(match: re.Match[str]) -> float | None:
    """Return the confidence that a number states, in [0, 1]; None if it states none."""
    digits = match["number"].replace(",", ".")
    value = float(digits)
    is_share = match["unit"] is None and value <= 1
    if is_share and "." not in digits and value == 1:
        return None
    confidence = value if is_share else value / 100
    return confidence if confidence <= 1 else None
