"""Measures each part of a suite in a result, and remembers it by the hash of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from biasboard.ground.memory import Memory
from evaluators.metric import MetricInputs
from evaluators.runs.measure.measuring import Measurement, metric_definitions, read_inputs
from evaluators.task import load_task
from evaluators.task_abilities import PartReport, ReportsLabels
from leaderboard.verify.entries import Entry
from leaderboard.verify.intake import contents_of
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import verified_parts

_KIND = "parts of a suite"


class PartValue(NamedTuple):
    """The value of a metric on one part, with its interval."""

    value: float | None
    low: float | None
    high: float | None
    reason: str | None
    """Reason why there is no value, or no interval; None if there are both."""


class PartOfResult(NamedTuple):
    """One part of a suite in one result."""

    part: str
    values: Mapping[str, PartValue]
    """Value of each metric by its name."""
    report: PartReport | None
    """Labels and facts of the part; None if the task reports none."""


def floors(task: str) -> dict[str, str]:
    """Return the name of the metric with the value by chance, by the name of each metric that has one."""
    return {one.name: one.floor for one in metric_definitions(task) if one.floor is not None}


def why_unmeasured(entry: Entry) -> str | None:
    """Return why the parts of a result cannot be measured one by one; None if they can be."""
    if entry.result.withheld is not None:
        return "its texts are kept elsewhere, and the sums that stand in for them are those of the whole suite"
    return None if entry.folder is not None else "its records are not on the machine that built the site"


def parts_of(entry: Entry, names: Sequence[str], memory: Memory) -> dict[str, PartOfResult]:
    """Return every part of a result by its name, in the order of its records.

    Args:
        entry: A result on a suite whose parts can be measured.
        names: Names of the metrics; those by chance that belong to them are added.
        memory: The memory of this machine.
    """
    result, folder, task = entry.result, entry.folder, entry.result.signature.task
    assert folder is not None
    by_chance = floors(task)
    chance = [by_chance[name] for name in names if name in by_chance and by_chance[name] not in names]

    def measured() -> list[PartOfResult]:
        inputs = read_inputs(folder, result)
        return [_measured(records, task, inputs, names, chance) for records in verified_parts(folder, result)]

    parts = contents_of(result) | {"metrics": list(names), "by_chance": list(chance)}
    return {one.part: one for one in memory.remembered(_KIND, parts, list[PartOfResult], measured)}


def _measured(
    records: RecordColumns, task: str, inputs: MetricInputs, names: Sequence[str], chance: Sequence[str]
) -> PartOfResult:
    """Return one part.

    Args:
        records: All records of the part.
        task: Name of the task that wrote them.
        inputs: Corrections of calibrated metrics of the result's folder.
        names: Metrics to compute with intervals.
        chance: Metrics to compute without.
    """
    definitions = {one.name: one for one in metric_definitions(task)}
    source = Measurement.of([records], task, inputs).source
    values = {}
    for name in names:
        metric = definitions[name].compute(source, {})
        low, high = (None, None) if metric.interval is None else (metric.interval.low, metric.interval.high)
        reason = metric.reason if metric.value is None else metric.interval_reason
        values[name] = PartValue(metric.value, low, high, reason)
    for name in chance:
        by_chance = definitions[name].value_of(source, {})
        values[name] = PartValue(by_chance.value, None, None, by_chance.reason or "no interval is computed")
    loaded = load_task(task)
    report = loaded.part_report(records) if isinstance(loaded, ReportsLabels) else None
    return PartOfResult(str(records.columns["config"].texts[0]), values, report)
