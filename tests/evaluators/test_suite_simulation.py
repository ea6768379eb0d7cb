"""Intervals and ranks of suites, on made-up tasks whose truth is known.

The tasks of a suite are a sample of those there are. Each has a difficulty of its own, each model is better at some of
them than at others, and each asks a limited number of items.
"""

from __future__ import annotations

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray
from evaluators.metric import MetricDefinition, TableSource, mean_metric
from evaluators.statistics.jackknife import Deviations
from evaluators.statistics.record_tables import MeasureTable
from leaderboard.ranking.rank_ranges import Contender, rank

N_SUITES = 1000


ACCURACY: MetricDefinition[MeasureTable] = mean_metric(
    "accuracy",
    lambda table: table.values["accuracy"],
    task="made-up",
    ideal=1.0,
    slices=("kind",),
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
def test_intervals_of_a_suite_cover_the_truth() -> None:
    rng = np.random.default_rng(20261122)
    n_covered = n_sliced = 0
    for _ in range(N_SUITES):
        (table,) = measured(rng, true_accuracies(rng, 60, 1), 20)
        for group in ({}, {"kind": "odd"}):
            interval = ACCURACY.compute(TableSource(table), group).interval
            assert interval is not None
            is_covered = interval.low <= TRUTH <= interval.high
            n_covered += is_covered and not group
            n_sliced += is_covered and bool(group)
    assert 0.93 <= n_covered / N_SUITES <= 0.97
    assert 0.93 <= n_sliced / N_SUITES <= 0.97


def separable_pairs(rng: np.random.Generator) -> list[bool]:
    """Tell which pairs of three models are told apart that are equal over all tasks there are."""
    candidates = []
    for number, table in enumerate(measured(rng, true_accuracies(rng, 60, 3), 100)):
        deviations = ACCURACY.deviations(TableSource(table), {})
        assert isinstance(deviations, Deviations)
        value = float(table.values["accuracy"].mean())
        made = Contender(name=f"model-{number}", worst=value, best=value, value=value, deviations=deviations)
        candidates.append(made)
    return [comparison.separable for comparison in rank(candidates, ideal=1.0).comparisons]


@pytest.mark.slow
def test_equal_models_are_seldom_told_apart() -> None:
    """In at most one suite of twenty, any two of all the models that are compared."""
    rng = np.random.default_rng(7)
    told_apart = [any(separable_pairs(rng)) for _ in range(400)]
    # A rate of 5 % is measured with an error of 1.1 points; that none was told apart would be as wrong.
    assert 0.02 <= np.mean(told_apart) <= 0.05 + 2 * 0.011
