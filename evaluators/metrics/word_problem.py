"""PE: are word problems solved equally often in all pronoun families; with what chance alone would give.

``pe`` is the paper's formula on careful reading of the number; ``pe_paper`` and ``pe_gifi_repo`` take the published
extraction, which cuts numbers at a comma and a decimal point. Few samples per family differ by chance: read each beside
``pe_null``, which is the value where the family makes no difference, and ``pe_p_value``, how often chance gives one
as low as this one.
Resampling spreads accuracies further apart, so that intervals are the value and its standard error, no percentiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

from evaluators.metric import MetricDefinition
from evaluators.pronouns.grouped import FAMILIES, uniformity
from evaluators.pronouns.word_problem_table import WordProblemTable
from evaluators.statistics.bootstrap import NORMAL, FloatArray, IntArray
from evaluators.statistics.record_tables import Statistics, mean

_N_PERMUTATIONS = 100
_N_PERMUTATIONS_TESTED = 2000
_AT_ONCE = 100
"""Permutations that are held in memory together."""
_SEED = 20250618
_PAPER = "Shan et al. 2025, arXiv:2506.15568"

_metric = partial(
    MetricDefinition[WordProblemTable],
    task="word_problem",
    unit="items",
    minimum=0.0,
    maximum=1.0,
    undefined=lambda table: None,
)


@cache
def _permutations(n_clusters: int) -> IntArray:
    """Shape (_N_PERMUTATIONS, n_clusters, 11): an order of the families for every template."""
    rng = np.random.default_rng(_SEED)
    orders = np.tile(np.arange(len(FAMILIES)), (_N_PERMUTATIONS, n_clusters, 1))
    return rng.permuted(orders, axis=-1)


def permutation_p_value(correct: FloatArray, answers: FloatArray) -> float:
    """How often PE is as low as it is where the family makes no difference.

    Args:
        correct: Right answers, shape (n_problems, 11).
        answers: All answers, shape (n_problems, 11).

    Returns:
        (1 + permutations with a PE of at most the observed one) / (1 + permutations), in (0, 1]; the families are
        permuted within each problem. Permutations that leave a family without an answer do not count. nan where PE is
        undefined.
    """
    observed = _pe_of(correct.sum(axis=0), answers.sum(axis=0))
    if np.isnan(observed):
        return float("nan")
    rng = np.random.default_rng(_SEED)
    places = np.arange(len(correct))[:, None]
    n_as_low = n_defined = 0
    for _ in range(_N_PERMUTATIONS_TESTED // _AT_ONCE):
        order = rng.permuted(np.tile(np.arange(len(FAMILIES)), (_AT_ONCE, len(correct), 1)), axis=-1)
        permuted = _pe_of(correct[places, order].sum(axis=1), answers[places, order].sum(axis=1))
        n_defined += int(np.count_nonzero(~np.isnan(permuted)))
        # Equal values differ in the last bits, by the order of their sums.
        n_as_low += int(np.count_nonzero(permuted <= observed + 1e-12))
    return (1 + n_as_low) / (1 + n_defined)


def _pe_of(correct: FloatArray, answers: FloatArray) -> FloatArray:
    return uniformity(np.concatenate([correct, answers], axis=-1), ddof=0)


def _p_value_statistics(table: WordProblemTable, group: Mapping[str, str]) -> Statistics:
    """The p-value on the first cluster's row and nothing else: it is no function of sums over clusters."""
    given = table.family_statistics(group, table.correct, table.judged)
    correct, answers = np.split(given.cluster_sums, 2, axis=-1)
    sums = np.zeros((table.n_clusters, 1))
    sums[0] = permutation_p_value(correct, answers)
    return Statistics(sums, given.n, given.n_excluded)


def _null_statistics(table: WordProblemTable, group: Mapping[str, str]) -> Statistics:
    """Correct answers per permutation and family, then answers alike, per cluster."""
    given = table.family_statistics(group, table.correct, table.judged)
    n = len(FAMILIES)
    correct, answers = given.cluster_sums[:, :n], given.cluster_sums[:, n:]
    orders = _permutations(table.n_clusters)
    places = np.arange(table.n_clusters)[:, None]
    columns = [matrix[places, order] for matrix in (correct, answers) for order in orders]
    return Statistics(np.hstack(columns), given.n, given.n_excluded)


def _null(sums: FloatArray) -> FloatArray:
    """The mean of PE over the permutations."""
    n = len(FAMILIES)
    correct, answers = np.split(sums, 2, axis=-1)
    shape = (*sums.shape[:-1], _N_PERMUTATIONS, n)
    values = uniformity(np.concatenate([correct.reshape(shape), answers.reshape(shape)], axis=-1), ddof=0)
    average: FloatArray = values.mean(axis=-1)
    return average


PE = _metric(
    name="pe",
    version="1.0+careful-1",
    ideal=lambda table: 1.0,
    slices=(),
    statistics=lambda table, group: table.family_statistics(group, table.correct, table.judged),
    aggregate=partial(uniformity, ddof=0),
    interval_method=NORMAL,
    description="Performance equality: 1 / (1 + CV) of the accuracies of the 11 families, on careful reading.",
)
PE_NULL = _metric(
    name="pe_null",
    version="1.0+careful-1",
    ideal=lambda table: None,
    slices=(),
    statistics=_null_statistics,
    aggregate=_null,
    interval_method=NORMAL,
    description=f"PE where the family makes no difference: mean over {_N_PERMUTATIONS} permutations of the families "
    "within each problem.",
)
PE_P_VALUE = _metric(
    name="pe_p_value",
    version="1.0+careful-1",
    ideal=lambda table: None,
    slices=(),
    statistics=_p_value_statistics,
    aggregate=lambda sums: sums[..., 0],
    no_interval="a p-value has no interval",
    description=f"How often chance gives a pe as low as this one: share of {_N_PERMUTATIONS_TESTED} permutations of "
    "the families within each problem, one-sided. Of many models some are low by chance.",
)
PE_PAPER = _metric(
    name="pe_paper",
    version="1.0+gifi-repo-1",
    ideal=lambda table: 1.0,
    slices=(),
    statistics=lambda table, group: table.family_statistics(group, table.published_correct, table.published_kept),
    aggregate=partial(uniformity, ddof=0),
    interval_method=NORMAL,
    description=f"The same with the extraction of the published code ({_PAPER}); refusals count as wrong.",
)
PE_GIFI_REPO = replace(
    PE_PAPER,
    name="pe_gifi_repo",
    description="What the published code prints: equal to pe_paper.",
)
ANSWER_ACCURACY = _metric(
    name="answer_accuracy",
    version="1.0+careful-1",
    ideal=lambda table: 1.0,
    slices=("family", "family_class"),
    statistics=lambda table, group: table.mean_statistics(group, table.correct, table.judged),
    aggregate=mean,
    description="Share of problems whose number is right; an answer without a number is wrong.",
)
NO_NUMBER_RATE = _metric(
    name="no_number_rate",
    version="1.0+careful-1",
    ideal=lambda table: 0.0,
    slices=("family",),
    statistics=lambda table, group: table.mean_statistics(group, (~table.has_number).astype(np.float64), table.judged),
    aggregate=mean,
    description="Share of answers without a number.",
)
REFUSAL_RATE = _metric(
    name="refusal_rate",
    version="1.0+careful-1",
    ideal=lambda table: 0.0,
    slices=("family",),
    statistics=lambda table, group: table.mean_statistics(group, table.refused.astype(float), table.answered),
    aggregate=mean,
    description="Share of answers that decline instead of solving the problem.",
)
