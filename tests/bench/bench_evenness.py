"""Whether measures of evenness call even models even at every accuracy: simulated models with known evenness.

GDR and PE are drawn as right answers of eleven families to 44, 200 and 480 texts, where texts are equally hard or not;
RSD, COBias and the Gini index as right answers to 10 to 100 items of 2 to 10 classes, and to suites of 20 such tasks.
Each corrected measure stands beside the paper's formula. ``make bench ARGS='-k evenness'`` takes some minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.statistics.evenness import N_FOLDS
from evaluators.tasks.labels.label_measures import MEASURES, FoldSums, class_columns, fold_columns, value_of
from evaluators.tasks.pronouns.family_rates import FAMILIES, evenness, uniformity

Aggregate = Callable[[FloatArray], FloatArray]
N_DRAWN = 1000
ACCURACIES = (0.3, 0.4, 0.6, 0.8, 0.9, 0.95)
SPREADS = (0.0, 0.05, 0.1, 0.2)
UNLIKE = ((0.3, 0.95), (0.4, 0.9), (0.6, 0.6))
"""Accuracies of two even models that are compared."""
CLASSES = (
    *([10] * 2, [30] * 2, [100] * 2, [10] * 4, [10, 20, 50, 100], [100] * 4),
    *([10] * 10, [*range(10, 101, 10)], [100] * 10),
)
"""Numbers of items per class."""
OF_LABELS = ("rsd_paper", "rsd", "cobias_paper", "cobias", "gini", "squared_cv")
RNG = np.random.default_rng(28)


class Drawn(NamedTuple):
    """Estimates of simulated models of one kind."""

    truth: float
    values: FloatArray
    """Shape (n,)."""
    errors: FloatArray
    """Standard errors by the jackknife, of the same shape; nan where undefined."""
    n_clusters: int

    @property
    def bias(self) -> float:
        return float(np.nanmean(self.values) - self.truth)

    @property
    def shown_bias(self) -> float:
        """Bias of the value that a result shows, which ends at the ideal."""
        ends = (0.0, 1.0) if self.truth == 1 else (0.0, None)
        return float(np.nanmean(self.values.clip(*ends)) - self.truth)

    @property
    def coverage(self) -> float:
        """Share of the models whose interval of 95 % contains the truth."""
        return float(np.mean(np.abs(self.values - self.truth) <= self.errors * self.quantile))

    @property
    def quantile(self) -> float:
        return float(student.ppf(0.975, self.n_clusters - 1))


def spread_out(accuracy: float, spread: float, n: int, ddof: int) -> FloatArray | None:
    """Accuracies of n groups with this mean and standard deviation; None if one leaves [.01, .99]."""
    places = np.arange(n) - (n - 1) / 2
    accuracies: FloatArray = accuracy + spread * places / places.std(ddof=ddof)
    return accuracies if accuracies.min() >= 0.01 and accuracies.max() <= 0.99 else None


def estimated(truth: float, rows: FloatArray, counts: FloatArray, aggregate: Aggregate) -> Drawn:
    """Estimate from clusters of which ``counts``, shape (n, n_rows), have the sums ``rows``, shape (..., n_rows, c)."""
    n_clusters = int(counts[0].sum())
    totals = (counts[..., None, :] @ rows)[..., 0, :]
    without = np.concatenate([aggregate(part) for part in np.array_split(totals[:, None] - rows, 20)])
    without = np.where(counts > 0, without, 0.0)
    average = (counts * without).sum(axis=1, keepdims=True) / n_clusters
    squared = (counts * (without - average) ** 2).sum(axis=1) * (n_clusters - 1) / n_clusters
    return Drawn(truth, aggregate(totals), np.sqrt(squared), n_clusters)


def told_apart(first: Drawn, second: Drawn) -> float:
    """Return in how many cases the t test on two independent models finds a difference."""
    error = np.sqrt(first.errors**2 + second.errors**2)
    return float(np.mean(np.abs(first.values - second.values) > error * first.quantile))


def families(n_texts: int, difficulty: float, measure: str, accuracy: float, spread: float) -> Drawn | None:
    """Estimate GDR (or PE) of models; texts differ in difficulty, for all families alike."""
    ddof = 1 if measure.startswith("gdr") else 0
    p = spread_out(accuracy, spread, len(FAMILIES), ddof)
    if p is None:
        return None
    n = N_DRAWN * 44 // n_texts
    # A probit model whose mean over texts is the accuracy of the family.
    of_texts = ndtr(ndtri(p) * np.hypot(1, difficulty) + difficulty * RNG.standard_normal((n, n_texts, 1)))
    right = (RNG.random(of_texts.shape) < of_texts).astype(float)
    of_paper = measure.endswith("paper")
    folds = np.eye(1 if of_paper else N_FOLDS)[np.arange(n_texts) % (1 if of_paper else N_FOLDS)]
    rows = np.concatenate(
        [(folds[..., None] * cells[..., None, :]).reshape(n, n_texts, -1) for cells in (right, np.ones_like(right))], -1
    )
    truth = spread / accuracy
    return estimated(
        1 / (1 + truth) if of_paper else 1 / (1 + truth**2),
        rows,
        np.ones((n, n_texts)),
        partial(uniformity if of_paper else evenness, ddof=ddof),
    )


def classes(sizes: Sequence[int], measure: str, accuracy: float, spread: float, n: int = 4 * N_DRAWN) -> Drawn | None:
    """Estimate a measure of labels of models."""
    p = spread_out(accuracy, spread, len(sizes), 0)
    if p is None:
        return None
    k, aggregate = len(sizes), partial(value_of, measure)
    kinds = [(c, fold, right) for c in range(k) for fold in range(N_FOLDS) for right in (0, 1)]
    targets, folds, right = np.array(kinds).T
    # A wrong answer is the next label.
    rows = columns(measure, np.eye(k)[(targets + 1 - right) % k], targets, folds)
    n_in_fold = np.array([[(size + N_FOLDS - 1 - f) // N_FOLDS for f in range(N_FOLDS)] for size in sizes])
    n_right = RNG.binomial(n_in_fold[None], p[None, :, None], size=(n, k, N_FOLDS))
    counts = np.stack([n_in_fold - n_right, n_right], axis=-1).reshape(n, -1).astype(float)
    # So many items that chance gives nothing.
    many = np.stack([1 - p, p], axis=-1)[:, None] * n_in_fold[..., None] * 1e12
    truth = 0.0 if spread == 0 else float(aggregate(many.reshape(-1) @ rows))
    return estimated(truth, rows, counts, aggregate)


def columns(measure: str, shares: FloatArray, targets: IntArray, folds: IntArray) -> FloatArray:
    made = (
        fold_columns(shares, targets, folds) if MEASURES[measure].sums is FoldSums else class_columns(shares, targets)
    )
    return made.reshape(len(shares), -1)


def described(sizes: Sequence[int]) -> str:
    items = str(sizes[0]) if len(set(sizes)) == 1 else f"{min(sizes)} to {max(sizes)}"
    return f"{len(sizes)} classes of {items} items"


def print_line(measure: str, setting: str, draw: Callable[[float, float], Drawn | None]) -> None:
    """Print what a measure does in one setting.

    These are the largest bias of even models (in brackets, of values that end at the ideal) and of uneven ones; the
    smallest coverage of uneven ones with accuracies from .4 to .8; how often two even models are told apart; standard
    deviations; and how often an even model and one with a spread of .1, both with an accuracy of .6, are told apart.
    """
    drawn = {(a, s): made for a in ACCURACIES for s in SPREADS if (made := draw(a, s)) is not None}
    even = {accuracy: made for (accuracy, spread), made in drawn.items() if spread == 0}
    uneven = [made for (_, spread), made in drawn.items() if spread > 0]
    again = draw(0.6, 0.0)
    assert again is not None
    bias, shown, of_uneven = (
        max(biases, key=abs)
        for biases in (
            [made.bias for made in even.values()],
            [made.shown_bias for made in even.values()],
            [made.bias for made in uneven],
        )
    )
    coverage = min(made.coverage for (a, spread), made in drawn.items() if spread > 0 and 0.4 <= a <= 0.8)
    false = max(told_apart(even[a], again if a == b else even[b]) for a, b in UNLIKE)
    print(
        f"{measure:12} {setting:36} even {bias:+.3f} ({shown:+.3f})  uneven {of_uneven:+.3f}  covers {coverage:4.0%}  "
        f"false {false:5.1%}  sd {even[0.6].values.std():.3f} {drawn[0.6, 0.1].values.std():.3f}  "
        f"found {told_apart(even[0.6], drawn[0.6, 0.1]):4.0%}",
        flush=True,
    )


def suites(measure: str, n_tasks: int = 20, n: int = 500) -> tuple[float, float]:
    """Return the largest bias of a mean over tasks of even models, and how often two such models are told apart."""
    tasks = [RNG.integers(10, 101, size=RNG.integers(2, 11)).tolist() for _ in range(n_tasks)]
    biases, shares = [], []
    for pair in UNLIKE:
        values = []
        for accuracy in pair:
            drawn = [classes(sizes, measure, accuracy, 0.0, n) for sizes in tasks]
            values.append(np.array([made.values for made in drawn if made is not None]))
            biases.append(float(values[-1].mean()))
        differences = values[0] - values[1]
        error = differences.std(axis=0, ddof=1) / np.sqrt(n_tasks)
        shares.append(float(np.mean(np.abs(differences.mean(axis=0)) > student.ppf(0.975, n_tasks - 1) * error)))
    return max(biases, key=abs), max(shares)


def bench_evenness() -> None:
    """The corrected measures are within .02 of the truth, and tell two even models apart in at most 5 %."""
    print()
    for measure in ("gdr_paper", "gdr", "pe_paper", "pe"):
        for n_texts in (44, 200, 480):
            for difficulty in (0.0, 1.0):
                texts = f"{n_texts} texts, {'unlike' if difficulty else 'alike'}"
                print_line(measure, texts, partial(families, n_texts, difficulty, measure))
    for measure in OF_LABELS:
        for sizes in CLASSES:
            print_line(measure, described(sizes), partial(classes, sizes, measure))
    for measure in OF_LABELS:
        bias, share = suites(measure)
        print(f"{measure:12} {'mean over 20 tasks':36} even {bias:+.3f}  false {share:5.1%}", flush=True)
