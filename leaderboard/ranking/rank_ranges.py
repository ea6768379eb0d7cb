"""Decides which results may be ranked, and computes rank ranges from pairs of models on the same items.

A board compares many pairs, and some of them differ by chance. A pair counts as different only if its difference is
larger than the largest of all pairs would be in 95 % of tables of equal models. What that largest difference is follows
from the answers: a hundred copies of a model differ from the others all alike, so that they add nothing to it, and the
ranks of honest models stay as they are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.plain_text import listed
from evaluators.benchmark import Benchmark, Gate, load_benchmark
from evaluators.runs.measure.baseline_gate import LeadOverBaseline
from evaluators.runs.measure.index_values import protocol_of
from evaluators.statistics.jackknife import SEED, Deviations, draws, starts_of, variance_of
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric

LEVEL = 0.95
"""Confidence level for all comparisons in one table together."""
POWER = 0.8
"""Probability of detecting a difference of the stated size."""
_N_DRAWS, _N_OF_OTHERS = 4000, 1000
"""Numbers of tables of equal models; the level of 5 % is then met to .3 % and .7 %."""
_CLUSTERS_AT_A_TIME = 1024

# Smaller differences can come from the order of floating-point sums.
_NEGLIGIBLE = 1e-12


class Bounds(NamedTuple):
    """The values of a metric if every missing unit counted as the worst or as the best that it could be."""

    worst: float
    best: float

    def __str__(self) -> str:
        """Return words for a cell."""
        return f"{self.worst:.3f} to {self.best:.3f} with missing answers at their worst and best"


def bounds_of(metric: Metric | None, missing_share: float) -> Bounds | None:
    """Return the bounds of a metric; None if it has no value, no ideal or no maximum.

    Each missing unit, such as a pair with an answer that was refused, counts as one end of the metric's range and
    weighs as much as each unit that was scored. For a mean over units these are its exact bounds. For other metrics the
    same rule is a convention: it moves the value towards an end of the range by the share of missing units.

    Args:
        metric: Value of all items, with the numbers of scored and of missing units.
        missing_share: Share of the answers that is missing within the units, as within the parts of a suite.
    """
    if metric is None or metric.value is None or metric.ideal is None or metric.maximum is None:
        return None
    total = metric.n + metric.n_excluded
    missing = metric.n_excluded / total if total else 0.0
    missing += (1 - missing) * missing_share
    low, high = ((1 - missing) * metric.value + missing * end for end in (metric.minimum, metric.maximum))
    ideal = metric.ideal
    worst = max(low, high, key=lambda value: abs(value - ideal))
    return Bounds(worst=worst, best=min(max(ideal, low), high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A model to be ranked."""

    name: str
    """Name of the model, unique within the table."""
    worst: float
    """Value of the metric with all missing answers at their worst."""
    best: float
    """Value with all missing answers at their best; equal to ``worst`` if none are missing."""
    value: float
    """Value of the given answers alone."""
    deviations: Deviations | None
    """Deviations of the value; None if there are too few clusters for an interval."""
    model: str | None = None
    """Name that rows of one model share, such as its revisions; None if it has only this row."""
    is_counted: bool = True
    """False for all rows of a model but one: they have ranks among the other models, and change none."""
    is_ranked: bool = True
    """False for a model that has no rank: it is compared with the others, and changes none of their ranks."""

    @property
    def is_in_family(self) -> bool:
        """True if the model counts among the ranks of others."""
        return self.is_ranked and self.is_counted


class RankRange(NamedTuple):
    """The range of ranks that the data allow for a model."""

    best: int
    worst: int
    n_ranked: int

    def __str__(self) -> str:
        """Return the text for tables: a single rank, or the first and the last rank of the range."""
        return str(self.best) if self.best == self.worst else f"{self.best}\N{EN DASH}{self.worst}"


def rank_words(rank: RankRange) -> str:
    """Return a rank range in words.

    >>> rank_words(RankRange(2, 2, 12)), rank_words(RankRange(1, 1, 1))
    ('rank 2 of 12', 'the only model that can be ranked: nobody to compare with')
    """
    if rank.n_ranked == 1:
        return "the only model that can be ranked: nobody to compare with"
    return f"rank {rank} of {rank.n_ranked}"


def detectable_note(difference: float | None, label: str) -> str:
    """Return a sentence about the difference that a table can detect; empty if it is unknown.

    Args:
        difference: Difference that is detected with a probability of 80 %, adjusted for all pairs of a table.
        label: Name of the metric that ranks.
    """
    if difference is None:
        return ""
    differ = f"Two models have to differ by about {difference:.2g} in {label}"
    return f"{differ} to be told apart in 8 of 10 cases, if neither leaves answers out."


def top_note(names: Sequence[str]) -> str:
    """Return words on the models that no other ranked model is separably better than.

    >>> top_note(["a", "b"]), top_note(["a"])
    ('not beaten: a, b', 'alone at the top: a')
    """
    # Of several, one may stand behind a model that is beaten, so that none is called the best.
    return f"{'not beaten' if len(names) > 1 else 'alone at the top'}: {listed(names, most=12)}"


Outcome: TypeAlias = Literal["first", "second", "tied", "unknown"]
"""The model that is separably nearer to the ideal; *tied* if the data do not tell, *unknown* if the value of one has
no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of two models on the same items: the one verdict that tables, pages, cards and files show."""

    first: str
    second: str
    lead: float
    """How much nearer to the ideal the first model is by the given answers; negative if it is farther."""
    low: float | None
    """Lower end of the interval of the lead at ``LEVEL``, of this pair alone; None if it is unknown."""
    high: float | None
    """Upper end of the same interval."""
    lead_at_worst: float
    """The lead with all missing answers of the first model at their worst, and those of the second at their best."""
    lead_at_best: float
    """The lead with those of the first at their best, and those of the second at their worst."""
    p_adjusted: float | None
    """Two-sided p-value, adjusted for all pairs of ranked models, or for all pairs if one of the two has no rank; None
    if it is unknown."""
    outcome: Outcome
    """What the data say at ``LEVEL`` by this p-value, whatever the missing answers are."""
    is_ranked: bool = True
    """True if both models have a rank."""

    @property
    def separable(self) -> bool:
        """True if the data distinguish the two models."""
        return self.outcome in ("first", "second")

    def seen_from(self, name: str) -> Comparison:
        """Return the comparison with a certain one of the two models as the first."""
        if name == self.first:
            return self
        if name != self.second:
            raise ValueError(f"'{name}' is neither '{self.first}' nor '{self.second}'")
        turned: dict[Outcome, Outcome] = {"first": "second", "second": "first"}
        return replace(
            self,
            first=self.second,
            second=self.first,
            lead=-self.lead,
            low=None if self.high is None else -self.high,
            high=None if self.low is None else -self.low,
            lead_at_worst=-self.lead_at_best,
            lead_at_best=-self.lead_at_worst,
            outcome=turned.get(self.outcome, self.outcome),
        )


class Ranking(NamedTuple):
    """The rank range of each model by its name, and the comparisons from which the ranges follow."""

    ranges: dict[str, RankRange]
    comparisons: tuple[Comparison, ...]
    chances: dict[str, float]
    """Share of the draws in which each model is the nearest to the ideal, by its name; empty for fewer than two."""
    detectable: float | None
    """Difference between two models that is detected with probability ``POWER``; None for fewer than two, or if the
    clusters are too few to tell any two apart."""


class Pairs(NamedTuple):
    """All pairs of models with deviations; arrays of shape (n_pairs,)."""

    first: IntArray
    second: IntArray
    differences: FloatArray
    """Distance to the ideal of the first minus that of the second; 0 if missing answers could turn the order round."""
    errors: FloatArray
    """Standard error of each difference."""
    freedom: FloatArray
    """Degrees of freedom of each error: one less than effective clusters, of the model that has fewer."""
    squares: FloatArray
    """Squared standard errors by the clusters of either factor alone, shape (2, n_pairs); zeros without a second."""


def rank(candidates: Sequence[Contender], *, ideal: float, largest: float = math.inf) -> Ranking:
    """Rank models by the distance of a metric to its ideal value.

    Both models of a pair are compared on the same items, so that variation which affects both alike cancels. The
    difference is divided by its standard error, and compared with the largest quotient of all pairs in tables of equal
    models: in these what each cluster contributes to a difference has its sign drawn. Then the most different pair is
    left out of those tables, and so on (step-down). A pair is *separable* if its adjusted p-value is below 1 -
    ``LEVEL``.

    Args:
        candidates: Models with unique names; their deviations must be of the same items.
        ideal: Best value of the metric.
        largest: Largest distance from it that is possible; intervals of leads end there.

    Returns:
        The ranges of ranked models and the comparisons of all. The best rank of a model is 1 + the number of counted
        models that are separable from it and nearer to the ideal. The worst rank is the number of counted models minus
        those that are separable from it and farther away. The order of ``candidates`` does not matter.

    References:
        Romano & Wolf 2005, "Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing", JASA 100, for the
        steps; Canay, Romano & Shaikh 2017, "Randomization Tests under an Approximate Symmetry Assumption",
        Econometrica 85, for the signs.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.name)
    known = [candidate for candidate in ordered if candidate.deviations is not None]
    pairs = compare_pairs(known, ideal)
    in_family = np.array([candidate.is_in_family for candidate in known], dtype=np.bool_)
    adjusted, tail = _adjusted(pairs, known, ideal)
    ranked = [candidate for candidate in ordered if candidate.is_ranked]
    return Ranking(
        ranges=_ranges(ranked, known, pairs, adjusted < 1 - LEVEL),
        comparisons=tuple(_comparisons(ordered, known, pairs, adjusted, (ideal, largest))),
        chances=_chances(ranked, ideal) if all(one.deviations is not None for one in ranked) else {},
        detectable=_detectable(pairs, in_family[pairs.first] & in_family[pairs.second], tail),
    )


def _toward(candidate: Contender, ideal: float) -> Deviations:
    """Return the deviations of a model's distance to the ideal."""
    assert candidate.deviations is not None
    lead = candidate.value - ideal
    # A model at the ideal itself, such as an estimate of evenness that ends there, varies on the side of all others:
    # below 1, or above 0.
    return candidate.deviations * math.copysign(1.0, lead if lead else 0.5 - ideal)


def compare_pairs(known: Sequence[Contender], ideal: float) -> Pairs:
    """Return the differences of all pairs of models, with their standard errors.

    Args:
        known: Models that have deviations, of the same items.
        ideal: Best value of the metric.
    """
    first, second = np.triu_indices(len(known), k=1)
    if not len(first):
        none = np.zeros(0)
        return Pairs(first, second, none, none, none, np.zeros((2, 0)))
    at_worst = np.array([abs(candidate.worst - ideal) for candidate in known])
    at_best = np.array([abs(candidate.best - ideal) for candidate in known])
    # A model is nearer only if it is so with its missing answers at their worst and the other's at their best.
    lead_of_second = at_best[first] - at_worst[second]
    lead_of_first = at_best[second] - at_worst[first]
    differences = np.where(lead_of_second > 0, lead_of_second, np.where(lead_of_first > 0, -lead_of_first, 0.0))
    deviations = [_toward(candidate, ideal) for candidate in known]
    for candidate, of_model in zip(known, deviations, strict=True):
        named = f"{candidate.model or candidate.name}: other clusters than {known[0].name}"
        assert of_model.shape == deviations[0].shape, named
    squares = []
    for number in range(3):
        stacked = np.array([of.parts[number] for of in deviations])
        products = stacked @ stacked.T
        lengths = np.diag(products)
        squares.append(np.maximum(lengths[first] + lengths[second] - 2 * products[first, second], 0.0))
    n_effective = np.array([of.n_effective for of in deviations])
    freedom = np.maximum(np.minimum(n_effective[first], n_effective[second]) - 1, 1.0)
    return Pairs(first, second, differences, np.sqrt(variance_of(*squares)), freedom, np.array(squares[:2]))


def _contributions(known: Sequence[Deviations], models: BoolArray, number: int) -> tuple[FloatArray, FloatArray]:
    """Return what clusters contribute to distances beyond their parts of these, and the parts that they have.

    Args:
        known: Deviations of each model's distance to the ideal.
        models: Mask of the models whose variances say how large the parts are, shape (n_models,).
        number: Factor, 0 or 1.

    Returns:
        Shapes (n_models, n_clusters) and (n_clusters,).
    """
    starts = starts_of(known[0].blocks[number])
    lengths = known[0].blocks[number]
    factors = [of_model.factor(number) for of_model in known]
    deviations = np.array([of_clusters for of_clusters, _ in factors])
    shares = np.mean([of_clusters for (_, of_clusters), counts in zip(factors, models, strict=True) if counts], axis=0)
    # Leaving a cluster out moves a mean by what it contributes beyond its share, over the share of all others.
    n = np.add.reduceat(shares > 0, starts, dtype=np.int64)
    own = deviations * (1 - shares) * np.repeat(np.sqrt(n / (n - 1)), lengths)
    # Other values than means do not quite add up.
    own -= shares * np.repeat(np.add.reduceat(own, starts, axis=1), lengths, axis=1)
    # Of the differences of all pairs together.
    variances = np.add.reduceat(deviations[models].var(axis=0), starts)
    total = variances.sum()
    parts = variances / total if total > 0 else np.full(len(starts), 1 / len(starts))
    return own, shares * np.repeat(parts, lengths)


def _adjusted(pairs: Pairs, known: Sequence[Contender], ideal: float) -> tuple[FloatArray, float]:
    """Return the adjusted p-value of each pair, shape (n_pairs,).

    That of two models that count is adjusted for all pairs of such models, that of two ranked ones of which one is a
    further row of a model for all pairs of ranked models, and that of a pair with a model without a rank for all pairs.
    The last ones are a second family beside the ranked ones, so that their p-values are doubled if there are both.

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
    is_certain = pairs.errors <= _NEGLIGIBLE
    p_values[is_certain] = 0.0
    p_values[sizes <= _NEGLIGIBLE] = 1.0
    deviations = [_toward(candidate, ideal) for candidate in known]
    by_signs, tail = np.ones(len(sizes)), (1 - LEVEL) / 2
    is_judged = np.zeros(len(sizes), dtype=np.bool_)
    counted, ranked = ([getattr(one, name) for one in known] for name in ("is_in_family", "is_ranked"))
    for number, chosen in enumerate((counted, ranked, [True] * len(known))):
        models = np.array(chosen, dtype=np.bool_)
        together = models[pairs.first] & models[pairs.second]
        if not (together & ~is_judged).any():
            continue
        # Ranks need p-values to the third digit; of other pairs there may be half a million.
        n_draws = _N_DRAWS if number == 0 else _N_OF_OTHERS
        # If two factors are crossed, a pair has to differ by the clusters of both.
        of_factors = [
            _by_signs(deviations, models, pairs, together, factor, n_draws)
            for factor in range(1 + deviations[0].is_crossed)
        ]
        found = np.max([p_value for p_value, _ in of_factors], axis=0)
        if number == 0:
            tail = min(tail, *(own_tail for _, own_tail in of_factors))
        if number == 2 and is_judged.any():
            found = np.minimum(2 * found, 1.0)
        by_signs = np.where(is_judged, by_signs, found)
        is_judged |= together
    # Draws know no p-value below one in their number.
    return np.maximum(p_values, np.where(is_certain, p_values, by_signs)), tail


def _by_signs(
    known: Sequence[Deviations], models: BoolArray, pairs: Pairs, together: BoolArray, number: int, n_draws: int
) -> tuple[FloatArray, float]:
    """Compare pairs with tables of equal models: what each cluster contributes to the differences has its sign drawn.

    If two models are equal, a cluster's contribution to their difference may as well have the opposite sign, however
    large the cluster is: its deviation from their difference, and its share of the difference. Without the shares,
    those of a few large clusters are much alike, as they have to add up to 0, and equal models were told apart in 20 %
    of tables with 12 clusters where the logarithm of their sizes has a standard deviation of .9, for 4 % with them.

    An index has several blocks of clusters, and two models that are equal on it may differ in each. What they differ by
    there if they are equal is what they do less a part of their difference, and the parts of all blocks make up the
    whole, in proportion to the variances of the blocks. When all clusters of an index had the same part, 15 equal
    models were told apart in 48 % of tables of 200 clusters and of 12 like those above, for 2 % now.

    Args:
        known: Deviations of each model's distance to the ideal.
        models: Mask of the models whose variances count, shape (n_models,).
        pairs: All pairs.
        together: Mask of the pairs to adjust for, shape (n_pairs,); the others have a p-value of 1.
        number: Factor whose clusters have their signs drawn, 0 or 1.
        n_draws: Number of tables.

    Returns:
        The adjusted p-value of each pair, and the tail probability, by Student's t for one pair, at which the most
        different pair of a table has its score; 0 if none does.

    References:
        Cameron, Gelbach & Miller 2008, "Bootstrap-Based Improvements for Inference with Clustered Errors", for signs of
        what is left under the hypothesis that is tested.
    """
    from scipy.special import stdtr

    own, shares = _contributions(known, models, number)
    generator = np.random.default_rng(SEED)
    # Sums of each model's deviations from its own distance, with signs, and of the parts that the clusters have.
    sums = np.zeros((len(own) + 1, n_draws))
    for start in range(0, len(shares), _CLUSTERS_AT_A_TIME):
        block = slice(start, start + _CLUSTERS_AT_A_TIME)
        signs = generator.choice(np.array([-1.0, 1.0]), size=(len(shares[block]), n_draws))
        sums += np.vstack([own[:, block], shares[block]]) @ signs
    of_models, of_shares = sums[:-1], sums[-1]
    products = own @ own.T
    lengths, mixed = np.diag(products), own @ shares
    first, second = pairs.first, pairs.second
    both = lengths[first] + lengths[second]
    squares = np.maximum(both - 2 * products[first, second], 0.0)
    # Missing answers are at their worst for the model that is nearer, as they are in the difference.
    squares += pairs.differences * (2 * (mixed[first] - mixed[second]) + pairs.differences * (shares @ shares))
    squares = np.where(squares > _NEGLIGIBLE * both, squares, np.inf)
    spreads = np.sqrt(squares)
    # Clusters of one of two factors do not know what the other adds to the error.
    of_other = np.maximum(pairs.errors**2 - pairs.squares[number], 0.0)
    # How many standard deviations each pair differs by. The draw that leaves all signs as they are must not fall short
    # of its own table by rounding.
    scores = np.abs(pairs.differences) / np.sqrt(squares + of_other) * (1 - 1e-9)

    order = np.flatnonzero(together)[np.argsort(scores[together], kind="stable")]
    adjusted = np.ones(len(scores))
    largest, drawn, of_lead = np.zeros(n_draws), np.empty(n_draws), np.empty(n_draws)
    # From the least different pair on, so that the largest so far is that of the pairs which step-down leaves. Pair by
    # pair, since rows of 4,000 stay in the processor's cache: half a million pairs in blocks took twice as long.
    columns = (order.tolist(), scores[order].tolist(), spreads[order].tolist())
    for pair, score, spread in zip(*columns, strict=True):
        np.subtract(of_models[first[pair]], of_models[second[pair]], out=drawn)
        np.multiply(of_shares, pairs.differences[pair], out=of_lead)
        drawn += of_lead
        drawn /= spread
        np.maximum(largest, np.abs(drawn, out=drawn), out=largest)
        adjusted[pair] = (1 + np.count_nonzero(largest >= score)) / (n_draws + 1)
    # A pair that differs less cannot have a smaller p-value than one that differs more.
    adjusted[order] = np.maximum.accumulate(adjusted[order][::-1])[::-1]
    reached = float(np.quantile(largest, LEVEL)) if len(order) else 0.0
    n_clusters = max(int(np.count_nonzero(shares)), 2)
    left = n_clusters - reached**2
    tail = float(stdtr(n_clusters - 1, -reached * math.sqrt((n_clusters - 1) / left))) if left > 0 else 0.0
    return adjusted, tail


def _comparisons(
    ordered: Sequence[Contender],
    known: Sequence[Contender],
    pairs: Pairs,
    adjusted: FloatArray,
    limits: tuple[float, float],
) -> Iterator[Comparison]:
    """Yield the comparison of each pair of models; ``limits`` are the ideal and the largest distance from it."""
    from scipy.special import stdtrit

    ideal, largest = limits
    half_widths = stdtrit(pairs.freedom, (1 + LEVEL) / 2) * pairs.errors
    columns = (pairs.first, pairs.second, pairs.differences, half_widths, adjusted)
    judged = {
        (known[one].name, known[other].name): numbers
        for one, other, *numbers in zip(*(column.tolist() for column in columns), strict=True)
    }
    for first, second in itertools.combinations(ordered, 2):
        # The difference is that of the distances whatever the missing answers are.
        difference, half_width, p_value = judged.get((first.name, second.name), (0.0, None, None))
        lead = abs(second.value - ideal) - abs(first.value - ideal)
        outcome: Outcome = "unknown" if p_value is None else "tied"
        if p_value is not None and p_value < 1 - LEVEL:
            outcome = "first" if difference < 0 else "second"
        yield Comparison(
            first=first.name,
            second=second.name,
            lead=lead,
            low=None if half_width is None else max(lead - half_width, -largest),
            high=None if half_width is None else min(lead + half_width, largest),
            lead_at_worst=abs(second.best - ideal) - abs(first.worst - ideal),
            lead_at_best=abs(second.worst - ideal) - abs(first.best - ideal),
            p_adjusted=p_value,
            outcome=outcome,
            is_ranked=first.is_ranked and second.is_ranked,
        )


def _ranges(
    ranked: Sequence[Contender], known: Sequence[Contender], pairs: Pairs, separable: BoolArray
) -> dict[str, RankRange]:
    models = [candidate.model or candidate.name for candidate in known]
    nearer, farther = (set[tuple[int, str]](), set[tuple[int, str]]())
    chosen = (pairs.first[separable], pairs.second[separable], pairs.differences[separable] < 0)
    for first, second, first_is_nearer in zip(*(values.tolist() for values in chosen), strict=True):
        winner, loser = (first, second) if first_is_nearer else (second, first)
        if models[winner] != models[loser]:
            if known[winner].is_in_family:
                nearer.add((loser, models[winner]))
            if known[loser].is_in_family:
                farther.add((winner, models[loser]))
    n_nearer, n_farther = (Counter(index for index, _ in pairs_of) for pairs_of in (nearer, farther))
    indices = {candidate.name: index for index, candidate in enumerate(known)}
    n_ranked = len({candidate.model or candidate.name for candidate in ranked})
    # A model without deviations is in no pair, so that it may have any rank.
    return {
        candidate.name: RankRange(
            1 + n_nearer[indices.get(candidate.name, -1)],
            n_ranked - n_farther[indices.get(candidate.name, -1)],
            n_ranked,
        )
        for candidate in ranked
    }


def _chances(known: Sequence[Contender], ideal: float) -> dict[str, float]:
    """Return the share of the draws in which each model is the nearest to the ideal; ties are shared."""
    if len(known) < 2:
        return {}
    distances = draws([_toward(candidate, ideal) for candidate in known], _N_DRAWS)
    distances += np.array([abs(candidate.worst - ideal) for candidate in known])[:, None]
    is_nearest = distances <= distances.min(axis=0) + _NEGLIGIBLE
    shares = (is_nearest / is_nearest.sum(axis=0)).mean(axis=1)
    return {candidate.name: float(share) for candidate, share in zip(known, shares, strict=True)}


def _detectable(pairs: Pairs, of_family: BoolArray, tail: float) -> float | None:
    """Return the difference that is detected with ``POWER`` at the first step by a pair of typical precision."""
    if not of_family.any() or not tail:
        return None
    from scipy.special import stdtrit

    error, freedom = float(np.median(pairs.errors[of_family])), float(np.median(pairs.freedom[of_family]))
    return float(error * (stdtrit(freedom, POWER) - stdtrit(freedom, tail)))


def rank_correlation(values: Sequence[float], others: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two series of the same length, in [-1, 1]; None if all values of one are equal."""
    # Imported here because scipy.stats takes longer to load than most commands that import this module take in all.
    from scipy import stats

    if min(len({*values}), len({*others})) < 2:
        return None
    return float(stats.kendalltau(values, others).statistic)


MIN_ANSWERED = 0.5
"""Smallest share of items, and of the units of the primary metric, that must be scored for a model to be ranked.

What is missing widens its rank range; of less than half, a range would say nothing.
"""
BY_INDEX = "models are ranked by the index of all configs, not by one config"
"""Reason of every row of a table that stands in an index."""


def is_settled(entry: Entry) -> bool:
    """Return True if a maintainer has registered a result and has not withdrawn it."""
    return entry.acceptance is not None and entry.acceptance.decision != "withdrawn"


def why_unranked(entry: Entry) -> str | None:
    """Return why a result cannot be ranked, regardless of its metrics; None if it can be."""
    if entry.is_baseline:
        return "baselines are shown for comparison and never ranked"
    if entry.match.reason is not None:
        return entry.match.reason
    if entry.acceptance is not None and entry.acceptance.decision == "withdrawn":
        when = f" on {entry.acceptance.decided}" if entry.acceptance.decided else ""
        return f"withdrawn{when}: {entry.acceptance.reason}"
    if entry.is_replayed and not entry.is_imported:
        return "replayed: its answers come from an earlier run or a file and may repeat another row"
    if entry.claim is not None:
        return f"reported only: {entry.claim}"
    if entry.double is not None:
        return entry.double
    counts = entry.result.counts
    if counts.scored < MIN_ANSWERED * counts.items:
        return f"{counts.scored} of {counts.items} items scored; a rank needs at least half"
    parts = entry.result.signature.parts
    for split_name in entry.result.signature.splits if parts else ():
        having = {counts.part for counts in entry.coverage if counts.split == split_name}
        # A part of a suite that lacks a split which most of its parts have.
        if len(parts) / 2 < len(having) < len(parts):
            lost = next(part for part in parts if part not in having)
            return f"part {lost} has no items of split {split_name}, which most parts have; a rank needs every part"
    # By split, not over all items: the few that support a measurement are a small share of all.
    lacking = [split for split in entry.coverage if split.counts.scored < MIN_ANSWERED * split.counts.items]
    if lacking:
        first = lacking[0]
        more = f", and {len(lacking) - 1} more splits like it" if len(lacking) > 1 else ""
        return (
            f"{first.counts.scored} of {first.counts.items} items of {first.part}/{first.split} scored{more}; a rank "
            "needs at least half of each split"
        )
    return None


_Model: TypeAlias = tuple[object, ...]
"""What names a model under one protocol on one dataset: results of these may decide about one another."""


class Gates:
    """The gates of all results: a result without right answers of its own is judged by the model's other results."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        """Collect the results that can decide."""
        self._deciding: dict[_Model, dict[Gate, list[Entry]]] = {}
        self._limited: set[tuple[_Model, Gate]] = set()
        # What a maintainer has registered comes first, and then decides alone.
        for entry in sorted(
            entries, key=lambda entry: (not is_settled(entry), -entry.result.signature.n_items, entry.place)
        ):
            signature = entry.result.signature
            gate = load_benchmark(signature.benchmark).gate(signature.task)
            if gate is None or entry.standing is None:
                continue
            if entry.match.extent == "whole":
                deciding = self._deciding.setdefault(_model_of(entry), {}).setdefault(gate, [])
                if is_settled(entry) or not any(map(is_settled, deciding)):
                    deciding.append(entry)
            else:  # It decides about nothing else: a short trial run must not shut the gate of a whole one.
                self._limited.add((_model_of(entry), gate))

    def why_shut(self, entry: Entry) -> str | None:
        """Return why a result does not pass the gates of its benchmark; None if it passes or there are none.

        A baseline needs to pass none: it is what models are compared with.
        """
        if entry.is_baseline:
            return None
        signature, own = entry.result.signature, why_own_shut(entry)
        gate = load_benchmark(signature.benchmark).gate(signature.task)
        if own is not None or (entry.standing is not None and gate is not None and not gate.only_reading):
            return own
        gates = load_benchmark(signature.benchmark).gates_for(signature.task)
        deciding = self._deciding.get(_model_of(entry), {})
        for gate in gates:
            if gate not in deciding:
                name = gate.metric.replace("_", " ")
                lacks = f"these items have no right answers, and the model has no result with {name} under this prompt"
                is_limited = (_model_of(entry), gate) in self._limited
                return f"{lacks} but one of some items; ask all" if is_limited else lacks
        for other in (entry for gate in gates for entry in deciding[gate]):
            # A result that could not be ranked itself, for example because much of it was refused, opens no gate.
            reason = None if other.standing is None else other.standing.reason or why_unranked(other)
            if reason is not None:
                return in_config(other, reason)
        return None


def why_own_shut(entry: Entry) -> str | None:
    """Return why a result does not pass the gate of its own task; None if it does, or if other results decide."""
    if entry.is_baseline or entry.standing is not None:
        return None if entry.is_baseline or entry.standing is None else entry.standing.reason
    signature = entry.result.signature
    gate = load_benchmark(signature.benchmark).gate(signature.task)
    metric = None if gate is None or not gate.only_reading else entry.metric(gate.metric)
    # Right answers are a fact of the items, but that answers depend on prompts has to be shown of each result.
    return None if metric is None else f"{metric.name.replace('_', ' ')} has no value: {metric.reason}"


def best_baselines(entries: Iterable[Entry]) -> tuple[LeadOverBaseline, ...]:
    """Return the differences of some results from each baseline of their gate, one for each, the best baseline first.

    The baselines answer the same items, so that the value of each is the same for all results of a table.
    """
    leads = {lead.baseline: lead for entry in entries if entry.standing is not None for lead in entry.standing.leads}
    return tuple(sorted(leads.values(), key=lambda lead: (-lead.value, lead.baseline)))


class Named(NamedTuple):
    """A value of another model or of a useless predictor."""

    name: str
    metric: Metric


def best_useless(benchmark: Benchmark, values: Iterable[Named]) -> Named | None:
    """Return the value nearest to the ideal, if there is one; of equal ones, that of the baseline listed first.

    Benchmarks list the simplest first. Values that only the order of a sum tells apart are equal.
    """
    order = {baseline.name: place for place, baseline in enumerate(benchmark.baselines)}

    def key(useless: Named) -> tuple[float, int, str]:
        distance = abs((useless.metric.value or 0.0) - (useless.metric.ideal or 0.0))
        return round(distance, 9), order.get(useless.name, len(order)), useless.name

    known = (one for one in values if one.metric.value is not None and one.metric.ideal is not None)
    return min(known, key=key, default=None)


def solved_note(entries: Iterable[Entry]) -> str:
    """Return a sentence on the baselines that solve the items of some results by themselves; empty if none does."""
    solvers = [f"{lead.baseline} alone is right in {lead.value:.3f}" for lead in best_baselines(entries) if lead.solves]
    if not solvers:
        return ""
    shown = listed(solvers, most=3)
    return f"These items cannot show skill: {shown}. For a rank, models have to lead the other baselines."


def in_config(entry: Entry, reason: str) -> str:
    """Return a reason with the config of its result in front, unless it begins with that word anyway."""
    config = entry.result.signature.config
    return reason if reason.startswith(config) else f"{config}: {reason}"


def _model_of(entry: Entry) -> _Model:
    signature = entry.result.signature
    data = (signature.benchmark, signature.dataset, signature.dataset_version, signature.splits)
    protocol = protocol_of(signature.task, signature.prompt)
    return entry.result.model.identity_sha256, *data, protocol, signature.normalisation
