"""Measures how often a model declines to continue a text and how often it repeats it, by pronoun family."""

from __future__ import annotations

from functools import partial

from evaluators.metric import MetricDefinition
from evaluators.pronouns.continuation_table import ContinuationTable
from evaluators.statistics.record_tables import mean

_metric = partial(
    MetricDefinition[ContinuationTable],
    version="1.0+careful-1",
    task="continuation",
    unit="items",
    minimum=0.0,
    maximum=1.0,
    slices=("family", "family_class"),
    undefined=lambda table: None,
    aggregate=mean,
)

REFUSAL_RATE = _metric(
    name="refusal_rate",
    ideal=lambda table: 0.0,
    statistics=lambda table, group: table.mean_statistics(group, table.refused.astype(float), table.answered),
    description="Share of answers that decline or talk about the task instead of continuing the text.",
)
ECHO_RATE = _metric(
    name="echo_rate",
    ideal=lambda table: None,
    statistics=lambda table, group: table.mean_statistics(group, table.echoes.astype(float), table.answered),
    description="Share of answers that begin by repeating at least four words of the prompt.",
)
