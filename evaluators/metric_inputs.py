"""What metrics need besides the records of a run: scores of texts, and corrections of distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evaluators.text_scores import NO_SCORES, TextScores
from schemas.documents.corrections import FittedCorrection


class MetricInputs(NamedTuple):
    """What lies beside the records of a run and what may be done with it."""

    scores: TextScores = NO_SCORES
    """Scores of the texts; metrics that need a missing kind of score are null."""
    corrections: Sequence[FittedCorrection] = ()
    """Corrections that were fitted before, which are applied as they are."""
    trained: Mapping[str, frozenset[str]] = {}
    """Ids of the items that an adapter of the model was trained on, by config; nothing is fitted on them."""
    may_fit: bool = True
    """True to fit corrections that are missing; False to leave out the metrics that need them."""


NO_INPUTS = MetricInputs()
