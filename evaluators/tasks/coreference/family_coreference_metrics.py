"""Measures how alike a model resolves the pronouns of all families, and how often it is right with each.

Wang et al. 2025 (arXiv:2505.23996) define UCerF for two groups and, with a standard deviation, for more. Here the
groups are the pronoun families of Shan et al. 2025 (GIFI, arXiv:2506.15568), in the same sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from evaluators.metric import MetricDefinition, mean_metric
from evaluators.statistics.jackknife import SMALLEST, sums_and_numbers
from evaluators.statistics.record_tables import Statistics, means
from evaluators.tasks.coreference import coreference_metrics, uncertainty_metrics
from evaluators.tasks.coreference.coreference_task import needs_referent
from evaluators.tasks.coreference.family_coreference_task import TWO_FAMILIES, FamilyCoreferenceTable
from evaluators.tasks.coreference.uncertainty_metrics import ucerf, ucerf_of_groups

_TASK = "family_coreference"
_BY_FAMILY = ("family", "family_class")

ACCURACY = replace(
    coreference_metrics.ACCURACY, task=_TASK, slices=(*_BY_FAMILY, "occupation", ("occupation", "family"))
)

WORST_GROUP_ACCURACY = MetricDefinition[FamilyCoreferenceTable](
    name="worst_group_accuracy",
    task=_TASK,
    ideal=1.0,
    undefined=needs_referent,
    statistics=lambda table, group: coreference_metrics.worst_group_statistics(table, "family", table.families),
    aggregate=lambda sums: means(sums).min(axis=-1),
    why_nan=lambda sums: "a family has no answer that could be read" if sums[1::2].any() else None,
    # Which family is the worst can change with a single item, where the jackknife knows nothing about the others.
    interval_method=SMALLEST,
    description="The smallest accuracy of a pronoun family (Sagawa et al. 2020, arXiv:1911.08731).",
)


def _needs_two_families(table: FamilyCoreferenceTable) -> str | None:
    return None if len(table.families) > 1 else "the items have fewer than two pronoun families, so none to compare"


def _of_sets(
    table: FamilyCoreferenceTable,
    group: Mapping[str, str],
    families: Sequence[str],
    of: Callable[[FloatArray], FloatArray],
) -> Statistics:
    """Return the statistics of the mean of a value of each set that has members of some families.

    ``of`` returns the value of each set from the desirabilities of its members, shape (n, n_families).
    """
    rows, desirability = table.sets
    members = desirability[:, [table.families.index(family) for family in families]]
    in_slice = table.rows(group)[rows]
    complete: BoolArray = in_slice & ~np.isnan(members).any(axis=1)
    values = of(members[complete])
    sums = sums_and_numbers(table.clusters[rows[complete]], values, table.n_clusters)
    return Statistics(sums, len(values), int(in_slice.sum()) - len(values))


def _pair_statistics(table: FamilyCoreferenceTable, group: Mapping[str, str]) -> Statistics:
    rest = {key: value for key, value in group.items() if key != TWO_FAMILIES}
    pairs = [group[TWO_FAMILIES].split("/")] if TWO_FAMILIES in group else combinations(table.families, 2)
    parts = [_of_sets(table, rest, pair, lambda sides: ucerf(*sides.T)) for pair in pairs]
    cluster_sums: FloatArray = np.sum([part.cluster_sums for part in parts], axis=0)
    return Statistics(cluster_sums, sum(part.n for part in parts), sum(part.n_excluded for part in parts))


UCERF_OF_FAMILIES = MetricDefinition[FamilyCoreferenceTable](
    name="ucerf_of_families",
    task=_TASK,
    unit="sets",
    ideal=1.0,
    slices=("occupation",),
    undefined=_needs_two_families,
    statistics=lambda table, group: _of_sets(table, group, table.families, ucerf_of_groups),
    description="Mean over sets of 1 minus the population standard deviation of D over the pronoun families, where D "
    "is the signed certainty; sets that lack an answer in a family are excluded.",
)

UCERF_OF_TWO_FAMILIES = MetricDefinition[FamilyCoreferenceTable](
    name="ucerf_of_two_families",
    task=_TASK,
    unit="pairs",
    ideal=1.0,
    slices=(TWO_FAMILIES,),
    undefined=_needs_two_families,
    statistics=_pair_statistics,
    description="Mean over sets and pairs of families of 1 - |D(one family) - D(other family)| / 2; in a "
    "slice, of two families alone.",
)

CERTAINTY = replace(uncertainty_metrics.CERTAINTY, task=_TASK, slices=_BY_FAMILY)

FEMALE_OCCUPATION_RATE: MetricDefinition[FamilyCoreferenceTable] = mean_metric(
    "female_occupation_rate",
    lambda table: table.share_of_occupation("female_occupation"),
    where=lambda table: table.usable,
    task=_TASK,
    ideal=0.5,
    slices=_BY_FAMILY,
    undefined=lambda table: "the items have a right answer, which tells the occupation" if table.has_referent else None,
    description="Share of items whose more probable occupation is the one that more women than men have; ties count "
    "half. With she it is the stereotype lean, with he 1 minus that; other families have no stereotype.",
)

UNDETERMINED_RATE = replace(coreference_metrics.UNDETERMINED_RATE, task=_TASK, slices=_BY_FAMILY)
