"""Finds out if a generated text begins by repeating its prompt, and returns what comes after that."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

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
    return _echo_of(prompt).end(text) if prompt and text else 0


@lru_cache(maxsize=4096)
def _echo_of(prompt: str) -> Echo:
    # Every baseline answers the same prompts, and reading and table ask about the same answers.
    return Echo(prompt)


class Echo:
    """A prompt whose repetition is looked for in one text or in several."""

    def __init__(self, prompt: str) -> None:
        self._asked = _words(prompt)
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(self._asked):
            self._places.setdefault(word, []).append(place)

    def end(self, text: str) -> int:
        """Return the offset in characters after the repeated words; 0 if there are none."""
        # Words far behind the end of the longest repetition cannot matter.
        words = list(islice(_WORD.finditer(text), _FAR + len(self._asked)))
        n = self._repeated([match[0].casefold() for match in words])
        return words[n - 1].end() if n else 0

    def _repeated(self, said: list[str]) -> int:
        """Return the number of words of the text up to the end of the repetition; 0 if there is none.

        Args:
            said: Words of the text, casefolded.
        """
        asked = self._asked
        if not said:
            return 0
        if len(asked) >= _LEAST and asked[0] in said:
            # Look for the whole prompt, perhaps after an introduction.
            for start in range(min(_FAR, len(said)) + 1):
                if said[start : start + len(asked)] == asked:
                    return start + len(asked)
        # Look for a part of the prompt that begins at any of its words: an instruction may come before the text to
        # continue, and more words after it. Single words may differ, such as "a" that the model corrects to "an".
        longest = max((_alike(said, asked, start) for start in self._places.get(said[0], ())), default=0)
        return longest if longest >= _LEAST else 0


def _words(text: str) -> list[str]:
    return [match[0].casefold() for match in _WORD.finditer(text)]


def _alike(said: list[str], asked: list[str], start: int) -> int:
    """Return the number of words up to the last one that a text shares with its prompt from one word on."""
    n = n_other = 0
    for place in range(min(len(said), len(asked) - start)):
        one = said[place]
        if one == asked[start + place]:
            n = place + 1
        elif families_of(one):
            break  # A different pronoun is the model's own choice.
        else:
            n_other += 1
            if n_other > 1 + place // 8:
                break
    return n
