"""Rows of ``scores.parquet``: the scores of texts, kept so that metrics can be recomputed without the scorers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import MinLen
from pydantic import StringConstraints

from schemas.documents.base import Document, Sha256

ScorerKind: TypeAlias = Literal["sentiment", "toxicity", "embedding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer(Document):
    """A scorer of the texts of a run. Values of different scorers are never compared."""

    kind: ScorerKind
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")]
    """Name of the scorer, such as ``vader``."""
    revision: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")]
    """Version of the package, commit on the Hub, or first digits of the SHA-256 of the weights."""
    settings: dict[str, str]
    """Settings of the scorer that may affect its values."""

    @property
    def label(self) -> str:
        """The label of the scorer in metric versions and in ``scores.parquet``, such as ``vader-3.3.2``."""
        return f"{self.name}-{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore(Document):
    """One row of ``scores.parquet``: the score that one scorer gave to one text."""

    kind: ScorerKind
    scorer: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")]
    """Label of the scorer."""
    text_sha256: Sha256
    """SHA-256 of the text in UTF-8; equal texts share one row."""
    values: Annotated[tuple[float, ...], MinLen(1)]
    """Score of the text. Sentiment: one value in [-1, 1], or the probabilities of negative, neutral and positive.
    Toxicity: one value in [0, 1]. Embedding: a vector of length 1."""


def text_sha256(text: str) -> str:
    """Return the SHA-256 under which the scores of a text are stored."""
    return hashlib.sha256(text.encode()).hexdigest()
