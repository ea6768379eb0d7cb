"""Detects a repeated prompt at the beginning of a generated text, and returns what comes after it.

Repetitions matter: GPT-4o-mini repeats the prompt in 94 % of its published answers, and the first pronoun is then that
of the prompt. Without the repetitions its GDR falls from .61 to .51; a model that only repeats prompts scores .95.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from schemas.lexicon import families_of

FamiliesOf: TypeAlias = Callable[[str], tuple[str, ...]]
"""Function that returns the pronoun families of a word of a language; empty for a word that is no pronoun."""

_WORD = re.compile(r"[^\W_]+")
_MIN_REPEATED = 4
"""Minimum number of repeated words that count as a repetition."""
_MAX_INTRODUCTION = 24
"""Maximum number of introductory words before a repetition of the whole prompt."""


def without_echo(text: str, prompt: str | None, families: FamiliesOf = families_of) -> str:
    """Return the part of a text that does not repeat its prompt.

    Args:
        text: Generated text.
        prompt: Prompt that the text continues; None if unknown.
        families: The pronouns of the language.

    Returns:
        The text after the repeated words; the whole text if nothing is repeated.

    >>> without_echo("Kim wrote his book and sold it to a friend.", "kim wrote his book")
    ' and sold it to a friend.'
    """
    return text[echo_end(text, prompt, families) :]


@lru_cache(maxsize=1 << 13)  # Reading, table and measures ask about each answer.
def echo_end(text: str, prompt: str | None, families: FamiliesOf = families_of) -> int:
    """Return the offset in characters after the repeated words; 0 if there are none."""
    return _echo_of(prompt, families).end(text) if prompt and text else 0


class Echo:
    """A prompt, prepared for finding its repetition in texts."""

    def __init__(self, prompt: str, families: FamiliesOf = families_of) -> None:
        self._families = families
        self._asked = [match[0].casefold() for match in _WORD.finditer(prompt)]
        self._positions: dict[str, list[int]] = {}
        for position, word in enumerate(self._asked):
            self._positions.setdefault(word, []).append(position)

    def end(self, text: str) -> int:
        """Return the offset in characters after the repeated words; 0 if there are none."""
        # No repetition can extend beyond this many words.
        words = list(islice(_WORD.finditer(text), _MAX_INTRODUCTION + len(self._asked)))
        # Only words are compared: punctuation, case and spaces differ between a prompt and its repetition.
        n = self._repeated([match[0].casefold() for match in words])
        return words[n - 1].end() if n else 0

    def _repeated(self, words: list[str]) -> int:
        """Return the number of words of the text up to the end of the repetition; 0 if there is none."""
        asked = self._asked
        if not words:
            return 0
        if len(asked) >= _MIN_REPEATED and asked[0] in words:
            # Look for the whole prompt, perhaps after an introduction.
            for start in range(min(_MAX_INTRODUCTION, len(words)) + 1):
                if words[start : start + len(asked)] == asked:
                    return start + len(asked)
        # Look for a part of the prompt that begins at any of its words, since the prompt may have an instruction before
        # the text to continue, and more words after it. Single words may differ, as where a model corrects "a" to "an".
        longest = max((self._n_repeated(words, start) for start in self._positions.get(words[0], ())), default=0)
        return longest if longest >= _MIN_REPEATED else 0

    def _n_repeated(self, words: list[str], start: int) -> int:
        """Return the number of words of a text up to the last one that it shares with its prompt from ``start`` on."""
        n = n_other = 0
        for index, (word, asked_word) in enumerate(zip(words, self._asked[start:], strict=False)):
            if word == asked_word:
                n = index + 1
            elif self._families(word):
                break  # A different pronoun is the model's own choice.
            else:
                n_other += 1
                if n_other > 1 + index // 8:
                    break
        return n


# All baselines answer the same prompts.
_echo_of = lru_cache(maxsize=4096)(Echo)
