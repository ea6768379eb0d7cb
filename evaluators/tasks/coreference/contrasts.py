"""Computes statistics that metrics of correctness share: differences between means of two slices."""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from evaluators.statistics.bootstrap import ratio
from evaluators.statistics.record_tables import Statistics
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


def difference_of_means(sums: FloatArray) -> FloatArray:
    """Return the difference of two means: column 0 / column 1 minus column 2 / column 3."""
    return ratio(sums[..., 0], sums[..., 1]) - ratio(sums[..., 2], sums[..., 3])


def contrast_statistics(table: CoreferenceTable, values: FloatArray, measured: BoolArray) -> Statistics:
    """Return the statistics of a mean on pro-stereotypical items minus that on anti-stereotypical items.

    Args:
        table: The records as arrays.
        values: Value of each row, shape (n,).
        measured: Mask of the rows that have a value, shape (n,).
    """
    pro = table.mean_statistics({"stereotype": "pro"}, values, measured)
    anti = table.mean_statistics({"stereotype": "anti"}, values, measured)
    sums = np.hstack([pro.cluster_sums, anti.cluster_sums])
    return Statistics(sums, pro.n + anti.n, pro.n_excluded + anti.n_excluded)
