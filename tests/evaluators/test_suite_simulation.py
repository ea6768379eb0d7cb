"""Intervals and ranks of suites, on made-up tasks whose truth is known.

The tasks of a suite are a sample of those there are. Each has a difficulty of its own, each model is better at some of
them than at others, and each asks a limited number of items.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray
from evaluators.metric import MetricDefinition, TableSource
from evaluators.statistics.jackknife import Deviations
from evaluators.statistics.record_tables import MeasureTable, Statistics, mean
from leaderboard.ranking.rank_ranges import Contender, rank

N_SUITES = 1000


def _statistics(table: MeasureTable, group: Mapping[str, str]) -> Statistics:
    return table.mean_of("accuracy", group)


ACCURACY = MetricDefinition[MeasureTable](
    name="accuracy",
    version="1.0",
    task="made-up",
    unit="tasks",
    minimum=0.0,
    maximum=1.0,
    ideal=lambda table: 1.0,
    slices=("kind",),
    undefined=lambda table: None,
    statistics=_statistics,
    aggregate=mean,
    description="Mean accuracy over tasks.",
)


def true_accuracies(rng: np.random.Generator, n_tasks: int, n_models: int) -> FloatArray:
    """Accuracy of each model on each task, shape (n_models, n_tasks); over all tasks there are, models are equal."""
    difficulty = rng.beta(2.0, 1.2, n_tasks)
    own = rng.uniform(-0.15, 0.15, (n_models, n_tasks))
    # A difficulty near an end leaves as much room on both sides, so that the mean stays that of the difficulties.
    room = np.minimum(difficulty, 1 - difficulty)
    return difficulty + own / 0.15 * np.minimum(room, 0.15)


TRUTH = 2.0 / 3.2
"""Mean of the difficulties over all tasks there are."""


def measured(rng: np.random.Generator, accuracies: FloatArray, n_items: int) -> list[MeasureTable]:
    shares = rng.binomial(n_items, accuracies) / n_items
    kinds = np.array(["even", "odd"])[np.arange(accuracies.shape[1]) % 2]
    return [MeasureTable.of({"accuracy": of_model}, {"kind": kinds}) for of_model in shares]


@pytest.mark.slow
@pytest.mark.parametrize(("n_tasks", "n_items"), [(279, 100), (60, 20)])
def test_intervals_of_a_suite_cover_the_truth(n_tasks: int, n_items: int) -> None:
    rng = np.random.default_rng(20261122)
    n_covered = n_sliced = 0
    for _ in range(N_SUITES):
        (table,) = measured(rng, true_accuracies(rng, n_tasks, 1), n_items)
        for group in ({}, {"kind": "odd"}):
            interval = ACCURACY.compute(TableSource(table), group).interval
            assert interval is not None
            is_covered = interval.low <= TRUTH <= interval.high
            n_covered += is_covered and not group
            n_sliced += is_covered and bool(group)
    assert 0.93 <= n_covered / N_SUITES <= 0.97
    assert 0.93 <= n_sliced / N_SUITES <= 0.97


def separable_pairs(rng: np.random.Generator, n_tasks: int, n_models: int, lead: float = 0.0) -> list[bool]:
    """Tell which pairs of models are told apart, of which the first one is better by ``lead``."""
    accuracies = true_accuracies(rng, n_tasks, n_models)
    accuracies[0] = np.clip(accuracies[0] + lead, 0, 1)
    candidates = []
    for number, table in enumerate(measured(rng, accuracies, 100)):
        metric = ACCURACY.compute(TableSource(table), {})
        deviations = ACCURACY.deviations(TableSource(table), {})
        assert metric.value is not None
        assert isinstance(deviations, Deviations)
        candidates.append(
            Contender(
                name=f"model-{number}",
                worst=metric.value,
                best=metric.value,
                deviations=deviations,
            )
        )
    return [comparison.separable for comparison in rank(candidates, ideal=1.0).comparisons]


@pytest.mark.slow
@pytest.mark.parametrize("n_models", [2, 5])
def test_equal_models_are_seldom_told_apart(n_models: int) -> None:
    """In at most one suite of twenty, any two of all the models that are compared."""
    rng = np.random.default_rng(7)
    told_apart = [any(separable_pairs(rng, 279, n_models)) for _ in range(N_SUITES)]
    # A rate of 5 % is measured with an error of .7 points; that none was told apart would be as wrong.
    assert 0.02 <= np.mean(told_apart) <= 0.05 + 2 * 0.007


def test_a_part_without_a_value_is_left_out_and_counted() -> None:
    table = MeasureTable.of({"accuracy": np.array([0.5, np.nan, 1.0])})
    metric = ACCURACY.compute(TableSource(table), {})
    assert (metric.value, metric.n, metric.n_excluded) == (0.75, 2, 1)
    empty = MeasureTable.of({"accuracy": np.array([np.nan, np.nan])})
    assert ACCURACY.compute(TableSource(empty), {}).reason == "no tasks to compute it from"
