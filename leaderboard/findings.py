"""What a finding on the front page is, and the words that findings share.

A finding is a sentence that a function computes from the results of a benchmark. It speaks of clear differences
only: the 95 % intervals of two values do not overlap, or that of one leaves out a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from biasboard.ground.plain_text import printed
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric

Results: TypeAlias = Mapping[str, Sequence[Entry]]
"""Results of language models behind the columns of the front page, by config; of each model the newest version only."""
LEAST_MODELS = 2
"""Number of models from which a finding is written; of a single one its own page speaks."""


class Finding(NamedTuple):
    """A sentence computed from results."""

    text: str
    entries: tuple[Entry, ...]
    """The results behind it, those that it names first."""


FindingOf: TypeAlias = Callable[[Results], Finding | None]
"""Function that returns a finding; None if the results say nothing separable about it."""


def is_above(first: Metric, second: Metric) -> bool:
    """Return True if a value is clearly above another: their intervals do not overlap."""
    return first.interval is not None and second.interval is not None and first.interval.low > second.interval.high


def measured(
    entries: Sequence[Entry], first: tuple[str, Mapping[str, str]], second: tuple[str, Mapping[str, str]]
) -> list[tuple[Entry, Metric, Metric]]:
    """Return each result with its values of two measures, without results that lack an interval of one.

    Args:
        entries: Results of one config.
        first: Name and slice of the first measure.
        second: Name and slice of the second measure.
    """
    pairs = ((entry, entry.metric(*first), entry.metric(*second)) for entry in entries)
    return [
        (entry, one, other)
        for entry, one, other in pairs
        if one is not None and one.interval is not None and other is not None and other.interval is not None
    ]


def of_models(n: int, total: int, verb: str, singular: str) -> str:
    """Return how many models do something, at the beginning of a sentence.

    >>> of_models(2, 2, "keep", "keeps")
    'Both models keep'
    >>> of_models(3, 3, "keep", "keeps"), of_models(1, 3, "keep", "keeps"), of_models(0, 3, "keep", "keeps")
    ('All 3 models keep', '1 of 3 models keeps', 'None of 3 models keeps')
    """
    if n == total:
        return f"{'Both' if total == 2 else f'All {total}'} models {verb}"
    return f"{n or 'None'} of {total} models {singular if n < 2 else verb}"


def percent(metric: Metric) -> str:
    """Return a share in percent."""
    return f"{printed(100 * (metric.value or 0.0), 0)} %"
