"""Rank ranges: which models the data can tell apart, by paired differences over the same bootstrap resamples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evaluators.statistics.bootstrap import FloatArray

LEVEL = 0.95
"""Confidence level of the family of all comparisons in one table."""

# Differences below this come from the order of floating-point sums.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model to be ranked."""

    name: str
    """Unique within the table."""
    value: float
    """The primary metric."""
    resamples: FloatArray
    """The primary metric in each bootstrap resample, shape (n_resamples,), nan where undefined."""
    n_clusters: int | None
    """How many clusters were resampled; null where there are too few for an interval."""


class RankRange(NamedTuple):
    """The ranks that a model can have, given what the data can tell apart."""

    best: int
    worst: int
    n_ranked: int

    def __str__(self) -> str:
        """As tables print it: one rank, or the first and the last of the range."""
        return str(self.best) if self.best == self.worst else f"{self.best}\N{EN DASH}{self.worst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two models compared on the same resamples."""

    first: str
    second: str
    difference: float
    """Distance to the ideal of the first minus that of the second: negative where the first is nearer."""
    low: float | None
    """Of the interval of this one difference at ``LEVEL``, before the adjustment; null where it is unknown."""
    high: float | None
    p_adjusted: float | None
    """Two-sided, adjusted by Holm for all comparisons of the table; null where it is unknown."""
    separable: bool

    def named(self, labels: Mapping[str, str]) -> Comparison:
        """The same with other names for the two."""
        return replace(self, first=labels[self.first], second=labels[self.second])


class Ranking(NamedTuple):
    """Rank ranges by name, and the comparisons that they follow from."""

    ranges: dict[str, RankRange]
    comparisons: tuple[Comparison, ...]


class _Paired(NamedTuple):
    difference: float
    half_width: float | None
    p_value: float | None


def rank(candidates: Sequence[Candidate], *, ideal: float) -> Ranking:
    """Rank models by how near the primary metric is to its ideal value.

    Every pair is compared by the difference of its distances to the ideal, resample by resample: the clusters drawn
    are the same for both, so that what is hard for both cancels. The standard error is the standard deviation of the
    difference over the resamples, the reference distribution Student's t with (clusters - 1) degrees of freedom: a
    quantile of a few thousand resamples would be too coarse for the levels that many pairs need. P-values are adjusted
    by Holm's step-down method, and a pair is *separable* if the adjusted one is below 1 - ``LEVEL``.

    Args:
        candidates: Models with pairwise different names; their resamples must be paired and of one length.
        ideal: The value of the primary metric that is best.

    Returns:
        For each model, best rank = 1 + models separably nearer to the ideal, worst rank = models - models separably
        farther. The order of ``candidates`` does not matter.

    References:
        Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.name)
    pairs = list(itertools.combinations(ordered, 2))
    paired = [_compare(first, second, ideal) for first, second in pairs]
    adjusted = holm([pair.p_value for pair in paired])
    comparisons = tuple(
        Comparison(
            first=first.name,
            second=second.name,
            difference=pair.difference,
            low=None if pair.half_width is None else pair.difference - pair.half_width,
            high=None if pair.half_width is None else pair.difference + pair.half_width,
            p_adjusted=p_adjusted,
            separable=p_adjusted is not None and p_adjusted < 1 - LEVEL,
        )
        for (first, second), pair, p_adjusted in zip(pairs, paired, adjusted, strict=True)
    )
    return Ranking(ranges=_ranges([candidate.name for candidate in ordered], comparisons), comparisons=comparisons)


def _compare(first: Candidate, second: Candidate, ideal: float) -> _Paired:
    from scipy import stats

    difference = abs(first.value - ideal) - abs(second.value - ideal)
    if first.n_clusters is None or second.n_clusters is None:
        return _Paired(difference, None, None)
    resampled = np.abs(first.resamples - ideal) - np.abs(second.resamples - ideal)
    resampled = resampled[np.isfinite(resampled)]
    freedom = min(first.n_clusters, second.n_clusters) - 1
    if len(resampled) < 2 or freedom < 1:
        return _Paired(difference, None, None)
    error = float(resampled.std(ddof=1))
    if abs(difference) <= _NEGLIGIBLE:
        p_value = 1.0
    elif error <= _NEGLIGIBLE:
        p_value = 0.0
    else:
        p_value = float(2 * stats.t.sf(abs(difference) / error, freedom))
    return _Paired(difference, float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error, p_value)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted by Holm's step-down method; unknown ones stay unknown, but count as comparisons.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    known = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for step, (p_value, index) in enumerate(known):
        running = max(running, min(1.0, (len(p_values) - step) * p_value))
        adjusted[index] = running
    return adjusted


def _ranges(names: Sequence[str], comparisons: Sequence[Comparison]) -> dict[str, RankRange]:
    n_nearer = dict.fromkeys(names, 0)
    n_farther = dict.fromkeys(names, 0)
    for comparison in comparisons:
        if comparison.separable:
            nearer, farther = comparison.first, comparison.second
            if math.copysign(1, comparison.difference) > 0:
                nearer, farther = farther, nearer
            n_nearer[farther] += 1
            n_farther[nearer] += 1
    n_ranked = len(names)
    return {name: RankRange(1 + n_nearer[name], n_ranked - n_farther[name], n_ranked) for name in names}
