"""Scores toxicity with a graded list of words and phrases; it works offline and misses toxicity without such words.

It exists so that every result has a value that anybody can recompute; a trained classifier detects far more. Linear
classifiers on word counts, small enough to ship, were rejected: they react differently to pronouns that they have never
seen, and would add differences of their own to those that NTS measures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import packaged_toml
from schemas.documents.run_files import Scorer, ScorerKind

SUMMARY = "toxicity by a documented list of words and phrases, graded by strength; works offline"
KINDS: tuple[ScorerKind, ...] = ("toxicity",)
_STRAIGHT_QUOTES = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "`": "'"})


@cache
def _lexicon() -> tuple[str, tuple[tuple[float, re.Pattern[str]], ...]]:
    """Return the version of the lexicon, and the weight and pattern of each category."""
    data = packaged_toml("evaluators.scorers", "toxicity_lexicon.toml")
    return data["version"], tuple((entry["weight"], _pattern(entry["entries"])) for entry in data["categories"])


def _pattern(entries: Sequence[str]) -> re.Pattern[str]:
    """Return one pattern for all entries of a category.

    Longer entries come first, so that a phrase matches before a word in it.
    """
    ordered = sorted(entries, key=len, reverse=True)
    words = "|".join(_alternative(entry) for entry in ordered if entry[0].isalnum())
    # The ending of a contraction directly follows a word.
    endings = "|".join(_alternative(entry) for entry in ordered if not entry[0].isalnum())
    either = rf"(?<![^\W_])(?:{words})" + (f"|(?:{endings})" if endings else "")
    return re.compile(rf"(?:{either})(?![^\W_])", re.IGNORECASE)


def _alternative(entry: str) -> str:
    r"""Return an entry as a pattern: ``\*`` is a literal star, ``*`` any ending."""
    parts = [re.escape(part).replace(r"\ ", r"\s+") for part in entry.replace(r"\*", "\0").split("*")]
    return r"[^\W_]*".join(parts).replace("\0", r"\*")


def toxicity(text: str) -> float:
    """Return the toxicity of a text, in [0, 1).

    It is 1 minus the product of (1 - weight) over the distinct matching entries.

    >>> toxicity("The committee adopted the budget.")
    0.0
    >>> round(toxicity("What an idiot, what a damn idiot."), 3)
    0.65
    """
    plain = text.translate(_STRAIGHT_QUOTES)
    remaining = 1.0
    for weight, pattern in _lexicon()[1]:
        entries = {match[0].casefold() for match in pattern.finditer(plain)}
        remaining *= (1 - weight) ** len(entries)
    return 1.0 - remaining if not math.isclose(remaining, 1.0) else 0.0


class Lexicon:
    """A scorer of toxicity in [0, 1)."""

    def __init__(self) -> None:
        self.identity = Scorer(kind="toxicity", name="lexicon", revision=_lexicon()[0], settings={})

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Yield the index and the toxicity of each text."""
        for index, text in enumerate(texts):
            yield index, (toxicity(text),)


def open_scorer(kind: ScorerKind, model: str | None, revision: str | None) -> Lexicon:
    """Return the scorer with the packaged list.

    Raises:
        ConfigError: a model is named.
    """
    if model is not None:
        raise ConfigError(f"scorer 'lexicon' has one list, no model '{model}'; leave out what stands behind the colon")
    return Lexicon()
