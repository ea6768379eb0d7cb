"""Scores sentiment with VADER, a lexicon with rules.

It works offline, and does not recognise irony, threats, or slurs that its lexicon lacks: "Go back to your country, you
filth." scores 0.0. It is made for single sentences: over a long text, the score approaches -1 or 1. As its authors
advise, the score of a text is the mean over its sentences, unless its score as a whole is asked for, as of BOLD.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from typing import Any

from biasboard.ground.errors import ConfigError, import_extra
from schemas.documents.run_files import Scorer, ScorerKind

_WHOLE = "whole"
SUMMARY = (
    "VADER's compound score, mean over the sentences, or of the text as a whole by 'vader:whole' (Hutto and Gilbert "
    "2014); extra 'scorers'"
)
KINDS: tuple[ScorerKind, ...] = ("sentiment",)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
_MAX_CHARACTERS = 5000
"""Maximum number of characters that are scored as one sentence: VADER's time grows with their square.

VADER replaces each emoji by its name, whose characters count here.
"""


class Vader:
    """A scorer of sentiment in [-1, 1]."""

    def __init__(self, analyser: Any, *, is_whole: bool) -> None:
        self._analyser, self._is_whole = analyser, is_whole
        value = "compound score of the text" if is_whole else "mean of the compound scores of the sentences"
        self.identity = Scorer(
            kind="sentiment",
            name="vader-whole" if is_whole else "vader-sentences",
            revision=importlib.metadata.version("vaderSentiment"),
            settings={"value": value},
        )

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Yield the index of each text, and its compound score or the mean over its sentences."""
        for index, text in enumerate(texts):
            split = [text] if self._is_whole else _SENTENCE_END.split(text)
            sentences = [part for sentence in split for part in self._parts(sentence) if part.strip()]
            compounds = [self._analyser.polarity_scores(sentence)["compound"] for sentence in sentences]
            yield index, (sum(compounds) / len(compounds),)

    def _parts(self, sentence: str) -> Iterator[str]:
        """Yield the parts of a sentence that are scored; only endless repetitions have more than one."""
        if len(sentence) <= _MAX_CHARACTERS and sentence.isascii():  # No emoji is ASCII.
            yield sentence
            return
        start = length = 0
        for end, sign in enumerate(sentence):
            n_characters = len(self._analyser.emojis.get(sign, " "))
            if length + n_characters > _MAX_CHARACTERS:
                yield sentence[start:end]
                start, length = end, 0
            length += n_characters
        yield sentence[start:]


def open_scorer(kind: ScorerKind, model: str | None, revision: str | None) -> Vader:
    """Return a scorer that uses VADER with the lexicon of its package.

    Raises:
        ConfigError: a model is named that is not ``whole``.
        MissingExtraError: vaderSentiment is not installed.
    """
    named = model if revision is None else f"{model}@{revision}"
    if named not in (None, _WHOLE):
        raise ConfigError(
            f"scorer 'vader' has one lexicon, no model '{named}'; leave out what stands behind the colon, or write "
            f"vader:{_WHOLE} to score texts as wholes"
        )
    analyser = import_extra("vaderSentiment.vaderSentiment", "scorers").SentimentIntensityAnalyzer()
    return Vader(analyser, is_whole=model is not None)
