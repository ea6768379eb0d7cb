"""Whether equal models stay together where clusters differ in size, better ones are found, and intervals cover.

One factor, two crossed factors and indices of several parts, with 2, 6 and 15 models. ``make bench ARGS='-k uneven'``
takes an hour on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.evenness import N_FOLDS, deal
from evaluators.statistics.jackknife import STUDENT, WILSON, Crossing, joined, sum_by_cluster
from evaluators.statistics.record_tables import mean
from evaluators.tasks.pronouns.family_rates import FAMILIES, evenness
from tests.bench.simulated import Estimate, ranked

N_DRAWN = 400
N_COVERED = 2000
# Texts of each pattern of sentences in gifi's recognition.
PATTERNS = (4, 12, 4, 28, 20, 24, 16, 8, 20, 28, 12, 24)


Draw = Callable[[np.random.Generator, FloatArray], list[Estimate]]
"""Function that draws the estimates of models, given how much better than the others each is."""


def noise(rng: np.random.Generator, shape: int | tuple[int, ...], skewed: bool = False) -> FloatArray:
    drawn: FloatArray = rng.exponential(size=shape) - 1 if skewed else rng.normal(size=shape)
    return drawn


def sizes_of(rng: np.random.Generator, n: int, spread: float) -> FloatArray:
    sizes = np.exp(rng.normal(0, spread, n))
    rounded: FloatArray = np.maximum(1, np.round(sizes / sizes.mean() * 20))
    return rounded


def one_factor(
    rng: np.random.Generator,
    leads: FloatArray,
    *,
    n: int,
    spread: float = 0.0,
    sizes: Sequence[int] = (),
    skewed: bool = False,
) -> list[Estimate]:
    counts = np.array(sizes, dtype=float) if sizes else sizes_of(rng, n, spread)
    shared = noise(rng, n)
    estimates = []
    for lead in leads:
        means = 0.6 + lead + 0.1 * (shared + noise(rng, n, skewed)) + 0.3 * rng.normal(size=n) / np.sqrt(counts)
        estimates.append(Estimate.of(np.column_stack([means * counts, counts])))
    return estimates


def crossed(
    rng: np.random.Generator, leads: FloatArray, *, shape: tuple[int, int], spread: float = 0.0, skewed: bool = False
) -> list[Estimate]:
    first, second, crossing = cells_of(rng, *shape)
    of_first, of_second = (np.exp(rng.normal(0, spread, n)) for n in shape)
    counts = of_first[first] * of_second[second]
    counts = np.maximum(1, np.round(4 * counts / counts.mean()))
    shared = [noise(rng, n, skewed) for n in shape]
    estimates = []
    for lead in leads:
        effects = [0.1 * (of_all + noise(rng, n, skewed)) for of_all, n in zip(shared, shape, strict=True)]
        means = (
            0.6 + lead + effects[0][first] + effects[1][second] + 0.3 * rng.normal(size=len(first)) / np.sqrt(counts)
        )
        estimates.append(Estimate.of(np.column_stack([means * counts, counts]), crossing=crossing))
    return estimates


def cells_of(rng: np.random.Generator, n_first: int, n_second: int) -> tuple[IntArray, IntArray, Crossing]:
    """Cells in which each cluster of the first factor meets a quarter of those of the second, all equally often."""
    per_first = n_second // 4
    turns = [rng.permutation(n_second) for _ in range(-(-n_first * per_first // n_second))]
    codes = np.repeat(np.arange(n_first), per_first) * n_second + np.concatenate(turns)[: n_first * per_first]
    first, second = np.divmod(np.unique(codes), n_second)
    _, crossing = Crossing.of(first, second)
    assert crossing is not None
    return first, second, crossing


def uniform_families(rng: np.random.Generator, leads: FloatArray, *, sizes: Sequence[int]) -> list[Estimate]:
    """Evenness of eleven families, each of which each text of each cluster is about; better models are more even."""
    counts = np.array(sizes)
    clusters = np.repeat(np.arange(len(counts)), counts)
    folds = deal(np.zeros(len(counts), dtype=np.int64))[clusters]
    n = len(FAMILIES)
    columns = folds[:, None] * n + np.arange(n)
    shared = rng.normal(size=(len(counts), n))
    places = (np.arange(n) - (n - 1) / 2) / np.arange(n).std()
    estimates = []
    for lead in leads:
        logits = (0.8 - lead) * rng.permutation(places) + 0.5 * (shared + rng.normal(size=shared.shape))
        right = rng.logistic(size=columns.shape) < logits[clusters]
        shape = {"n_clusters": len(counts), "n_columns": 2 * N_FOLDS * n}
        owners = np.repeat(clusters, n)
        sums = sum_by_cluster(owners, columns.ravel(), right.ravel().astype(float), **shape)
        sums += sum_by_cluster(owners, columns.ravel() + N_FOLDS * n, 1.0, **shape)
        estimates.append(Estimate.of(sums, partial(evenness, ddof=1), sizes=counts.astype(float)))
    return estimates


def index(
    rng: np.random.Generator, leads: FloatArray, *, parts: Sequence[Draw], opposite: float = 0.0
) -> list[Estimate]:
    """Means of parts; if ``opposite``, every other model is so much better in the first part, and worse in the last."""
    turns = opposite * (np.arange(len(leads)) % 2)
    moved = [leads + turns, *[leads] * (len(parts) - 2), leads - turns]
    of_parts = [part(rng, of_part) for part, of_part in zip(parts, moved, strict=True)]
    return [
        Estimate(
            float(np.mean([part.value for part in of_model])),
            joined([part.deviations * (1 / len(parts)) for part in of_model]),
        )
        for of_model in zip(*of_parts, strict=True)
    ]


GIFI: tuple[Draw, ...] = (
    partial(uniform_families, sizes=PATTERNS),
    *[partial(one_factor, n=200)] * 3,
    partial(one_factor, n=44),
    partial(one_factor, n=12, sizes=PATTERNS),
    partial(uniform_families, sizes=[1] * 120),
)


class Setting(NamedTuple):
    draw: Draw
    lead: float
    """A lead that is found about as often as not."""


SETTINGS = {
    **{
        f"{n} clusters, sizes {spread}{', tails' * skewed}": Setting(
            partial(one_factor, n=n, spread=spread, skewed=skewed), 0.63 / np.sqrt(n)
        )
        for n, spread, skewed in (
            *((8, 0.0, False), (8, 0.9, False), (12, 0.0, False), (12, 0.5, False), (12, 0.9, False), (12, 0.9, True)),
            *((30, 0.0, False), (30, 0.9, False), (30, 0.9, True), (120, 0.0, False), (120, 0.9, False)),
        )
    },
    "12 patterns of 4 to 28": Setting(partial(one_factor, n=12, sizes=PATTERNS), 0.18),
    "evenness, 12 patterns": Setting(partial(uniform_families, sizes=PATTERNS), 0.3),
    "evenness, 44 alike": Setting(partial(uniform_families, sizes=[4] * 44), 0.3),
    **{
        f"crossed {n}x{m}, sizes {spread}{', tails' * skewed}": Setting(
            partial(crossed, shape=(n, m), spread=spread, skewed=skewed), 0.13
        )
        for n, m, spread, skewed in (
            *((30, 12, 0.0, False), (30, 12, 0.9, False), (60, 30, 0.0, False)),
            *((60, 30, 0.9, False), (60, 30, 0.9, True)),
        )
    },
    "index of 12 uneven and 200": Setting(
        partial(index, parts=[partial(one_factor, n=12, spread=0.9), partial(one_factor, n=200)]), 0.12
    ),
    "index of 12 alike and 200": Setting(
        partial(index, parts=[partial(one_factor, n=12), partial(one_factor, n=200)]), 0.1
    ),
    "index of 200 and 200": Setting(partial(index, parts=[partial(one_factor, n=200)] * 2), 0.03),
    "the same, unlike parts": Setting(partial(index, parts=[partial(one_factor, n=200)] * 2, opposite=0.15), 0.03),
    "index of 12 uneven and 200, unlike": Setting(
        partial(index, parts=[partial(one_factor, n=12, spread=0.9), partial(one_factor, n=200)], opposite=0.15), 0.12
    ),
    "index of crossed and 44": Setting(
        partial(index, parts=[partial(crossed, shape=(60, 30), spread=0.9), partial(one_factor, n=44)]), 0.09
    ),
    "index of seven parts": Setting(partial(index, parts=GIFI), 0.04),
}


@pytest.mark.parametrize("n_models", [2, 6, 15])
@pytest.mark.parametrize("named", SETTINGS)
def bench_uneven_clusters(named: str, n_models: int) -> None:
    setting = SETTINGS[named]
    false = found = 0
    rng = np.random.default_rng(17)
    for _ in range(N_DRAWN):
        false += any(pair.separable for pair in ranked(setting.draw(rng, np.zeros(n_models))).comparisons)
    leads = np.zeros(n_models)
    leads[0] = setting.lead
    for _ in range(N_DRAWN // 2):
        comparisons = ranked(setting.draw(rng, leads)).comparisons
        found += any(pair.separable and "0" in (pair.first, pair.second) for pair in comparisons)
    print(f"\n{named} | {n_models} | {false / N_DRAWN:.3f} | {found / (N_DRAWN // 2):.3f}", end="")
    # Two standard errors above 6 %.
    assert false / N_DRAWN <= 0.06 + 2 * np.sqrt(0.06 * 0.94 / N_DRAWN)


# Of clusters of equal size, and of sizes whose logarithm has a standard deviation of .5 and .9.
COVERED = {"normal": 0.94, "tails": 0.92, "binary": 0.93, "binary, larger clusters harder": 0.88}
"""Smallest coverage of an interval by how the answers of clusters differ."""


@pytest.mark.parametrize("kind", COVERED)
def bench_intervals_cover_uneven(kind: str) -> None:
    rng = np.random.default_rng(18)
    method, low, high = (WILSON, 0.0, 1.0) if "binary" in kind else (STUDENT, -np.inf, None)
    for n in (6, 8, 12, 20, 30, 120):
        for spread in (0.0, 0.5, 0.9):
            truth = float(mean(_population(rng, spread, kind).sum(axis=0)))
            covered = 0
            for _ in range(N_COVERED):
                sums = _answers(rng, n, spread, kind)
                covered += Estimate.of(sums).covers(truth, minimum=low, maximum=high, method=method)
            print(f"\n{kind} | {n} | {spread} | {covered / N_COVERED:.3f}", end="")
            assert covered / N_COVERED >= COVERED[kind] - 3 * np.sqrt(0.06 * 0.94 / N_COVERED)


def _clusters(rng: np.random.Generator, n: int, spread: float, kind: str) -> tuple[FloatArray, FloatArray]:
    """Sizes of clusters, and their mean answers."""
    of_size, own = noise(rng, n), noise(rng, n, skewed=kind == "tails")
    if "binary" in kind:
        own = 1 / (1 + np.exp(-(1.7 + (0.7 * own - 0.7 * of_size if "harder" in kind else own))))
    else:
        own = 0.1 * own
    return np.exp(spread * of_size), own


def _population(rng: np.random.Generator, spread: float, kind: str) -> FloatArray:
    sizes, means = _clusters(rng, 1_000_000, spread, kind)
    return np.column_stack([means * sizes, sizes])


def _answers(rng: np.random.Generator, n: int, spread: float, kind: str) -> FloatArray:
    """Sum and number of the answers of each cluster, of 20 on average."""
    sizes, means = _clusters(rng, n, spread, kind)
    sizes = np.maximum(1, np.round(sizes / sizes.mean() * 20))
    if "binary" in kind:
        return np.column_stack([rng.binomial(sizes.astype(int), means), sizes]).astype(np.float64)
    return np.column_stack([sizes * means + 0.3 * np.sqrt(sizes) * rng.normal(size=n), sizes])
