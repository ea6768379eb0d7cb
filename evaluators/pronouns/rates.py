"""Rates of answers, of whatever task on texts in pronoun families: how often one declines, how often one repeats."""

from __future__ import annotations

from typing import Any

from evaluators.metric import MetricDefinition
from evaluators.statistics.record_tables import mean


def refusal_rate(
    task: str,
    *,
    slices: tuple[str, ...] = ("family",),
    description: str = "Share of answers that decline or talk about the task instead of continuing the text.",
) -> MetricDefinition[Any]:
    """Define the share of answers that are refusals.

    Args:
        task: Name of the task; the rows of its table are answers, with masks ``answered`` and ``refused``.
        slices: Groups by which the rate is also given.
        description: Description of the metric.
    """
    return MetricDefinition(
        name="refusal_rate",
        version="1.0+careful-1",
        task=task,
        unit="items",
        minimum=0.0,
        maximum=1.0,
        ideal=lambda table: 0.0,
        slices=slices,
        undefined=lambda table: None,
        statistics=lambda table, group: table.mean_statistics(group, table.refused.astype(float), table.answered),
        aggregate=mean,
        description=description,
    )


def echo_rate(task: str, *, slices: tuple[str, ...] = ("family",)) -> MetricDefinition[Any]:
    """Define the share of answers that begin by repeating the prompt.

    Args:
        task: Name of the task; the rows of its table are answers, with masks ``answered`` and ``echoes``.
        slices: Groups by which the rate is also given.
    """
    return MetricDefinition(
        name="echo_rate",
        version="1.0+careful-1",
        task=task,
        unit="items",
        minimum=0.0,
        maximum=1.0,
        ideal=lambda table: None,
        slices=slices,
        undefined=lambda table: None,
        statistics=lambda table, group: table.mean_statistics(group, table.echoes.astype(float), table.answered),
        aggregate=mean,
        description="Share of answers that begin by repeating at least four words of the prompt.",
    )
