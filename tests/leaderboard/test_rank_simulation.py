"""Ranks of made-up models with known quality: how often equal ones are told apart, and different ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from evaluators.statistics.jackknife import Deviations, deviations_of
from evaluators.statistics.record_tables import mean
from leaderboard.ranking.bounds import bounds_of
from leaderboard.ranking.rank_ranges import LEVEL, POWER, Contender, Ranking, rank
from schemas.documents.result import Metric
from tests.bench.bench_uneven_clusters import SETTINGS, ranked

N_CLUSTERS, PER_CLUSTER, N_MODELS, N_TABLES = 60, 8, 5, 250


def table(rng: np.random.Generator, qualities: np.ndarray) -> tuple[list[str], Ranking]:
    """Names of models from the best to the worst as they were measured, and their ranks.

    Items of a cluster are hard or easy for all models, and each model has good and bad clusters of its own.
    """
    shared = rng.normal(0, 0.05, N_CLUSTERS)
    own = rng.normal(0, 0.04, (N_CLUSTERS, len(qualities)))
    chances = np.clip(qualities + shared[:, None] + own, 0, 1)
    right = rng.binomial(PER_CLUSTER, chances)
    values = right.sum(axis=0) / (N_CLUSTERS * PER_CLUSTER)
    candidates = []
    for number, value in enumerate(values.tolist()):
        sums = np.column_stack([right[:, number], np.full(N_CLUSTERS, PER_CLUSTER)]).astype(float)
        deviations = deviations_of(sums, mean)
        assert isinstance(deviations, Deviations)
        candidates.append(Contender(name=str(number), worst=value, best=value, deviations=deviations))
    ordered = sorted(candidates, key=lambda one: -one.worst)
    return [one.name for one in ordered], rank(candidates, ideal=1.0)


def separable(ranking: Ranking) -> set[frozenset[str]]:
    return {frozenset((pair.first, pair.second)) for pair in ranking.comparisons if pair.separable}


@pytest.mark.slow
def test_equal_models_are_rarely_told_apart() -> None:
    rng = np.random.default_rng(7)
    n_apart = n_tables = 0
    for _ in range(N_TABLES):
        names, ranking = table(rng, np.full(N_MODELS, 0.7))
        found = separable(ranking)
        n_apart += sum(frozenset(pair) in found for pair in pairwise(names))
        n_tables += bool(found)
    n_pairs = N_TABLES * (N_MODELS - 1)
    assert n_apart / n_pairs <= 1 - LEVEL
    # Step-down keeps the chance of a single wrong pair in a whole table.
    assert n_tables <= stats.binom.ppf(0.999, N_TABLES, 1 - LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "n_models"),
    [
        ("12 clusters, sizes 0.9", 15),
        ("evenness, 12 patterns", 6),
        ("crossed 60x30, sizes 0.9", 6),
        ("index of 12 uneven and 200", 6),
        ("index of 12 uneven and 200, unlike", 6),
    ],
)
def test_equal_models_are_rarely_told_apart_where_clusters_differ_in_size(named: str, n_models: int) -> None:
    rng = np.random.default_rng(10)
    n_tables = sum(bool(separable(ranked(SETTINGS[named].draw, rng, np.zeros(n_models)))) for _ in range(N_TABLES))
    assert n_tables <= stats.binom.ppf(0.999, N_TABLES, 1 - LEVEL)


@pytest.mark.slow
def test_models_that_differ_by_the_detectable_difference_are_told_apart() -> None:
    rng = np.random.default_rng(8)
    _, pilot = table(rng, np.full(N_MODELS, 0.7))
    assert pilot.detectable is not None
    qualities = 0.85 - pilot.detectable * np.arange(N_MODELS)
    assert qualities[-1] > 0.3
    n_apart = 0
    for _ in range(N_TABLES):
        found = separable(table(rng, qualities)[1])
        n_apart += sum(frozenset((str(n), str(n + 1))) in found for n in range(N_MODELS - 1))
    n_pairs = N_TABLES * (N_MODELS - 1)
    assert n_apart >= stats.binom.ppf(0.001, n_pairs, POWER)


def test_chances_to_be_first_add_up_and_follow_the_quality() -> None:
    rng = np.random.default_rng(9)
    _, ranking = table(rng, np.array([0.8, 0.78, 0.5]))
    assert sum(ranking.chances.values()) == pytest.approx(1)
    assert ranking.chances["2"] == 0
    assert ranking.chances["0"] + ranking.chances["1"] == pytest.approx(1)
    _, single = table(rng, np.array([0.8]))
    assert (single.chances, single.detectable) == ({}, None)


def metric(value: float, n: int, n_excluded: int, ideal: float | None = 1.0, minimum: float = 0.0) -> Metric:
    return Metric(
        name="m",
        version="1.0",
        value=value,
        reason=None,
        interval=None,
        interval_reason="made up",
        n=n,
        n_excluded=n_excluded,
        unit="pairs",
        ideal=ideal,
        minimum=minimum,
        maximum=1.0,
        group={},
    )


def test_bounds_are_those_of_a_mean_whose_missing_units_are_known() -> None:
    rng = np.random.default_rng(3)
    values = rng.random(50)
    found = bounds_of(metric(float(values[:40].mean()), 40, 10))
    assert found is not None
    assert np.isclose(found.worst, np.r_[values[:40], np.zeros(10)].mean())
    assert np.isclose(found.best, np.r_[values[:40], np.ones(10)].mean())
    middle = bounds_of(metric(0.1, 30, 10, ideal=0.0, minimum=-1.0))
    assert middle is not None
    assert np.isclose(middle.worst, 0.75 * 0.1 + 0.25)
    assert middle.best == 0.0
    assert bounds_of(metric(0.5, 10, 1, ideal=None)) is None
