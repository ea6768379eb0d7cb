"""Whether intervals cover, equal models stay together and copies change no rank: simulated models of known quality.

Each model answers minimal pairs in cells of an occupation pair and a frame. Pairs and frames have effects on all of its
answers of a cluster, of its own and shared with other models. ``make bench ARGS='-k bench_ranks'`` takes some minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.jackknife import STUDENT, WILSON, Crossing, one_value_each, ratio
from leaderboard.ranking.rank_ranges import Ranking
from tests.bench.simulated import Estimate, ranked

N_DRAWN = 400
PER_CELL = 2
EFFECT = 0.7
"""Standard deviation of an effect, in logits."""
QUALITIES = ((1.0, 1.0), (1.5, 0.5), (3.5, 3.0))
"""Logits of a right answer on pro- and on anti-stereotypical items."""
DESIGNS = ((395, 120, 4), (40, 20, 10))
"""Number of occupation pairs, of frames, and of frames for each pair."""
EFFECTS = {"both": (EFFECT, EFFECT), "pairs": (EFFECT, 0.0), "frames": (0.0, EFFECT), "none": (0.0, 0.0)}


class Measured(NamedTuple):
    aggregate: Callable[[FloatArray], FloatArray]
    minimum: float = 0.0
    method: str = WILSON


def _gap(sums: FloatArray) -> FloatArray:
    return ratio(sums[..., 0], sums[..., 1]) - ratio(sums[..., 2], sums[..., 3])


def _f1(sums: FloatArray) -> FloatArray:
    """Macro-F1 of two classes, the sides: what is wrong on one side is a false positive of the other."""
    right, n = sums[..., [0, 2]], sums[..., [1, 3]]
    false_positives = (n - right)[..., ::-1]
    f1: FloatArray = ratio(2 * right, right + n + false_positives).mean(axis=-1)
    return f1


METRICS: Mapping[str, Measured] = {
    "accuracy": Measured(lambda sums: ratio(sums[..., 0] + sums[..., 2], sums[..., 1] + sums[..., 3])),
    "worst-group accuracy": Measured(lambda sums: ratio(sums[..., [0, 2]], sums[..., [1, 3]]).min(axis=-1)),
    "UCerF": Measured(lambda sums: ratio(sums[..., 4], sums[..., 1])),
    "accuracy gap": Measured(_gap, minimum=-1.0),
    "macro-F1": Measured(_f1),
    "1 - gap": Measured(lambda sums: 1 - np.abs(_gap(sums)), method=STUDENT),
}


class Design(NamedTuple):
    """Cells of occupation pairs and frames."""

    pairs: IntArray
    frames: IntArray
    crossing: Crossing

    @classmethod
    def of(cls, n_pairs: int, n_frames: int, per_pair: int, rng: np.random.Generator) -> Design:
        # Each frame comes up about as often as any other, and never twice with one pair.
        turns = [rng.permutation(n_frames) for _ in range(-(-n_pairs * per_pair // n_frames) + 1)]
        pairs = np.repeat(np.arange(n_pairs), per_pair)
        frames = np.concatenate(turns)[: len(pairs)]
        keys = np.unique(pairs * n_frames + frames)
        pairs, frames = np.divmod(keys, n_frames)
        _, crossing = Crossing.of(pairs, frames)
        assert crossing is not None
        return cls(pairs, frames, crossing)


def _effects(rng: np.random.Generator, n: int, size: float, shared: FloatArray | None = None) -> FloatArray:
    """Effects on both sides, shape (2, n), correlated by one half, and by one half with those of other models."""
    own = rng.normal(size=(3, n))
    effects = (own[0] + own[1:]) / np.sqrt(2)
    scaled: FloatArray = size * (effects if shared is None else (effects + shared) / np.sqrt(2))
    return scaled


def _sums(logits: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Sums of the answers to cells: right and number on both sides, and UCerF; shape (n_cells, 5)."""
    latent = logits[..., None] + rng.logistic(size=(*logits.shape, PER_CELL))
    certain = np.tanh(latent / 2)
    right, n = (latent > 0).sum(axis=-1), np.full(logits.shape[1:], PER_CELL)
    similar = (1 - np.abs(certain[0] - certain[1]) / 2).sum(axis=-1)
    return np.column_stack([right[0], n, right[1], n, similar]).astype(np.float64)


def _answers(design: Design, quality: FloatArray, sizes: Sequence[float], rng: np.random.Generator) -> FloatArray:
    logits = np.array(quality)[:, None]
    for factor, size in zip((design.pairs, design.frames), sizes, strict=True):
        logits = logits + _effects(rng, int(factor.max()) + 1, size)[:, factor]
    return _sums(logits, rng)


def _truths(quality: Sequence[float], sizes: Sequence[float]) -> dict[str, float]:
    """Values on a population of two million cells, each with a pair and a frame of its own."""
    rng = np.random.default_rng(0)
    sums = np.zeros(5)
    for _ in range(20):
        logits = np.array(quality)[:, None] + sum(_effects(rng, 100_000, size) for size in sizes)
        sums += _sums(logits, rng).sum(axis=0)
    return {name: float(measured.aggregate(sums)) for name, measured in METRICS.items()}


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design[0]} x {design[1]}")
def bench_intervals_cover(design: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(28)
    worst: dict[str, list[float]] = {name: [] for name in METRICS}
    for named, sizes in EFFECTS.items():
        covered: dict[str, list[float]] = {name: [] for name in METRICS}
        for quality in QUALITIES:
            truths = _truths(quality, sizes)
            hits = dict.fromkeys(METRICS, 0)
            for _ in range(N_DRAWN):
                cells = Design.of(*design, rng)
                sums = _answers(cells, np.array(quality), sizes, rng)
                for name, measured in METRICS.items():
                    found = Estimate.of(sums, measured.aggregate, cells.crossing)
                    hits[name] += found.covers(truths[name], minimum=measured.minimum, method=measured.method)
            for name, n in hits.items():
                covered[name].append(n / N_DRAWN)
        print(f"\n{design[0]} x {design[1]}, effects of {named}: ", end="")
        print("; ".join(f"{name} {min(rates):.3f} to {max(rates):.3f}" for name, rates in covered.items()), end="")
        for name, rates in covered.items():
            worst[name] += rates
    # 400 draws know a coverage of .95 with a standard error of .011.
    assert all(min(rates) > 0.91 for rates in worst.values())


def _table(design: Design, qualities: Sequence[float], rng: np.random.Generator, copies: int = 0) -> Ranking:
    """Rank models by worst-group accuracy; ``copies`` of the first one have its answers but for one item."""
    shared = [rng.normal(size=(2, int(factor.max()) + 1)) for factor in (design.pairs, design.frames)]
    tables = []
    for quality in qualities:
        logits = np.full((2, len(design.pairs)), quality)
        for factor, of_all in zip((design.pairs, design.frames), shared, strict=True):
            logits += _effects(rng, int(factor.max()) + 1, EFFECT, of_all)[:, factor]
        tables.append(_sums(logits, rng))
    for number in range(copies):
        sybil = tables[0].copy()
        sybil[number, 0] = PER_CELL - sybil[number, 0]
        tables.append(sybil)
    aggregate = METRICS["worst-group accuracy"].aggregate
    return ranked([Estimate.of(sums, aggregate, design.crossing) for sums in tables])


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design[0]} x {design[1]}")
@pytest.mark.parametrize("n_models", [2, 6, 15])
def bench_equal_models_stay_together(design: tuple[int, int, int], n_models: int) -> None:
    rng = np.random.default_rng(29)
    false, detectable = 0, []
    for _ in range(N_DRAWN):
        ranking = _table(Design.of(*design, rng), [1.0] * n_models, rng)
        false += any(comparison.separable for comparison in ranking.comparisons)
        detectable.append(ranking.detectable or 0.0)
    print(
        f"\n{design[0]} x {design[1]}, {n_models} equal models: any difference in {false / N_DRAWN:.3f} of tables; "
        f"detectable {np.median(detectable):.3f}",
        end="",
    )
    # The largest number in 99.9 % of such simulations if the rate is 5 %.
    assert false / N_DRAWN <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / N_DRAWN)


def _scores(kind: str, n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Scores of k equal models on n items that are unlike for all of them, shape (n, k)."""
    if kind == "normal":
        return rng.normal(size=(n, 1)) + rng.normal(size=(n, k))
    if kind == "binary":
        return (rng.normal(size=(n, 1)) + 1.5 + rng.logistic(size=(n, k)) > 0).astype(np.float64)
    # A long tail above the mean; if the tails are opposite, that of every other model is below it.
    signs = np.where(np.arange(k) % 2, -1.0, 1.0) if kind == "opposite tails" else 1.0
    return rng.normal(size=(n, 1)) + (rng.exponential(size=(n, k)) - 1) * signs


@pytest.mark.parametrize("kind", ["normal", "binary", "tails", "opposite tails"])
@pytest.mark.parametrize("n_clusters", [6, 10, 15, 20, 40, 120])
@pytest.mark.parametrize("n_models", [2, 6, 15])
def bench_few_clusters(kind: str, n_clusters: int, n_models: int) -> None:
    rng, shift = np.random.default_rng(31), 4.5 / np.sqrt(n_clusters)
    false = found = 0
    for lead in (0.0, shift):
        for _ in range(N_DRAWN):
            scores = _scores(kind, n_clusters, n_models, rng)
            scores[:, 0] += lead
            ranking = ranked([Estimate.of(one_value_each(of_model)) for of_model in scores.T], ideal=100.0)
            separable = [one for one in ranking.comparisons if one.separable]
            false += bool(separable) and not lead
            found += any("0" in (one.first, one.second) for one in separable) and bool(lead)
    print(
        f"\n{n_clusters} clusters, {kind}, {n_models} equal models: any difference in {false / N_DRAWN:.3f} of tables; "
        f"a lead of {shift:.2f} is found in {found / N_DRAWN:.3f}",
        end="",
    )
    # Differences of opposite tails are skewed, which neither Student's t nor signs are made for.
    limit = 0.3 if kind == "opposite tails" else 0.05
    assert false / N_DRAWN <= limit + 3.1 * np.sqrt(0.05 * 0.95 / N_DRAWN)


def bench_copies_change_no_rank() -> None:
    rng = np.random.default_rng(30)
    state, ranges = rng.bit_generator.state, []
    for n_copies in (0, 10, 40):
        rng.bit_generator.state = state
        widths = []
        for _ in range(20):
            ranking = _table(Design.of(*DESIGNS[0], rng), [0.6, 1.0, 1.4, 1.5, 2.0], rng, n_copies)
            honest = ranking.ranges["3"]
            widths.append((honest.best, honest.worst))
        mean_range = np.mean(widths, axis=0)
        print(f"\n{n_copies} copies of the worst model: mean rank range of the second {mean_range.tolist()}", end="")
        ranges.append(mean_range)
    assert np.abs(np.array(ranges) - ranges[0]).max() <= 1
