"""The settings of a run besides its plan: folder, cache, scorers, and how many requests may fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from biasboard.ground.progress import Advance
from evaluators.scorer import TextScorer

MAX_FAILURE_RATE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The folder of all runs, and the settings for cache, scores and failures."""

    root: Path
    """Folder of all runs."""
    command: str
    """The command line that reproduces the run."""
    max_failure_rate: float = MAX_FAILURE_RATE
    """Share of requests that may fail; if more do, the run ends without a result."""
    cache: Path | None = None
    """Store that several runs share: its answers are reused, and new answers are added to it."""
    scorers: Sequence[TextScorer] = ()
    """Scorers of the texts, for tasks whose metrics read scores."""
    keep_scores: bool = False
    """True to keep all scores of an earlier result, even of other scorers, and score only missing kinds."""
    advance: Advance | None = None
    """Progress of several runs, in which this one counts its items; None for a bar of its own."""
