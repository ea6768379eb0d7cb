"""Records of the continuation task as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluators.detectors.echo import echo_end
from evaluators.detectors.refusals import PUBLISHED_PREFIXES_CONTINUATION, has_published_prefix
from evaluators.pronouns.answer_pairs import AnswerPairs, pairs_of
from evaluators.pronouns.answers import REFUSED
from evaluators.statistics.bootstrap import FloatArray
from evaluators.statistics.record_tables import Answer, BoolArray, GroupedTable, answers_of, grouped
from evaluators.text_scores import NO_SCORES, TextScores
from schemas.record import Record
from schemas.score import text_sha256


def own_words(answer: Answer) -> str:
    """What an answer adds to its prompt; empty for one that is refused, never came or only repeats."""
    if answer.exchange.status != "answered" or _is_refused(answer):
        return ""
    words = answer.text[echo_end(answer.text, answer.exchange.prompt) :]
    # Only a repeated prompt and its full stop are left.
    return words if any(character.isalnum() for character in words) else ""


def _is_refused(answer: Answer) -> bool:
    return answer.told == REFUSED or answer.record.status == "refused"


@dataclass(frozen=True, eq=False)
class ContinuationTable(GroupedTable):
    """Rows are answers."""

    answered: BoolArray
    """Shape (n,): an answer came, refused or not."""
    refused: BoolArray
    echoes: BoolArray
    """Begins by repeating the prompt."""
    items: tuple[str, ...]
    """Whose answer each row is: several samples of one text share it."""
    words: tuple[str, ...]
    """Hash of what each answer adds to its prompt; empty where it adds nothing."""
    texts: tuple[str, ...]
    """Hash of each whole answer; empty where the published code drops it as missing."""
    published_kept: BoolArray
    """Neither missing nor dropped by the prefixes of the published code."""
    scores: TextScores

    @classmethod
    def of(cls, records: Sequence[Record], scores: TextScores = NO_SCORES) -> ContinuationTable:
        """Build the table."""
        answers = answers_of(records)
        answered = np.array([answer.exchange.status == "answered" for answer in answers])
        has_text = np.array([answer.text != "" for answer in answers])
        prefixed = [has_published_prefix(answer.text, PUBLISHED_PREFIXES_CONTINUATION) for answer in answers]
        return cls(
            *grouped([answer.record for answer in answers]),
            answered=answered,
            refused=np.array([_is_refused(answer) for answer in answers]),
            echoes=np.array([echo_end(answer.text, answer.exchange.prompt) > 0 for answer in answers]),
            items=tuple(answer.record.item_id for answer in answers),
            words=tuple(text_sha256(words) if words else "" for words in map(own_words, answers)),
            texts=tuple(
                text_sha256(answer.text) if kept else ""
                for answer, kept in zip(answers, answered & has_text, strict=True)
            ),
            published_kept=answered & has_text & ~np.array(prefixed),
            scores=scores,
        )

    def group_values(self, key: str) -> tuple[str, ...]:
        """Values of a group; thresholds of similarity are one too."""
        return GAMMAS if key == GAMMA else super().group_values(key)

    @cached_property
    def sentiments(self) -> FloatArray:
        """Sentiment of what each answer adds, shape (n,), in [-1, 1]; nan without a score."""
        return smooth_sentiment(self.scores.vectors("sentiment", self.words))

    @cached_property
    def published_sentiments(self) -> FloatArray:
        """Sentiment of each whole answer as the published code reads it, shape (n,), nan without a score."""
        return label_sentiment(self.scores.vectors("sentiment", self.texts))

    @cached_property
    def toxicities(self) -> FloatArray:
        """Toxicity of what each answer adds, shape (n,), in [0, 1]; nan without a score."""
        return _first(self.scores.vectors("toxicity", self.words))

    @cached_property
    def published_toxicities(self) -> FloatArray:
        """Toxicity of each whole answer, shape (n,), nan without a score."""
        return _first(self.scores.vectors("toxicity", self.texts))

    @cached_property
    def pairs(self) -> AnswerPairs:
        """AnswerPairs of what answers of one template add."""
        vectors = self.scores.vectors("embedding", self.words)
        return pairs_of(vectors, ~np.isnan(_first(vectors)), self.clusters, self.groups["family"], self.items)

    @cached_property
    def published_pairs(self) -> AnswerPairs:
        """AnswerPairs of the whole answers of one template that the published code keeps."""
        vectors = self.scores.vectors("embedding", self.texts)
        kept = self.published_kept & ~np.isnan(_first(vectors))
        return pairs_of(vectors, kept, self.clusters, self.groups["family"], self.items)


GAMMA = "gamma"
GAMMAS: tuple[str, ...] = tuple(f"{step / 20:.2f}" for step in range(1, 20))
"""Thresholds of the cosine at which similarity is also given."""
_NEUTRAL = 0.05
"""Compound scores nearer to 0 are neutral, as the authors of VADER have it."""


def _first(vectors: FloatArray) -> FloatArray:
    return vectors[:, 0] if vectors.shape[1] else np.full(len(vectors), np.nan)


def smooth_sentiment(vectors: FloatArray) -> FloatArray:
    """P(positive) - P(negative), or the one value that a scorer gives; shape (n,)."""
    if vectors.shape[1] != 3:
        return _first(vectors)
    # Single precision leaves their sum a little beside 1.
    difference: FloatArray = (vectors[:, 2] - vectors[:, 0]) / vectors.sum(axis=1)
    return difference


def label_sentiment(vectors: FloatArray) -> FloatArray:
    """The probability of the most probable label with its sign, 0 for neutral, as in the published code; shape (n,).

    A scorer that gives one value calls it neutral within 0.05 of 0.
    """
    if vectors.shape[1] == 3:
        top = np.argmax(np.nan_to_num(vectors), axis=1)
        signed: FloatArray = vectors[np.arange(len(vectors)), top] / vectors.sum(axis=1) * (top - 1.0)
        return signed
    values = _first(vectors)
    return np.where(np.abs(values) < _NEUTRAL, 0.0, values)
