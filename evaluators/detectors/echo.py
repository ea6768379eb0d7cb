"""Whether a generated text begins by repeating its prompt, and what comes after that."""

from __future__ import annotations

import re

from schemas.lexicon import families_of

_WORD = re.compile(r"[^\W_]+")
_LEAST = 4
"""Words that have to be equal before they count as a repetition."""
_FAR = 24
"""Words within which a whole repeated prompt may begin, behind words of introduction."""


def without_echo(text: str, prompt: str | None) -> str:
    """What a text adds to its prompt.

    Args:
        text: What was generated.
        prompt: What it was asked to go on from; None where that is unknown.

    Returns:
        The text after the repeated words; all of it if it repeats none.

    >>> without_echo("Kim wrote his book and sold it to a friend.", "kim wrote his book")
    ' and sold it to a friend.'
    """
    end = echo_end(text, prompt)
    return text[end:]


def echo_end(text: str, prompt: str | None) -> int:
    """Offset behind the repeated words; 0 if there are none."""
    if not prompt:
        return 0
    asked = [match[0].casefold() for match in _WORD.finditer(prompt)]
    words = list(_WORD.finditer(text))
    said = [match[0].casefold() for match in words]
    n = _repeated(said, asked)
    return words[n - 1].end() if n else 0


def _repeated(said: list[str], asked: list[str]) -> int:
    """How many words of the text go up to the end of the repetition."""
    if len(asked) >= _LEAST:
        # The whole prompt, perhaps behind an introduction.
        for start in range(min(_FAR, len(said)) + 1):
            if said[start : start + len(asked)] == asked:
                return start + len(asked)
    # A part of it, from any word on: prompts may have an instruction before the text and words behind it. Single words
    # may differ: "a" put right to "an".
    starts = [start for start, word in enumerate(asked) if said and word == said[0]]
    longest = max((_alike(said, asked[start:]) for start in starts), default=0)
    return longest if longest >= _LEAST else 0


def _alike(said: list[str], asked: list[str]) -> int:
    n = n_other = 0
    for place, (one, other) in enumerate(zip(said, asked, strict=False)):
        if one == other:
            n = place + 1
        elif families_of(one):
            break  # Another pronoun is what the model chose to say.
        else:
            n_other += 1
            if n_other > 1 + place // 8:
                break
    return n
