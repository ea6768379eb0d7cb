"""Whether intervals of indices cover: simulated models whose index is known, ``make bench ARGS='-k index_intervals'``.

The index of pronoun families is a mean of seven measures of four configs. GDR and PE are drawn as right answers of
eleven families to texts, of which some are harder than others for all families; three measures share their texts; two
are shares of two further configs. Sentences of recognition are clusters, or come in twelve patterns of unequal size,
as the published ones do. The mean over a suite has one value for each task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

from biasboard.ground.columns import FloatArray
from evaluators.statistics.evenness import N_FOLDS
from evaluators.statistics.jackknife import STUDENT, joined, one_value_each
from evaluators.tasks.pronouns.family_rates import FAMILIES, evenness
from tests.bench.bench_evenness import spread_out
from tests.bench.simulated import Estimate

N_DRAWN = 2000
RNG = np.random.default_rng(28)
ACCURACY, SPREADS, DIFFICULTY = 0.6, (0.1, 0.05), 0.5
LEVEL, SHARE = 0.7, 0.4
"""Expected values of the measures that share their texts, and of the two shares."""
PATTERNS = (28, 25, 24, 20, 18, 16, 16, 14, 13, 12, 10, 4)
CONFIGS = {
    "44 texts in each config": ([1] * 44, 44, 44, 44),
    "12 patterns, 100 problems, 200 beginnings, 200 prompts": (PATTERNS, 100, 200, 200),
}
"""Sizes of the clusters of recognition, and numbers of texts of the other three configs."""


def of_mean(values: FloatArray) -> Estimate:
    return Estimate.of(one_value_each(values))


def of_families(sizes: Sequence[int], spread: float) -> Estimate:
    """Draw right answers of all families, and estimate their evenness."""
    accuracies = spread_out(ACCURACY, spread, len(FAMILIES), 1)
    assert accuracies is not None
    n_texts = np.array(sizes)[:, None]
    # A probit model whose mean over clusters is the accuracy of the family.
    effects = DIFFICULTY * RNG.standard_normal((len(sizes), 1))
    right = RNG.binomial(n_texts, ndtr(ndtri(accuracies) * np.hypot(1, DIFFICULTY) + effects)).astype(float)
    folds = np.eye(N_FOLDS)[np.arange(len(sizes)) % N_FOLDS]
    columns = [folds[..., None] * cells[:, None] for cells in (right, n_texts * np.ones_like(right))]
    sums = np.concatenate([column.reshape(len(sizes), -1) for column in columns], axis=1)
    return Estimate.of(sums, partial(evenness, ddof=1))


def index_covers(recognition: Sequence[int], n_problems: int, n_beginnings: int, n_prompts: int) -> bool:
    """Draw one model, and return whether the interval of its index contains the truth."""
    measured = [
        of_families(sizes, spread) for sizes, spread in zip((recognition, [1] * n_problems), SPREADS, strict=True)
    ]
    of_texts = RNG.standard_normal((1, n_beginnings)) + RNG.standard_normal((3, n_beginnings))
    levels = LEVEL + 0.14 * of_texts
    shares = (RNG.random((2, n_prompts)) < SHARE).astype(float)
    # Measures of one config share its texts, so that their deviations are added cluster by cluster.
    parts = [*measured, of_mean(levels.sum(axis=0)), *map(of_mean, shares)]
    truth = sum(1 / (1 + (spread / ACCURACY) ** 2) for spread in SPREADS) + 3 * LEVEL + 2 * SHARE
    deviations = joined([part.deviations * (1 / 7) for part in parts])
    return Estimate(sum(part.value for part in parts) / 7, deviations).covers(truth / 7, method=STUDENT)


def suite_covers(n_tasks: int) -> bool:
    values = np.clip(0.6 + 0.15 * RNG.standard_normal(n_tasks), 0, 1)
    return of_mean(values).covers(0.6, method=STUDENT)


def bench_index_intervals() -> None:
    """Print the share of intervals of 95 % that contain the truth."""
    print()
    for name, sizes in CONFIGS.items():
        share = np.mean([index_covers(*sizes) for _ in range(N_DRAWN)])
        assert share >= 0.93
        print(f"index, {name}: {share:.3f}", flush=True)
    for n_tasks in (10, 20, 279):
        share = np.mean([suite_covers(n_tasks) for _ in range(2 * N_DRAWN)])
        assert share >= 0.93
        print(f"mean over {n_tasks} tasks: {share:.3f}", flush=True)
