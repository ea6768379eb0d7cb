"""Options of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.scorer import TextScorer

MAX_FAILURE_RATE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Where a run is kept, and when it gives up."""

    root: Path
    """Folder of all runs."""
    command: str
    """The command line that reproduces the run."""
    max_failure_rate: float = MAX_FAILURE_RATE
    """Share of requests that may fail before the run ends without a result."""
    cache: Path | None = None
    """A store that several runs share: its answers are not asked for again, new ones are added to it."""
    scorers: Sequence[TextScorer] = ()
    """Scorers of the texts, for tasks whose metrics read scores."""
    keep_scores: bool = False
    """True if scores of an earlier result stay, whoever gave them, so that only other kinds are scored."""
