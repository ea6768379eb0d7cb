"""UCerF and its companions under each estimator of uncertainty, and how alike two estimators order the items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.metric import MetricDefinition, mean_metric
from evaluators.statistics.cluster_sums import ratio, sum_by_cluster
from evaluators.statistics.record_tables import Statistics
from evaluators.tasks.coreference.coreference_metrics import group_metric, occupation_statistics
from evaluators.tasks.coreference.coreference_table import CoreferenceTable
from evaluators.tasks.coreference.ucerf_metrics import pair_statistics
from evaluators.tasks.coreference.uncertainty_estimators import ESTIMATORS, Estimator


def _metrics_of(estimator: Estimator) -> Iterator[MetricDefinition[CoreferenceTable]]:
    def of_pairs(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
        return pair_statistics(table, group, estimator.desirability(table))

    def of_occupations(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
        desirability = estimator.desirability(table)
        return occupation_statistics(table, group, desirability, -desirability)

    def of_ranks(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
        return _rank_statistics(table, estimator.certainty(table))

    yield MetricDefinition(
        name=f"ucerf_{estimator.name}",
        task="coreference",
        unit="pairs",
        ideal=1.0,
        undefined=estimator.undefined,
        statistics=of_pairs,
        description=f"UCerF with certainty from {estimator.meaning}.",
    )
    yield group_metric(
        f"ucerf_group_{estimator.name}",
        estimator.undefined,
        of_occupations,
        f"U_group with certainty from {estimator.meaning}.",
    )
    yield mean_metric(
        f"certainty_{estimator.name}",
        estimator.certainty,
        task="coreference",
        undefined=estimator.undefined,
        description=f"Mean certainty from {estimator.meaning}.",
    )
    yield MetricDefinition(
        name=f"certainty_correlation_{estimator.name}",
        task="coreference",
        minimum=-1.0,
        undefined=estimator.undefined,
        statistics=of_ranks,
        aggregate=lambda sums: ratio(sums[..., 1], np.sqrt(sums[..., 2] * sums[..., 3])),
        why_nan=lambda sums: "all items are equally certain under one estimator" if sums[0] else None,
        no_interval="ranks of items move with every item, which sums over clusters cannot follow",
        description="Spearman's rank correlation over items between the certainty of the reading and that from "
        f"{estimator.meaning}.",
    )


def midranks(values: FloatArray) -> FloatArray:
    """Return the ranks of values from 1, shape (n,); equal ones share the mean of their ranks.

    >>> midranks(np.array([0.5, 0.1, 0.5]))
    array([2.5, 1. , 2.5])
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts - 1) / 2)[codes.reshape(-1)]
    return ranks


def _rank_statistics(table: CoreferenceTable, other: FloatArray) -> Statistics:
    used = table.measured & ~np.isnan(other)
    # Rounded, because the same votes added in another order may differ in the last bits.
    first, second = (midranks(values[used].round(9)) for values in (table.certainty, other))
    centre = (used.sum() + 1) / 2
    a, b = first - centre, second - centre
    products = np.stack([np.ones(len(a)), a * b, a * a, b * b], axis=1)
    columns = np.tile(np.arange(4), len(a))
    clusters = np.repeat(table.clusters[used], 4)
    sums = sum_by_cluster(clusters, columns, products.ravel(), n_clusters=table.n_clusters, n_columns=4)
    return Statistics(sums, len(a), int((~used).sum()))


def _parsed_share(table: CoreferenceTable) -> FloatArray:
    assert table.sampled is not None
    n_read = np.bincount(table.sampled.rows, minlength=len(table.clusters))
    share: FloatArray = n_read / np.maximum(table.sampled.n_asked, 1)
    return share


PARSED_ANSWER_RATE: MetricDefinition[CoreferenceTable] = mean_metric(
    "parsed_answer_rate",
    _parsed_share,
    where=lambda table: table.scored,
    task="coreference",
    ideal=1.0,
    undefined=lambda table: "the prompt samples one answer" if table.sampled is None else None,
    description="Mean share of the sampled answers to an item that could be read, over the items with a reading.",
)

OF_ESTIMATORS = tuple(definition for estimator in ESTIMATORS for definition in _metrics_of(estimator))
