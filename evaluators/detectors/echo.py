"""Finds out if a generated text begins by repeating its prompt, and returns what comes after that."""

from __future__ import annotations

import re

from schemas.lexicon import families_of

_WORD = re.compile(r"[^\W_]+")
_LEAST = 4
"""Minimum number of equal words that count as a repetition."""
_FAR = 24
"""Maximum number of introductory words before a repetition of the whole prompt."""


def without_echo(text: str, prompt: str | None) -> str:
    """Return the part of a text that does not repeat its prompt.

    Args:
        text: Generated text.
        prompt: Prompt that the text continues; None if unknown.

    Returns:
        The text after the repeated words; the whole text if it repeats none.

    >>> without_echo("Kim wrote his book and sold it to a friend.", "kim wrote his book")
    ' and sold it to a friend.'
    """
    end = echo_end(text, prompt)
    return text[end:]


def echo_end(text: str, prompt: str | None) -> int:
    """Return the offset in characters after the repeated words; 0 if there are none."""
    if not prompt:
        return 0
    asked = [match[0].casefold() for match in _WORD.finditer(prompt)]
    words = list(_WORD.finditer(text))
    said = [match[0].casefold() for match in words]
    n = _repeated(said, asked)
    return words[n - 1].end() if n else 0


def _repeated(said: list[str], asked: list[str]) -> int:
    """Return the number of words of the text up to the end of the repetition; 0 if there is none.

    Args:
        said: Words of the text, casefolded.
        asked: Words of the prompt, casefolded.
    """
    if len(asked) >= _LEAST:
        # Look for the whole prompt, perhaps after an introduction.
        for start in range(min(_FAR, len(said)) + 1):
            if said[start : start + len(asked)] == asked:
                return start + len(asked)
    # Look for a part of the prompt that begins at any of its words: an instruction may come before the text to
    # continue, and more words after it. Single words may differ, such as "a" that the model corrects to "an".
    starts = [start for start, word in enumerate(asked) if said and word == said[0]]
    longest = max((_alike(said, asked[start:]) for start in starts), default=0)
    return longest if longest >= _LEAST else 0


def _alike(said: list[str], asked: list[str]) -> int:
    n = n_other = 0
    for place, (one, other) in enumerate(zip(said, asked, strict=False)):
        if one == other:
            n = place + 1
        elif families_of(one):
            break  # A different pronoun is the model's own choice.
        else:
            n_other += 1
            if n_other > 1 + place // 8:
                break
    return n
