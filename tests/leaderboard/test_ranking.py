"""Rank ranges from hand-made resamples."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.ranking.rank_ranges import Candidate, RankRange, holm, rank

N_RESAMPLES = 400
SHARED_NOISE = np.random.default_rng(0).normal(0, 0.02, N_RESAMPLES)


def candidate(name: str, value: float, *, own_noise: float = 0.001, n_clusters: int | None = 100) -> Candidate:
    rng = np.random.default_rng(sum(map(ord, name)))
    resamples = value + SHARED_NOISE + rng.normal(0, own_noise, N_RESAMPLES)
    return Candidate(name=name, value=value, resamples=resamples, n_clusters=n_clusters)


def test_models_far_apart_have_one_rank_each() -> None:
    ranking = rank([candidate("b", 0.8), candidate("a", 0.9), candidate("c", 0.7)], ideal=1.0)
    assert ranking.ranges == {"a": RankRange(1, 1, 3), "b": RankRange(2, 2, 3), "c": RankRange(3, 3, 3)}
    assert [str(ranking.ranges[name]) for name in "abc"] == ["1", "2", "3"]


def test_noise_that_is_shared_does_not_hide_a_difference() -> None:
    # The noise of each alone is twice their difference; paired, it cancels.
    ranking = rank([candidate("a", 0.81), candidate("b", 0.80)], ideal=1.0)
    assert ranking.ranges["a"] == RankRange(1, 1, 2)
    unpaired = Candidate(name="b", value=0.80, resamples=0.80 - SHARED_NOISE, n_clusters=100)
    assert rank([candidate("a", 0.81), unpaired], ideal=1.0).ranges["a"] == RankRange(1, 2, 2)


def test_models_that_cannot_be_separated_share_a_range() -> None:
    noisy = [candidate(name, value, own_noise=0.05) for name, value in (("a", 0.80), ("b", 0.81), ("c", 0.30))]
    ranking = rank(noisy, ideal=1.0)
    assert ranking.ranges == {"a": RankRange(1, 2, 3), "b": RankRange(1, 2, 3), "c": RankRange(3, 3, 3)}
    assert str(ranking.ranges["a"]) == "1\N{EN DASH}2"


def test_being_told_apart_is_not_transitive() -> None:
    chain = [candidate(name, value, own_noise=0.02) for name, value in (("a", 0.86), ("b", 0.80), ("c", 0.74))]
    separable = {(pair.first, pair.second): pair.separable for pair in rank(chain, ideal=1.0).comparisons}
    assert separable == {("a", "b"): False, ("a", "c"): True, ("b", "c"): False}
    assert rank(chain, ideal=1.0).ranges["b"] == RankRange(1, 3, 3)


def test_distance_counts_on_both_sides_of_an_ideal_in_the_middle() -> None:
    ranking = rank([candidate("above", 0.70), candidate("below", 0.45), candidate("far", 0.1)], ideal=0.5)
    assert [ranking.ranges[name].best for name in ("below", "above", "far")] == [1, 2, 3]


def test_a_single_model_is_first_of_one() -> None:
    ranking = rank([candidate("only", 0.5)], ideal=1.0)
    assert ranking.ranges == {"only": RankRange(1, 1, 1)}
    assert ranking.comparisons == ()


def test_equal_models_are_not_separable_without_any_noise() -> None:
    same = [Candidate(name=name, value=1.0, resamples=np.ones(N_RESAMPLES), n_clusters=100) for name in "ab"]
    assert rank(same, ideal=1.0).ranges["a"] == RankRange(1, 2, 2)
    lower = Candidate(name="b", value=0.5, resamples=np.full(N_RESAMPLES, 0.5), n_clusters=100)
    assert rank([same[0], lower], ideal=1.0).ranges["a"] == RankRange(1, 1, 2)


def test_without_an_interval_nothing_is_claimed() -> None:
    ranking = rank([candidate("a", 0.9, n_clusters=None), candidate("b", 0.1)], ideal=1.0)
    assert ranking.ranges["a"] == RankRange(1, 2, 2)
    assert (ranking.comparisons[0].low, ranking.comparisons[0].p_adjusted) == (None, None)


def test_resamples_without_a_value_are_left_out() -> None:
    holed = candidate("a", 0.9)
    holed.resamples[::2] = np.nan
    assert rank([holed, candidate("b", 0.8)], ideal=1.0).ranges["a"] == RankRange(1, 1, 2)


def test_the_interval_is_the_difference_with_its_standard_error() -> None:
    first, second = candidate("a", 0.9, own_noise=0.01), candidate("b", 0.8, own_noise=0.01)
    comparison = rank([first, second], ideal=1.0).comparisons[0]
    differences = [(1 - a) - (1 - b) for a, b in zip(first.resamples, second.resamples, strict=True)]
    mean = sum(differences) / len(differences)
    error = math.sqrt(sum((value - mean) ** 2 for value in differences) / (len(differences) - 1))
    # 1.98422 is the 97.5 % quantile of Student's t with 99 degrees of freedom.
    assert comparison.difference == pytest.approx(-0.1)
    assert comparison.low == pytest.approx(-0.1 - 1.98422 * error, abs=1e-6)
    assert comparison.high == pytest.approx(-0.1 + 1.98422 * error, abs=1e-6)


def test_holm_agrees_with_the_definition() -> None:
    p_values = [0.01, 0.20, 0.012, 0.04, 0.5]
    expected = []
    for p_value in p_values:
        smaller = sorted(other for other in p_values if other <= p_value)
        expected.append(max(min(1.0, (len(p_values) - step) * other) for step, other in enumerate(smaller)))
    assert holm(p_values) == pytest.approx(expected)
    assert holm([0.02, None, 0.03]) == [pytest.approx(0.06), None, pytest.approx(0.06)]


def test_many_comparisons_need_more_than_few() -> None:
    pair = [candidate("a", 0.83, own_noise=0.01), candidate("b", 0.80, own_noise=0.01)]
    others = [candidate(f"z{number}", 0.80, own_noise=0.3) for number in range(12)]
    assert rank(pair, ideal=1.0).comparisons[0].separable
    adjusted = {(c.first, c.second): c.p_adjusted or 0.0 for c in rank([*pair, *others], ideal=1.0).comparisons}
    assert adjusted["a", "b"] > (rank(pair, ideal=1.0).comparisons[0].p_adjusted or 1.0)


@given(
    values=st.lists(st.floats(0, 1), min_size=2, max_size=7),
    noise=st.sampled_from([0.0, 0.01, 0.1]),
    seed=st.integers(0, 1000),
)
def test_the_order_of_models_changes_nothing(values: list[float], noise: float, seed: int) -> None:
    models = [candidate(f"m{index}", value, own_noise=noise) for index, value in enumerate(values)]
    shuffled = random.Random(seed).sample(models, len(models))
    ranking = rank(models, ideal=1.0)
    assert rank(shuffled, ideal=1.0) == ranking
    for name, found in ranking.ranges.items():
        assert 1 <= found.best <= found.worst <= len(models), name


@given(values=st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_a_nearer_model_never_has_the_worse_range(values: list[float]) -> None:
    models = [candidate(f"m{index}", value, own_noise=0.0) for index, value in enumerate(values)]
    ranges = rank(models, ideal=1.0).ranges
    for first in models:
        for second in models:
            if first.value > second.value:
                assert ranges[first.name].best <= ranges[second.name].best
