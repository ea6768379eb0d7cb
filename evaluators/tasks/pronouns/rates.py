"""Rates of answers, of whatever task on texts in pronoun families: how often one declines, how often one repeats."""

from __future__ import annotations

from typing import Any

from evaluators.metric import MetricDefinition, mean_metric


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
    return mean_metric(
        "refusal_rate",
        lambda table: table.refused,
        where=lambda table: table.answered,
        task=task,
        version="1.0+careful-1",
        ideal=0.0,
        slices=slices,
        description=description,
    )


def echo_rate(task: str, *, slices: tuple[str, ...] = ("family",)) -> MetricDefinition[Any]:
    """Define the share of answers that begin by repeating the prompt.

    Args:
        task: Name of the task; the rows of its table are answers, with masks ``answered`` and ``echoes``.
        slices: Groups by which the rate is also given.
    """
    return mean_metric(
        "echo_rate",
        lambda table: table.echoes,
        where=lambda table: table.answered,
        task=task,
        version="1.0+careful-1",
        slices=slices,
        description="Share of answers that begin by repeating at least four words of the prompt.",
    )
