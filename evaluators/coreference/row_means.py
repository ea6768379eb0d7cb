"""Statistics of metrics that are means over rows, or differences of such means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from evaluators.coreference.table import CoreferenceTable
from evaluators.metric import Statistics
from evaluators.statistics.bootstrap import FloatArray, ratio, sum_by_cluster

NO_REFERENT = "the items have no right answer"


def needs_referent(table: CoreferenceTable) -> str | None:
    """The reason why a metric of correctness is undefined; None if it is defined."""
    return None if table.has_referent else NO_REFERENT


def mean(sums: FloatArray) -> FloatArray:
    """First column over the last: the mean of what was summed."""
    return ratio(sums[..., 0], sums[..., -1])


def difference_of_means(sums: FloatArray) -> FloatArray:
    """Mean of columns 0 / 1 minus mean of columns 2 / 3."""
    return ratio(sums[..., 0], sums[..., 1]) - ratio(sums[..., 2], sums[..., 3])


def row_mean_statistics(
    table: CoreferenceTable, group: Mapping[str, str], values: FloatArray, measured: npt.NDArray[np.bool_]
) -> Statistics:
    """Statistics of the mean of a value per row over a slice."""
    rows = table.rows(group)
    used = rows & measured
    clusters = table.clusters[used]
    shape = {"n_clusters": table.n_clusters, "n_columns": 2}
    sums = sum_by_cluster(clusters, 0, values[used], **shape) + sum_by_cluster(clusters, 1, 1.0, **shape)
    return Statistics(sums, int(used.sum()), int(rows.sum() - used.sum()))


def contrast_statistics(table: CoreferenceTable, values: FloatArray, measured: npt.NDArray[np.bool_]) -> Statistics:
    """Statistics of the mean on pro-stereotypical minus the mean on anti-stereotypical items."""
    pro = row_mean_statistics(table, {"stereotype": "pro"}, values, measured)
    anti = row_mean_statistics(table, {"stereotype": "anti"}, values, measured)
    sums = np.hstack([pro.cluster_sums, anti.cluster_sums])
    return Statistics(sums, pro.n + anti.n, pro.n_excluded + anti.n_excluded)
