"""What metrics of correctness share: when they are undefined, and gaps between pro- and anti-stereotypical items."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from evaluators.metric import MetricDefinition
from evaluators.statistics.record_tables import Statistics, mean
from evaluators.tasks.coreference.table import CoreferenceTable

NO_REFERENT = "the items have no right answer"


def needs_referent(table: CoreferenceTable) -> str | None:
    """Return the reason why a metric of correctness is undefined; None if it is defined."""
    return None if table.has_referent else NO_REFERENT


def needs_right_answers(table: CoreferenceTable) -> str | None:
    """Return the reason why correctness cannot be compared between slices; None if it can.

    If no answer is right, all slices are equal, but only because nothing is achieved in any of them.
    """
    n_scored = int(table.scored.sum())
    if (reason := needs_referent(table)) is not None or n_scored == 0 or table.share[:, 0].any():
        return reason
    return f"none of {n_scored} answers is right, so there is nothing to compare"


def stereotype_gap(
    name: str,
    values: Callable[[CoreferenceTable], FloatArray],
    *,
    where: Callable[[CoreferenceTable], BoolArray],
    undefined: Callable[[CoreferenceTable], str | None],
    description: str,
    version: str = "1.0",
) -> MetricDefinition[CoreferenceTable]:
    """Define the mean of a value on pro-stereotypical items minus that on anti-stereotypical items.

    Args:
        name: Name of the metric.
        values: Function that returns the value of each row, shape (n,), in [0, 1] or in [-1/2, 1/2].
        where: Function that returns the mask of the rows that have a value, shape (n,).
        undefined: Function that returns why the metric has no value on a table; None if it has one.
        description: What it is, in a sentence.
        version: Version of the metric.
    """

    def statistics(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
        of_rows, used = values(table), where(table)
        pro, anti = (table.mean_statistics({"stereotype": side}, of_rows, used) for side in ("pro", "anti"))
        sums = np.hstack([pro.cluster_sums, anti.cluster_sums])
        return Statistics(sums, pro.n + anti.n, pro.n_excluded + anti.n_excluded)

    return MetricDefinition(
        name=name,
        version=version,
        task="coreference",
        minimum=-1.0,
        ideal=0.0,
        undefined=undefined,
        statistics=statistics,
        aggregate=lambda sums: mean(sums[..., :2]) - mean(sums[..., 2:]),
        description=description,
    )
