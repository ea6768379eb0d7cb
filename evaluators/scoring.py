"""From records to metrics; needs neither the model nor the dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from evaluators.bootstrap import N_RESAMPLES, FloatArray
from evaluators.metric import MetricDefinition
from evaluators.task import load_task
from schemas import plugins
from schemas.errors import ConfigError
from schemas.record import Record
from schemas.result import Metric


@cache
def metric_definitions(task: str) -> tuple[MetricDefinition[Any], ...]:
    """Every metric of a task, found in the files of ``evaluators.metrics``, ordered by file and place."""
    found = []
    for name in plugins.names("evaluators.metrics"):
        module = plugins.load("evaluators.metrics", name, kind="metric file")
        found += [
            value for value in vars(module).values() if isinstance(value, MetricDefinition) and value.task == task
        ]
    return tuple(found)


def compute_metrics(records: Sequence[Record], task: str) -> tuple[Metric, ...]:
    """Every metric of a task on records, overall and by slice.

    Args:
        records: All records of one config and prompt, those without a reading too: they are counted.
        task: Name of the task that wrote them.

    Returns:
        One entry per metric and slice, also where the value is null.

    Raises:
        DataError: the records are not of this task, or of several prompts or configs.
    """
    table = load_task(task).table(records)
    return tuple(
        definition.compute(table, group)
        for definition in metric_definitions(task)
        for group in _groups(definition, table)
    )


def _groups(definition: MetricDefinition[Any], table: Any) -> Iterator[Mapping[str, str]]:
    yield {}
    # A metric that is undefined on the whole is undefined on each slice; one null says so.
    if definition.undefined(table) is None:
        for key in definition.slices:
            for value in table.group_values(key):
                yield {key: value}


def resampled_values(
    records: Sequence[Record], task: str, name: str, group: Mapping[str, str] | None = None
) -> FloatArray:
    """Values of one metric on the resamples of the clusters.

    Resample b draws the same clusters for all results of one signature, so that differences of results are paired.

    Args:
        records: All records of one config and prompt.
        task: Name of the task that wrote them.
        name: Name of the metric.
        group: The slice; all items if left out.

    Returns:
        Shape (n_resamples,), nan where the metric is undefined on the resample.

    Raises:
        ConfigError: there is no such metric.
    """
    definitions = {definition.name: definition for definition in metric_definitions(task)}
    if name not in definitions:
        raise ConfigError(f"metric '{name}' does not exist for task '{task}'; have: {', '.join(definitions)}")
    table = load_task(task).table(records)
    if definitions[name].undefined(table) is not None:
        return np.full(N_RESAMPLES, np.nan)
    return definitions[name].resampled(table, group or {})
