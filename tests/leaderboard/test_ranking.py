"""Rank ranges from hand-made deviations, and of made-up models of known quality: how often they are told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biasboard.ground.columns import FloatArray
from evaluators.statistics.jackknife import Deviations, deviations_of
from evaluators.statistics.record_tables import mean
from leaderboard.ranking.rank_ranges import LEVEL, POWER, Bounds, Contender, Ranking, RankRange, bounds_of, rank
from tests.bench.bench_uneven_clusters import SETTINGS
from tests.bench.simulated import ranked
from tests.leaderboard.synthetic import present
from tests.schemas import examples

N_CLUSTERS = 100
SHARED_NOISE = np.random.default_rng(0).normal(0, 0.02 / N_CLUSTERS**0.5, N_CLUSTERS)


def made(name: str, value: float, deviations: FloatArray | None, best: float | None = None, **fields: Any) -> Contender:
    of_clusters = None
    if deviations is not None:
        n, none = len(deviations), np.zeros(0)
        of_clusters = Deviations(deviations, none, none, np.full(n, 1 / n), np.array([[n], [0]]))
    best = value if best is None else best
    return Contender(name=name, worst=value, best=best, value=(value + best) / 2, deviations=of_clusters, **fields)


def candidate(name: str, value: float, *, own_noise: float = 0.001, **fields: Any) -> Contender:
    rng = np.random.default_rng(sum(map(ord, name)))
    own = rng.normal(0, own_noise / N_CLUSTERS**0.5, N_CLUSTERS)
    return made(name, value, SHARED_NOISE + own, **fields)


def words(candidates: Sequence[Contender], ideal: float = 1.0) -> dict[str, str]:
    """The range of ranks of each model, as tables show it."""
    return {
        name: str(found).replace("\N{EN DASH}", "-") for name, found in rank(candidates, ideal=ideal).ranges.items()
    }


def test_noise_that_is_shared_does_not_hide_a_difference() -> None:
    # The noise of each alone is twice their difference; paired, it cancels.
    assert words([candidate("a", 0.81), candidate("b", 0.80)])["a"] == "1"
    assert words([candidate("a", 0.81), made("b", 0.80, -SHARED_NOISE)])["a"] == "1-2"
    # Also for a model at the ideal.
    for ideal in (1.0, 0.0):
        assert words([candidate("a", ideal), candidate("b", abs(ideal - 0.01))], ideal) == {"a": "1", "b": "2"}


def test_models_far_apart_have_one_rank_each_and_being_told_apart_is_not_transitive() -> None:
    ranking = rank([candidate("b", 0.8), candidate("a", 0.9), candidate("c", 0.7)], ideal=1.0)
    assert ranking.ranges == {"a": RankRange(1, 1, 3), "b": RankRange(2, 2, 3), "c": RankRange(3, 3, 3)}
    single = rank([candidate("only", 0.5)], ideal=1.0)
    assert (single.ranges, single.comparisons) == ({"only": RankRange(1, 1, 1)}, ())
    ranking = rank([candidate("above", 0.70), candidate("below", 0.45), candidate("far", 0.1)], ideal=0.5)
    assert [ranking.ranges[name].best for name in ("below", "above", "far")] == [1, 2, 3]
    chain = [candidate(name, value, own_noise=0.02) for name, value in (("a", 0.86), ("b", 0.80), ("c", 0.74))]
    separable = {(pair.first, pair.second): pair.separable for pair in rank(chain, ideal=1.0).comparisons}
    assert separable == {("a", "b"): False, ("a", "c"): True, ("b", "c"): False}
    assert words(chain)["b"] == "1-3"


def test_equal_models_are_not_separable_without_any_noise_and_without_an_interval_nothing_is_claimed() -> None:
    same = [made(name, 1.0, np.zeros(N_CLUSTERS)) for name in "ab"]
    assert words(same)["a"] == "1-2"
    assert words([same[0], made("b", 0.5, np.zeros(N_CLUSTERS))])["a"] == "1"
    ranking = rank([made("a", 0.9, None), candidate("b", 0.1)], ideal=1.0)
    assert ranking.ranges["a"] == RankRange(1, 2, 2)
    assert (ranking.comparisons[0].low, ranking.comparisons[0].p_adjusted) == (None, None)


def test_the_interval_is_the_difference_with_its_standard_error() -> None:
    first, second = candidate("a", 0.9, own_noise=0.01), candidate("b", 0.8, own_noise=0.01)
    comparison = rank([first, second], ideal=1.0).comparisons[0]
    moved, other = (present(one.deviations).first for one in (first, second))
    error = math.sqrt(sum((moved - other) ** 2))
    # 1.98422 is the 97.5 % quantile of Student's t with 99 degrees of freedom.
    assert comparison.lead == pytest.approx(0.1)
    assert comparison.low == pytest.approx(0.1 - 1.98422 * error, abs=1e-6)
    assert comparison.high == pytest.approx(0.1 + 1.98422 * error, abs=1e-6)
    assert comparison.outcome == "first"


def test_p_values_of_independent_models_are_nearly_those_of_sidak() -> None:
    # Each differs from a fixed one by its own noise, so that the largest of ten is that of ten independent ones.
    rng = np.random.default_rng(5)
    columns = np.linalg.qr(rng.normal(size=(N_CLUSTERS, 11)))[0].T * 0.01
    fixed = made("fixed", 0.5, np.zeros(N_CLUSTERS))
    pair = made("a", 0.53, columns[0])
    (alone,) = rank([fixed, pair], ideal=1.0).comparisons
    assert alone.p_adjusted == pytest.approx(2 * stats.t.sf(3, N_CLUSTERS - 1), abs=0.003)
    # Copies of a model add nothing to what a table asks of a pair; as many other models do.
    copies = [made(f"c{number}", 0.5, columns[0] * 1e-6) for number in range(40)]
    others = [made(f"o{number}", 0.5, columns[number]) for number in range(1, 11)]
    with_copies, with_others = (p_values([fixed, pair, *rest])["a", "fixed"] for rest in (copies, others))
    assert with_copies == pytest.approx(alone.p_adjusted, abs=0.003)
    assert with_others > 5 * (alone.p_adjusted or 1.0)


def p_values(candidates: Sequence[Contender]) -> dict[tuple[str, str], float]:
    pairs = rank(candidates, ideal=1.0).comparisons
    return {(pair.first, pair.second): pair.p_adjusted for pair in pairs if pair.p_adjusted is not None}


def test_missing_answers_widen_ranks_and_the_range_of_a_lead() -> None:
    two = [candidate("whole", 0.80), candidate("refusing", 0.70, best=0.90)]
    assert words(two) == {"whole": "1-2", "refusing": "1-2"}
    of_four = words([*two, candidate("low", 0.60), candidate("high", 0.95)])
    assert of_four == {"high": "1", "refusing": "2-3", "whole": "2-3", "low": "4"}
    refusing = replace(candidate("a", 0.70, best=0.90), value=0.875)
    (pair,) = rank([refusing, candidate("b", 0.80)], ideal=1.0).comparisons
    assert (pair.lead, pair.lead_at_worst, pair.lead_at_best) == pytest.approx((0.075, -0.1, 0.1))
    # Its own interval leaves out 0, but the missing answers could turn the order.
    assert present(pair.low) > 0
    assert (pair.outcome, pair.p_adjusted) == ("tied", 1.0)


def test_models_without_a_rank_are_compared_and_change_no_rank_nor_that_of_a_revision() -> None:
    ranked = [candidate("above", 0.9), candidate("middle", 0.81, own_noise=0.03), candidate("below", 0.8)]
    unranked = [replace(candidate(f"z{number}", 0.5 + number / 50), is_ranked=False) for number in range(20)]
    alone, together = rank(ranked, ideal=1.0), rank([*ranked, *unranked], ideal=1.0)
    assert together.ranges == alone.ranges
    assert together.detectable == alone.detectable
    assert together.chances == alone.chances
    assert [one for one in together.comparisons if one.is_ranked] == list(alone.comparisons)
    with_others = {(one.first, one.second): one for one in together.comparisons if not one.is_ranked}
    assert len(with_others) == 20 * 3 + 190
    assert with_others["above", "z0"].outcome == "first"
    assert rank(unranked, ideal=1.0).ranges == {}
    of_model = [candidate(f"b{n}", 0.86, own_noise=0.016, model="b", is_counted=n == 0) for n in (0, 1)]
    rows = [candidate("a", 0.9), *of_model]
    unranked = [replace(candidate(f"z{n}", 0.5, own_noise=0.02), is_ranked=False) for n in range(30)]
    alone = rank(rows, ideal=1.0)
    # So near the limit that more pairs would take the verdict away.
    assert 0.02 < max(one.p_adjusted or 0.0 for one in alone.comparisons if one.separable) < 0.05
    assert rank([*rows, *unranked], ideal=1.0).ranges == alone.ranges


@pytest.mark.slow
@pytest.mark.parametrize("n_ranked", [0, 2])
def test_equal_models_without_a_rank_are_seldom_told_apart(n_ranked: int) -> None:
    """The mean of a part of 100 clusters and of one of 12 of unlike size, each in tables of 8 equal models."""
    rng = np.random.default_rng(11)
    sizes = np.exp(rng.normal(0, 0.9, 12))
    shares = np.concatenate([np.full(100, 0.01), sizes / sizes.sum()])
    n_false = 0
    for _ in range(60):
        models = []
        for number in range(8):
            noise = rng.normal(size=112) * shares * 0.1
            value = 0.5 + noise[:100].sum() / 2 + noise[100:].sum() / 2
            own = noise - shares * np.repeat([noise[:100].sum(), noise[100:].sum()], [100, 12])
            n = np.repeat([100, 12], [100, 12])
            moved = own / (1 - shares) / 2 * np.sqrt((n - 1) / n)
            none = np.zeros(0)
            deviations = Deviations(moved, none, none, np.array([*shares]), np.array([[100, 12], [0, 0]]))
            one = Contender(name=str(number), worst=value, best=value, value=value, deviations=deviations)
            models.append(replace(one, is_ranked=number < n_ranked))
        n_false += any(pair.separable for pair in rank(models, ideal=1.0).comparisons)
    # Of 60 tables, 9 or more by chance in one of a thousand at .06.
    assert n_false < 9


def test_rows_of_one_model_count_as_one_and_other_clusters_are_named() -> None:
    others = [candidate("above", 0.9), candidate("below", 0.7)]
    revisions = [candidate(f"r{n}", 0.8 + n / 1e5, own_noise=0.02, model="m", is_counted=n == 3) for n in range(5)]
    ranges = rank([*others, *revisions], ideal=1.0).ranges
    assert (ranges["above"], ranges["below"]) == (RankRange(1, 1, 3), RankRange(3, 3, 3))
    assert {ranges[revision.name] for revision in revisions} == {RankRange(2, 2, 3)}
    own = made("hash", 0.5, np.linspace(-0.1, 0.1, 12), model="lab/other")
    with pytest.raises(AssertionError, match="lab/other: other clusters than a"):
        rank([made("a", 0.5, np.linspace(-0.1, 0.1, 10)), own], ideal=1.0)


N_DRAWN, PER_CLUSTER, N_MODELS, N_TABLES = 60, 8, 5, 250


def table(rng: np.random.Generator, qualities: np.ndarray) -> tuple[list[str], Ranking]:
    """Names of models from the best to the worst as they were measured, and their ranks.

    Items of a cluster are hard or easy for all models, and each model has good and bad clusters of its own.
    """
    shared = rng.normal(0, 0.05, N_DRAWN)
    own = rng.normal(0, 0.04, (N_DRAWN, len(qualities)))
    chances = np.clip(qualities + shared[:, None] + own, 0, 1)
    right = rng.binomial(PER_CLUSTER, chances)
    values = right.sum(axis=0) / (N_DRAWN * PER_CLUSTER)
    candidates = []
    for number, value in enumerate(values.tolist()):
        sums = np.column_stack([right[:, number], np.full(N_DRAWN, PER_CLUSTER)]).astype(float)
        deviations = deviations_of(sums, mean)
        assert isinstance(deviations, Deviations)
        candidates.append(Contender(name=str(number), worst=value, best=value, value=value, deviations=deviations))
    ordered = sorted(candidates, key=lambda one: -one.worst)
    return [one.name for one in ordered], rank(candidates, ideal=1.0)


def separable(ranking: Ranking) -> set[frozenset[str]]:
    return {frozenset((pair.first, pair.second)) for pair in ranking.comparisons if pair.separable}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "n_models"),
    [("12 clusters, sizes 0.9", 15), ("crossed 60x30, sizes 0.9", 6), ("index of 12 uneven and 200, unlike", 6)],
)
def test_equal_models_are_rarely_told_apart_where_clusters_differ_in_size(named: str, n_models: int) -> None:
    rng = np.random.default_rng(10)
    n_tables = sum(bool(separable(ranked(SETTINGS[named].draw(rng, np.zeros(n_models))))) for _ in range(N_TABLES))
    assert n_tables <= stats.binom.ppf(0.999, N_TABLES, 1 - LEVEL)


@pytest.mark.slow
def test_models_that_differ_by_the_detectable_difference_are_told_apart() -> None:
    rng = np.random.default_rng(8)
    _, pilot = table(rng, np.full(N_MODELS, 0.7))
    qualities = 0.85 - present(pilot.detectable) * np.arange(N_MODELS)
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


def bounds(value: float, n: int, n_excluded: int, **fields: Any) -> Bounds | None:
    """Bounds of a value from 0 to 1."""
    asked = {"missing_share": fields.pop("missing_share", 0.0)}
    made = examples.result().metrics[0]
    told = {"n": n, "n_excluded": n_excluded, "ideal": 1.0, "minimum": 0.0, "maximum": 1.0}
    return bounds_of(replace(made, value=value, reason=None, **(told | fields)), **asked)


def test_bounds_are_those_of_a_mean_whose_missing_units_are_known() -> None:
    values = np.random.default_rng(3).random(50)
    known = float(values[:40].mean())
    ends = [np.r_[values[:40], np.full(10, end)].mean() for end in (0, 1)]
    assert bounds(known, 40, 10) == pytest.approx(ends)
    assert bounds(0.1, 30, 10, ideal=0.0, minimum=-1.0) == pytest.approx((0.75 * 0.1 + 0.25, 0.0))
    assert bounds(0.5, 10, 1, ideal=None) is None
    # Half of the answers to each of the units that count are missing too.
    assert bounds(0.8, 30, 10, missing_share=0.5) == pytest.approx((0.375 * 0.8, 0.375 * 0.8 + 0.625))
