"""``scores.parquet``: what scorers say of texts, so that metrics can be computed again without them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

ScorerKind: TypeAlias = Literal["sentiment", "toxicity", "embedding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """Who scored the texts of a run. Values of two scorers are never compared."""

    kind: ScorerKind
    name: str
    """Such as ``vader``."""
    revision: str
    """Version of the package, commit of the Hub, or the beginning of the weights' sha256."""
    settings: dict[str, str]
    """How it was called, where that may matter to the last digits."""

    @property
    def label(self) -> str:
        """What metric versions and the rows of ``scores.parquet`` call it: ``vader-3.3.2``."""
        return f"{self.name}-{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore:
    """One row of ``scores.parquet``: what one scorer says of one text."""

    kind: ScorerKind
    scorer: str
    """Label of the scorer."""
    text_sha256: str
    """Of the text in UTF-8; equal texts have one row."""
    values: tuple[float, ...]
    """Sentiment: one value in [-1, 1], or the probabilities of negative, neutral and positive. Toxicity: one value in
    [0, 1]. Embedding: a vector of length 1."""


def text_sha256(text: str) -> str:
    """Hash under which the scores of a text are kept."""
    return hashlib.sha256(text.encode()).hexdigest()
