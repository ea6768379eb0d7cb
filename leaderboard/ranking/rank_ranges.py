"""Computes rank ranges: models are compared in pairs on the same items, to see which differ.

A board compares many pairs, and some of them differ by chance. A pair counts as different only if its difference is
larger than the largest of all pairs would be in 95 % of tables of equal models. What that largest difference is follows
from the answers: a hundred copies of a model differ from the others all alike, so that they add nothing to it, and the
ranks of honest models stay as they are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.statistics.jackknife import SEED, Deviations, draws, variance_of

LEVEL = 0.95
"""Confidence level for all comparisons in one table together."""
POWER = 0.8
"""Probability of detecting a difference of the stated size."""
_N_DRAWS = 4000
"""Number of tables of equal models; the level of 5 % is then met to .3 %."""
_CLUSTERS_AT_A_TIME = 1024

# Smaller differences can come from the order of floating-point sums.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model to be ranked."""

    name: str
    """Name of the model, unique within the table."""
    worst: float
    """Value of the metric with all missing answers at their worst."""
    best: float
    """Value with all missing answers at their best; equal to ``worst`` if none are missing."""
    deviations: Deviations | None
    """Deviations of the value; None if there are too few clusters for an interval."""
    model: str | None = None
    """Name that rows of one model share, such as its revisions; None if it has only this row."""
    is_counted: bool = True
    """False for all rows of a model but one: they have ranks among the other models, and change none."""


class RankRange(NamedTuple):
    """The range of ranks that the data allow for a model."""

    best: int
    worst: int
    n_ranked: int

    def __str__(self) -> str:
        """Return the text for tables: a single rank, or the first and the last rank of the range."""
        return str(self.best) if self.best == self.worst else f"{self.best}\N{EN DASH}{self.worst}"


def by_rank(rank: RankRange | None) -> tuple[bool, tuple[int, ...]]:
    """Return a sort key of rows: better ranges first, narrower ones before wider ones, missing ranks last."""
    return rank is None, rank or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of two models on the same items."""

    first: str
    second: str
    difference: float
    """Distance of the first model to the ideal minus that of the second; negative if the first is nearer. If answers
    are missing, that of the nearer model at its worst and of the other at its best."""
    low: float | None
    """Lower end of the interval of this difference at ``LEVEL``, not adjusted for other pairs; None if unknown."""
    high: float | None
    """Upper end of the same interval."""
    p_adjusted: float | None
    """Two-sided p-value, adjusted for all comparisons in the table; None if unknown."""
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
    """Share of the draws in which each model is the nearest to the ideal, by its name; empty for fewer than two."""
    detectable: float | None
    """Difference between two models that is detected with probability ``POWER``; None for fewer than two, or if the
    clusters are too few to tell any two apart."""


NO_RANKING = Ranking(ranges={}, comparisons=(), chances={}, detectable=None)
"""Ranking of no models."""


class Pairs(NamedTuple):
    """All pairs of models with deviations; arrays of shape (n_pairs,)."""

    first: IntArray
    second: IntArray
    differences: FloatArray
    """Distance to the ideal of the first minus that of the second; 0 if missing answers could turn the order round."""
    errors: FloatArray
    """Standard error of each difference."""
    freedom: IntArray


def rank(candidates: Sequence[Candidate], *, ideal: float) -> Ranking:
    """Rank models by the distance of a metric to its ideal value.

    Both models of a pair are compared on the same items, so that variation which affects both alike cancels. The
    difference is divided by its standard error, and compared with the largest quotient of all pairs in tables of equal
    models: in these each cluster has its own differences, or their opposites. Then the most different pair is left out
    of those tables, and so on (step-down). A pair is *separable* if its adjusted p-value is below 1 - ``LEVEL``.

    Args:
        candidates: Models with unique names; their deviations must be of the same items.
        ideal: Best value of the metric.

    Returns:
        The ranges and comparisons. The best rank of a model is 1 + the number of counted models that are separable from
        it and nearer to the ideal. The worst rank is the number of counted models minus those that are separable from
        it and farther away. The order of ``candidates`` does not matter.

    References:
        Romano & Wolf 2005, "Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing", JASA 100, for the
        steps; Canay, Romano & Shaikh 2017, "Randomization Tests under an Approximate Symmetry Assumption",
        Econometrica 85, for the signs.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.name)
    known = [candidate for candidate in ordered if candidate.deviations is not None]
    pairs = compare_pairs(known, ideal)
    adjusted, tail = _adjusted(pairs, known, ideal)
    separable = adjusted < 1 - LEVEL
    comparisons = _comparisons(ordered, known, pairs, adjusted, ideal)
    return Ranking(
        ranges=_ranges(ordered, known, pairs, separable),
        comparisons=comparisons,
        chances=_chances(known, ideal) if len(known) == len(ordered) else {},
        detectable=_detectable(pairs, tail),
    )


def _toward(candidate: Candidate, ideal: float) -> Deviations:
    """Return the deviations of a model's distance to the ideal."""
    assert candidate.deviations is not None
    lead = (candidate.worst + candidate.best) / 2 - ideal
    # A model at the ideal itself, such as an estimate of evenness that ends there, varies on the side of all others:
    # below 1, or above 0.
    return candidate.deviations * math.copysign(1.0, lead if lead else 0.5 - ideal)


def compare_pairs(known: Sequence[Candidate], ideal: float) -> Pairs:
    """Return the differences of all pairs of models, with their standard errors.

    Args:
        known: Models that have deviations, of the same items.
        ideal: Best value of the metric.
    """
    first, second = np.triu_indices(len(known), k=1)
    at_worst = np.array([abs(candidate.worst - ideal) for candidate in known])
    at_best = np.array([abs(candidate.best - ideal) for candidate in known])
    # A model is nearer only if it is so with its missing answers at their worst and the other's at their best.
    lead_of_second = at_best[first] - at_worst[second]
    lead_of_first = at_best[second] - at_worst[first]
    differences = np.where(lead_of_second > 0, lead_of_second, np.where(lead_of_first > 0, -lead_of_first, 0.0))
    deviations = [_toward(candidate, ideal) for candidate in known]
    squares = []
    for factor in zip(*((of.first, of.second, of.cells) for of in deviations), strict=True):
        stacked = np.array(factor)
        products = stacked @ stacked.T
        lengths = np.diag(products)
        squares.append(np.maximum(lengths[first] + lengths[second] - 2 * products[first, second], 0.0))
    errors = np.sqrt(variance_of(*squares)) if squares else np.zeros(0)
    n_clusters = np.array([of.n_clusters for of in deviations], dtype=np.int64)
    return Pairs(first, second, differences, errors, np.minimum(n_clusters[first], n_clusters[second]) - 1)


class _EqualModels(NamedTuple):
    """Tables of equal models: the sign of each cluster's deviations is drawn, for all models alike.

    Normal deviations of few clusters are too much alike: they lie in a space of few dimensions, and the largest of many
    is too small. Of 15 equal models, two were told apart in 15 % of tables with 6 clusters, and in 10 % with 10; with
    signs in 3 and 4 %. If two factors are crossed, the signs are those of the factor with fewer clusters: signs of both
    would hide how few they are, and two models were told apart in up to 17 % of tables. Signs find a lead that normal
    deviations found in .82 of tables with 20 clusters, and in .86 with 40, in .76 and .85 (tests/bench/bench_ranks.py).
    """

    drawn: FloatArray
    """Values of the models in the tables, shape (n_models, _N_DRAWS)."""
    products: FloatArray
    """Covariances of these values, shape (n_models, n_models)."""
    n_clusters: int

    @classmethod
    def of(cls, known: Sequence[Candidate], ideal: float) -> _EqualModels:
        parts = zip(*(_toward(candidate, ideal).parts[:2] for candidate in known), strict=True)
        factors = [stacked[:, stacked.any(axis=0)] for stacked in map(np.array, parts)]
        fewer = min(
            (factor for factor in factors if factor.shape[1]), key=lambda part: part.shape[1], default=factors[0]
        )
        n = max(fewer.shape[1], 2)
        # Deviations are from each model's own value. Signs are exact for deviations from equality, assumed here.
        distances = np.array([abs((candidate.worst + candidate.best) / 2 - ideal) for candidate in known])
        values = fewer + distances[:, None] / math.sqrt(n * (n - 1))
        generator = np.random.default_rng(SEED)
        drawn = np.zeros((len(known), _N_DRAWS))
        for start in range(0, fewer.shape[1], _CLUSTERS_AT_A_TIME):
            block = values[:, start : start + _CLUSTERS_AT_A_TIME]
            drawn += block @ generator.choice(np.array([-1.0, 1.0]), size=(block.shape[1], _N_DRAWS))
        return cls(drawn, values @ values.T, n)

    def scores(self, tails: FloatArray) -> FloatArray:
        """Return how many standard deviations of its draws a pair with a tail probability of t differs by."""
        from scipy.special import stdtrit

        # The sign of its infinity, for the smallest tails, depends on the degrees of freedom.
        t = np.minimum(np.abs(stdtrit(self.n_clusters - 1, tails)), 1 / _NEGLIGIBLE)
        scores: FloatArray = t * np.sqrt(self.n_clusters / (self.n_clusters - 1 + t**2))
        return scores

    def tail(self, score: float) -> float:
        """Return the tail probability of t that gives a score; 0 if none does."""
        from scipy.special import stdtr

        left = self.n_clusters - score**2
        if left <= 0:
            return 0.0
        return float(stdtr(self.n_clusters - 1, -score * math.sqrt((self.n_clusters - 1) / left)))


def _adjusted(pairs: Pairs, known: Sequence[Candidate], ideal: float) -> tuple[FloatArray, float]:
    """Return the p-value of each pair, adjusted for all pairs of counted models, shape (n_pairs,).

    The second value is the tail probability, by Student's t for one pair, that the first pair has to reach; 0 if the
    clusters are so few that no pair can.
    """
    if not len(pairs.first):
        return np.zeros(0), 0.0
    from scipy.special import stdtr

    sizes = np.abs(pairs.differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values: FloatArray = np.asarray(2 * stdtr(pairs.freedom, -sizes / pairs.errors))
    # Models that are equal in each cluster up to a constant, such as one that is always right and one that never is.
    p_values[pairs.errors <= _NEGLIGIBLE] = 0.0
    p_values[sizes <= _NEGLIGIBLE] = 1.0
    equal = _EqualModels.of(known, ideal)
    # By way of the p-value, since Student's t knows how few the clusters of a part are. The draw that leaves all signs
    # as they are must not fall short of its own table by rounding.
    scores = equal.scores(p_values / 2) * (1 - 1e-9)
    counted = np.array([candidate.is_counted for candidate in known])
    in_family = counted[pairs.first] & counted[pairs.second]
    order = np.flatnonzero(in_family)[np.argsort(scores[in_family], kind="stable")]
    lengths = np.diag(equal.products)
    sums = lengths[pairs.first] + lengths[pairs.second]
    squares = sums - 2 * equal.products[pairs.first, pairs.second]
    spreads = np.sqrt(np.where(squares > _NEGLIGIBLE * sums, squares, np.inf))
    adjusted = p_values.copy()
    largest, drawn_scores = np.zeros(_N_DRAWS), np.empty(_N_DRAWS)
    # From the least different pair on, so that the largest so far is that of the pairs which step-down leaves. Pair by
    # pair, since rows of 4,000 stay in the processor's cache: half a million pairs in blocks took twice as long.
    columns = (order.tolist(), scores[order].tolist(), spreads[order].tolist())
    for pair, score, spread in zip(*columns, strict=True):
        np.subtract(equal.drawn[pairs.first[pair]], equal.drawn[pairs.second[pair]], out=drawn_scores)
        drawn_scores /= spread
        np.maximum(largest, np.abs(drawn_scores, out=drawn_scores), out=largest)
        adjusted[pair] = (1 + np.count_nonzero(largest >= score)) / (_N_DRAWS + 1)
    # A pair that differs less cannot have a smaller p-value than one that differs more.
    adjusted[order] = np.maximum.accumulate(adjusted[order][::-1])[::-1]
    # Pairs with a second row of a model are not in the family, and are judged by its largest.
    others = np.flatnonzero(~in_family)
    if len(order):
        n_smaller = np.searchsorted(np.sort(largest), scores[others])
        adjusted[others] = (1 + _N_DRAWS - n_smaller) / (_N_DRAWS + 1)
    # Draws know no p-value below one in their number.
    is_certain = pairs.errors <= _NEGLIGIBLE
    adjusted[is_certain] = p_values[is_certain]
    tail = equal.tail(float(np.quantile(largest, LEVEL))) if len(order) else (1 - LEVEL) / 2
    return np.maximum(adjusted, p_values), tail


def _comparisons(
    ordered: Sequence[Candidate], known: Sequence[Candidate], pairs: Pairs, adjusted: FloatArray, ideal: float
) -> tuple[Comparison, ...]:
    from scipy.special import stdtrit

    half_widths = stdtrit(np.maximum(pairs.freedom, 1), (1 + LEVEL) / 2) * pairs.errors
    columns = zip(
        pairs.first.tolist(),
        pairs.second.tolist(),
        pairs.differences.tolist(),
        half_widths.tolist(),
        adjusted.tolist(),
        strict=True,
    )
    compared = {
        (known[first].name, known[second].name): Comparison(
            first=known[first].name,
            second=known[second].name,
            difference=difference,
            low=difference - half_width,
            high=difference + half_width,
            p_adjusted=p_value,
            separable=p_value < 1 - LEVEL,
        )
        for first, second, difference, half_width, p_value in columns
    }
    return tuple(
        compared.get((first.name, second.name)) or _unknown(first, second, ideal)
        for first, second in itertools.combinations(ordered, 2)
    )


def _unknown(first: Candidate, second: Candidate, ideal: float) -> Comparison:
    difference = abs(first.worst - ideal) - abs(second.worst - ideal)
    limits = {"low": None, "high": None, "p_adjusted": None}
    return Comparison(first=first.name, second=second.name, difference=difference, separable=False, **limits)


def _ranges(
    ordered: Sequence[Candidate], known: Sequence[Candidate], pairs: Pairs, separable: BoolArray
) -> dict[str, RankRange]:
    models = [candidate.model or candidate.name for candidate in known]
    nearer, farther = (set[tuple[int, str]](), set[tuple[int, str]]())
    chosen = (pairs.first[separable], pairs.second[separable], pairs.differences[separable] < 0)
    for first, second, first_is_nearer in zip(*(values.tolist() for values in chosen), strict=True):
        winner, loser = (first, second) if first_is_nearer else (second, first)
        if models[winner] != models[loser]:
            if known[winner].is_counted:
                nearer.add((loser, models[winner]))
            if known[loser].is_counted:
                farther.add((winner, models[loser]))
    n_nearer, n_farther = (Counter(index for index, _ in pairs_of) for pairs_of in (nearer, farther))
    indices = {candidate.name: index for index, candidate in enumerate(known)}
    n_ranked = len({candidate.model or candidate.name for candidate in ordered})
    # A model without deviations is in no pair, so that it may have any rank.
    return {
        candidate.name: RankRange(
            1 + n_nearer[indices.get(candidate.name, -1)],
            n_ranked - n_farther[indices.get(candidate.name, -1)],
            n_ranked,
        )
        for candidate in ordered
    }


def _chances(known: Sequence[Candidate], ideal: float) -> dict[str, float]:
    """Return the share of the draws in which each model is the nearest to the ideal; ties are shared."""
    if len(known) < 2:
        return {}
    distances = draws([_toward(candidate, ideal) for candidate in known], _N_DRAWS)
    distances += np.array([abs(candidate.worst - ideal) for candidate in known])[:, None]
    is_nearest = distances <= distances.min(axis=0) + _NEGLIGIBLE
    shares = (is_nearest / is_nearest.sum(axis=0)).mean(axis=1)
    return {candidate.name: float(share) for candidate, share in zip(known, shares, strict=True)}


def _detectable(pairs: Pairs, tail: float) -> float | None:
    """Return the difference that is detected with ``POWER`` at the first step by a pair of typical precision."""
    if not len(pairs.errors) or not tail:
        return None
    from scipy.special import stdtrit

    error, freedom = float(np.median(pairs.errors)), float(np.median(pairs.freedom))
    return float(error * (stdtrit(freedom, POWER) - stdtrit(freedom, tail)))


def rank_correlation(values: Sequence[float], others: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two series of the same length, in [-1, 1]; None if all values of one are equal."""
    # Imported here because scipy.stats takes longer to load than most commands that import this module take in all.
    from scipy import stats

    if min(len({*values}), len({*others})) < 2:
        return None
    return float(stats.kendalltau(values, others).statistic)
