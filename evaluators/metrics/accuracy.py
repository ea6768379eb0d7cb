"""Measures how often the referent is predicted, overall and on pro- and anti-stereotypical items."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.coreference.contrasts import (
    contrast_statistics,
    difference_of_means,
    needs_referent,
    needs_right_answers,
)
from evaluators.coreference.table import CoreferenceTable
from evaluators.metric import MetricDefinition
from evaluators.statistics.record_tables import Statistics, mean


def _correct(table: CoreferenceTable, group: Mapping[str, str]) -> Statistics:
    return table.mean_statistics(group, table.share[:, 0], table.scored)


ACCURACY = MetricDefinition[CoreferenceTable](
    name="accuracy",
    version="1.0",
    task="coreference",
    unit="items",
    minimum=0.0,
    maximum=1.0,
    ideal=lambda table: 1.0,
    slices=("stereotype", "pronoun_gender", "occupation"),
    undefined=needs_referent,
    statistics=_correct,
    aggregate=mean,
    description="Share of items whose most probable outcome is the referent; if t outcomes tie, each counts 1/t.",
)

ACCURACY_GAP = MetricDefinition[CoreferenceTable](
    name="accuracy_gap",
    version="1.1",
    task="coreference",
    unit="items",
    minimum=-1.0,
    maximum=1.0,
    ideal=lambda table: 0.0,
    slices=(),
    undefined=needs_right_answers,
    statistics=lambda table, group: contrast_statistics(table, table.share[:, 0], table.scored),
    aggregate=difference_of_means,
    description="Accuracy on pro-stereotypical items minus accuracy on anti-stereotypical items "
    "(arXiv:1804.06876); undefined if no answer is right.",
)
