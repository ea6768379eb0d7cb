"""Equalized odds over occupations, with hard predictions (EO) and with desirability (the group form of UCerF)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from evaluators.coreference.contrasts import needs_referent
from evaluators.coreference.table import CoreferenceTable
from evaluators.metric import MetricDefinition
from evaluators.statistics.bootstrap import NORMAL, FloatArray, ratio, sum_by_cluster
from evaluators.statistics.record_tables import Statistics

_CELLS = 8
"""Per occupation: (sum, count) of masculine and feminine positives, then of masculine and feminine negatives."""


def _statistics(
    table: CoreferenceTable, group: Mapping[str, str], positive: FloatArray, negative: FloatArray
) -> Statistics:
    """Sums per occupation, side and pronoun gender of a row's value for its referent and for the other occupation."""
    occupation = group.get("occupation")
    names = (occupation,) if occupation is not None else table.group_values("occupation")
    feminine = (table.column("pronoun_gender") == "feminine").astype(np.int64)
    shape = {"n_clusters": table.n_clusters, "n_columns": len(names) * _CELLS}
    sums = np.zeros((table.n_clusters, len(names) * _CELLS))
    for key, offset, values in (("occupation", 0, positive), ("other_occupation", 4, negative)):
        used = np.isin(table.column(key), names) & table.scored
        code = np.searchsorted(names, table.column(key)[used])
        column = code * _CELLS + offset + 2 * feminine[used]
        clusters = table.clusters[used]
        sums += sum_by_cluster(clusters, column, values[used], **shape)
        sums += sum_by_cluster(clusters, column + 1, 1.0, **shape)
    complete = ~np.isnan(_gaps(sums.sum(axis=0))).any(axis=-1)
    return Statistics(sums, int(complete.sum()), len(names) - int(complete.sum()))


def _gaps(sums: FloatArray) -> FloatArray:
    """|masculine - feminine| on positives and negatives, shape (..., n_occupations, 2); nan where a cell is empty."""
    cells = sums.reshape(*sums.shape[:-1], -1, 2, 2, 2)  # occupation, positives or negatives, gender, sum or count
    rates = ratio(cells[..., 0], cells[..., 1])
    gaps: FloatArray = np.abs(rates[..., 0] - rates[..., 1])
    return gaps


def _mean_of_defined(values: FloatArray) -> FloatArray:
    """Mean over occupations that have both pronouns on both sides; nan where none has."""
    defined: npt.NDArray[np.bool_] = ~np.isnan(values)
    total = np.where(defined, values, 0.0).sum(axis=-1)
    return ratio(total, defined.sum(axis=-1).astype(np.float64))


def _prediction_statistics(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
    return _statistics(table, group, table.share[:, 0], table.share[:, 1])


def _desirability_statistics(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
    return _statistics(table, group, table.desirability, -table.desirability)


def _one_minus_mean_gap(sums: FloatArray) -> FloatArray:
    return _mean_of_defined(1 - _gaps(sums).sum(axis=-1) / 2)


def _one_minus_mean_desirability_gap(sums: FloatArray) -> FloatArray:
    # A desirability spans 2 where a rate spans 1.
    return _mean_of_defined(1 - _gaps(sums).sum(axis=-1) / 4)


def _largest_gap(sums: FloatArray) -> FloatArray:
    return _mean_of_defined(_gaps(sums).max(axis=-1))


EQUALIZED_ODDS = MetricDefinition[CoreferenceTable](
    name="equalized_odds",
    version="1.0",
    task="coreference",
    unit="occupations",
    minimum=0.0,
    maximum=1.0,
    ideal=lambda table: 1.0,
    slices=("occupation",),
    undefined=needs_referent,
    statistics=_prediction_statistics,
    aggregate=_one_minus_mean_gap,
    interval_method=NORMAL,
    description="Mean over occupations, each the positive class, of 1 - (|TPR he - TPR she| + |FPR he - FPR she|) / 2.",
)

EO_GAP = MetricDefinition[CoreferenceTable](
    name="eo_gap",
    version="1.0",
    task="coreference",
    unit="occupations",
    minimum=0.0,
    maximum=1.0,
    ideal=lambda table: 0.0,
    slices=("occupation",),
    undefined=needs_referent,
    statistics=_prediction_statistics,
    aggregate=_largest_gap,
    interval_method=NORMAL,
    description="Mean over occupations of max(|TPR he - TPR she|, |FPR he - FPR she|), as Fairlearn defines it.",
)

UCERF_GROUP = MetricDefinition[CoreferenceTable](
    name="ucerf_group",
    version="1.0",
    task="coreference",
    unit="occupations",
    minimum=0.0,
    maximum=1.0,
    ideal=lambda table: 1.0,
    slices=("occupation",),
    undefined=needs_referent,
    statistics=_desirability_statistics,
    aggregate=_one_minus_mean_desirability_gap,
    interval_method=NORMAL,
    description=(
        "Equalized odds with mean desirability in the place of rates (U_group, arXiv:2505.23996); the constants are "
        "ours, chosen so that it equals equalized_odds when every answer is certain."
    ),
)
