"""Computes rank ranges: models are compared in pairs on the same bootstrap resamples, to see which differ."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray

LEVEL = 0.95
"""Confidence level for all comparisons in one table together."""
POWER = 0.8
"""Probability of detecting a difference of the stated size."""

# Smaller differences can come from the order of floating-point sums.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model to be ranked."""

    name: str
    """Name of the model, unique within the table."""
    value: float
    """Value of the primary metric."""
    resamples: FloatArray
    """Value of the primary metric on each bootstrap resample, shape (n_resamples,); NaN if undefined."""
    n_clusters: int | None
    """Number of clusters that were resampled; None if there are too few for an interval."""


class RankRange(NamedTuple):
    """The range of ranks that the data allow for a model."""

    best: int
    worst: int
    n_ranked: int

    def __str__(self) -> str:
        """Return the text for tables: a single rank, or the first and the last rank of the range."""
        return str(self.best) if self.best == self.worst else f"{self.best}\N{EN DASH}{self.worst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of two models on the same resamples."""

    first: str
    second: str
    difference: float
    """Distance of the first model to the ideal minus that of the second; negative if the first is nearer."""
    low: float | None
    """Lower end of the interval of this difference at ``LEVEL``, not adjusted for other pairs; None if unknown."""
    high: float | None
    """Upper end of the same interval."""
    p_adjusted: float | None
    """Two-sided p-value, adjusted by Holm's method for all comparisons in the table; None if unknown."""
    separable: bool
    """True if the adjusted p-value is below 1 - ``LEVEL``, so that the data distinguish the two models."""

    def named(self, labels: Mapping[str, str]) -> Comparison:
        """Return the comparison with other names for the two models."""
        return replace(self, first=labels[self.first], second=labels[self.second])


class Ranking(NamedTuple):
    """The rank range of each model by its name, and the comparisons from which the ranges follow."""

    ranges: dict[str, RankRange]
    comparisons: tuple[Comparison, ...]
    chances: dict[str, float]
    """Share of the resamples in which each model is the nearest to the ideal, by its name; empty for fewer than two."""
    detectable: float | None
    """Difference between two models that is detected with probability ``POWER``; None for fewer than two."""


NO_RANKING = Ranking(ranges={}, comparisons=(), chances={}, detectable=None)
"""Ranking of no models."""


class _Paired(NamedTuple):
    difference: float
    half_width: float | None
    p_value: float | None
    error: float | None
    """Standard error of the difference."""
    freedom: int | None


def rank(candidates: Sequence[Candidate], *, ideal: float) -> Ranking:
    """Rank models by the distance of the primary metric to its ideal value.

    Each pair of models is compared by the difference of their distances to the ideal on each resample. Both models use
    the same clusters in a resample, so variation that affects both alike cancels. The standard error is the standard
    deviation of the difference over the resamples. The p-value comes from Student's t distribution with
    (clusters - 1) degrees of freedom, because quantiles of a few thousand resamples would be too coarse for the small
    levels that many pairs need. P-values are adjusted by Holm's step-down method. A pair is *separable* if its adjusted
    p-value is below 1 - ``LEVEL``.

    Args:
        candidates: Models with unique names; their resamples must be paired and have the same length.
        ideal: Best value of the primary metric.

    Returns:
        The ranges and comparisons. The best rank of a model is 1 + the number of models that are separable from it and
        nearer to the ideal. The worst rank is the number of all models minus those that are separable from it and
        farther away. The order of ``candidates`` does not matter.

    References:
        Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.name)
    pairs = list(itertools.combinations(ordered, 2))
    paired = _compared(ordered, ideal)
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
    return Ranking(
        ranges=_ranges([candidate.name for candidate in ordered], comparisons),
        comparisons=comparisons,
        chances=_chances(ordered, ideal),
        detectable=_detectable(paired),
    )


def _chances(candidates: Sequence[Candidate], ideal: float) -> dict[str, float]:
    """Return the share of the resamples in which each model is the nearest to the ideal; ties are shared."""
    if len(candidates) < 2:
        return {}
    distances = np.abs(np.array([candidate.resamples for candidate in candidates]) - ideal)
    distances = distances[:, np.isfinite(distances).all(axis=0)]
    is_nearest = distances <= distances.min(axis=0, initial=np.inf) + _NEGLIGIBLE
    shares = (is_nearest / is_nearest.sum(axis=0)).mean(axis=1) if distances.size else np.full(len(candidates), np.nan)
    return {
        candidate.name: float(share) for candidate, share in zip(candidates, shares, strict=True) if np.isfinite(share)
    }


def _detectable(pairs: Sequence[_Paired]) -> float | None:
    """Return the difference of a pair with a typical standard error that is detected with ``POWER``.

    It is that of the first step of Holm's method, where the p-value is multiplied by the number of all pairs.
    """
    with_error = [pair for pair in pairs if pair.error is not None and pair.freedom is not None]
    if not with_error:
        return None
    from scipy import stats

    error = statistics.median(pair.error or 0.0 for pair in with_error)
    freedom = statistics.median(pair.freedom or 0 for pair in with_error)
    level = (1 - LEVEL) / len(pairs)
    return float(error * (stats.t.ppf(1 - level / 2, freedom) + stats.t.ppf(POWER, freedom)))


def _compared(candidates: Sequence[Candidate], ideal: float) -> list[_Paired]:
    """Compare each candidate with each of those after it."""
    if len(candidates) < 2:
        return []
    from scipy import stats

    distances = np.abs(np.array([candidate.resamples for candidate in candidates]) - ideal)
    from_ideal = np.abs(np.array([candidate.value for candidate in candidates]) - ideal)
    first, second = np.triu_indices(len(candidates), k=1)
    # One candidate at a time, since the comparisons of all together would take gigabytes.
    errors = np.concatenate([_errors(row, distances[index + 1 :]) for index, row in enumerate(distances[:-1])])
    freedoms = np.array([candidate.n_clusters or 0 for candidate in candidates]) - 1
    freedom = np.minimum(freedoms[first], freedoms[second])
    differences = from_ideal[first] - from_ideal[second]
    known = (freedom >= 1) & ~np.isnan(errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = 2 * stats.t.sf(np.abs(differences) / errors, freedom)
        half_widths = stats.t.ppf((1 + LEVEL) / 2, freedom) * errors
    p_values[errors <= _NEGLIGIBLE] = 0.0
    p_values[np.abs(differences) <= _NEGLIGIBLE] = 1.0
    return [
        _Paired(difference, *(values if is_known else (None, None, None, None)))
        for difference, is_known, *values in zip(
            differences.tolist(),
            known.tolist(),
            half_widths.tolist(),
            p_values.tolist(),
            errors.tolist(),
            freedom.tolist(),
            strict=True,
        )
    ]


def _errors(distances: FloatArray, others: FloatArray) -> FloatArray:
    """Return the standard errors of the differences to other models, shape (n,); nan where too few are defined.

    Args:
        distances: Distance of a model to the ideal on each resample, shape (n_resamples,).
        others: Distances of the other models, shape (n, n_resamples).
    """
    differences = distances - others
    is_defined = np.isfinite(differences)
    if is_defined.all():
        errors: FloatArray = differences.std(axis=1, ddof=1)
        return errors
    defined = [row[mask] for row, mask in zip(differences, is_defined, strict=True)]
    return np.array([row.std(ddof=1) if len(row) > 1 else np.nan for row in defined])


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values by Holm's step-down method; unknown ones stay None, but count as comparisons.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    defined = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for step, (p_value, index) in enumerate(defined):
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
