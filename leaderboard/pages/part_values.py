"""Measures each part of a suite in a result, and remembers it by the hash of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.benchmark import load_benchmark
from evaluators.metric import MetricInputs, Value
from evaluators.runs.measure.measuring import Measurement, metric_definitions, read_inputs
from evaluators.task import load_task
from leaderboard.pages.tables import TableView
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric
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


class Labels(NamedTuple):
    """The labels of a part and how a model uses them, one value for each label."""

    names: Sequence[str]
    n_right: Sequence[int]
    shares: Sequence[float | None]
    """Share of the answers that choose the label."""
    priors: Sequence[float | None]
    are_same: bool
    """True if all items offer the same labels; False if each brings its own."""
    why_no_share: str | None
    why_no_prior: str | None


class PartOfResult(NamedTuple):
    """One part of a suite in one result."""

    part: str
    values: Mapping[str, PartValue]
    """Value of each metric by its name."""
    groups: Mapping[str, str]
    """Facts about the part, by name."""
    labels: Labels | None
    """Labels of the part; None if the task reports none."""


def part_metrics(section: TableView) -> tuple[str, ...]:
    """Return the metrics that are computed on each part: those that the terminal shows, and those of summaries."""
    signature = section.table.signature
    benchmark = load_benchmark(signature.benchmark)
    known = [one.name for one in metric_definitions(signature.task)]
    wanted = {*(benchmark.printed_metrics or known), *shown_metrics(section)}
    printed = [name for name in benchmark.printed_metrics if name in known]
    return tuple(dict.fromkeys([*shown_metrics(section), *printed, *(name for name in known if name in wanted)]))


def shown_metrics(section: TableView) -> tuple[str, ...]:
    """Return the metrics that tables of parts show: the ranking one, and those of summaries."""
    known = {one.name for one in metric_definitions(section.table.signature.task)}
    primary = load_benchmark(section.table.signature.benchmark).primary_metric
    names = [*([] if primary is None else [primary]), *(column.metric for column in section.summarised)]
    return tuple(dict.fromkeys(name for name in names if name in known))


def floors(task: str) -> dict[str, str]:
    """Return the name of the metric with the value by chance, by the name of each metric that has one."""
    return {one.name: one.floor for one in metric_definitions(task) if one.floor is not None}


def why_unmeasured(entry: Entry) -> str | None:
    """Return why the parts of a result cannot be measured one by one; None if they can be."""
    if entry.result.withheld is not None:
        return "its texts are kept elsewhere, and the sums that stand in for them are those of the whole suite"
    return None if entry.folder is not None else "its records are not on the machine that built the site"


def parts_of(entry: Entry, names: Sequence[str], memory: Memory) -> list[PartOfResult]:
    """Return every part of a result, in the order of its records.

    Args:
        entry: A result on a suite whose parts can be measured.
        names: Names of the metrics; those by chance that belong to them are added.
        memory: The memory of this machine.
    """
    task = entry.result.signature.task
    by_chance = floors(task)
    chance = [by_chance[name] for name in names if name in by_chance and by_chance[name] not in names]
    parts: dict[str, JsonValue] = {
        "records": entry.result.records.sha256,
        "task": task,
        "metrics": list(names),
        "by_chance": list(chance),
    }
    for file in (entry.result.adapters, entry.result.corrections):
        if file is not None:
            parts[file.path] = file.sha256
    stored = memory.get(_KIND, parts)
    if not isinstance(stored, list):
        assert entry.folder is not None
        records = verified_parts(entry.folder, entry.result)
        inputs = read_inputs(entry.folder, entry.result)
        stored = [_measured(one, task, inputs, names, chance) for one in records]
        memory.put(_KIND, parts, stored)
    return [_read(cast("dict[str, JsonValue]", one), [*names, *chance]) for one in stored]


def _measured(
    records: RecordColumns, task: str, inputs: MetricInputs, names: Sequence[str], chance: Sequence[str]
) -> JsonValue:
    """Return the values of one part, in the form of the memory.

    Args:
        records: All records of the part.
        task: Name of the task that wrote them.
        inputs: Corrections of calibrated metrics of the result's folder.
        names: Metrics to compute with intervals.
        chance: Metrics to compute without.
    """
    definitions = {one.name: one for one in metric_definitions(task)}
    source = Measurement.of([records], task, inputs).source
    metrics = [definitions[name].compute(source, {}) for name in names]
    loaded = load_task(task)
    fields: dict[str, JsonValue] = {
        "part": records.columns["config"].texts[0],
        "values": [*map(_value, metrics), *(_by_chance(definitions[name].value_of(source, {})) for name in chance)],
        "groups": {},
        "labels": None,
    }
    if loaded.reports_parts:
        report = loaded.part_report(records)
        fields["groups"] = dict(report.groups)
        columns: list[JsonValue] = [list(column) for column in zip(*report.labels, strict=True)] or [[], [], [], []]
        fields["labels"] = [*columns, report.are_same, report.why_no_share, report.why_no_prior]
    return fields


def _value(metric: Metric) -> JsonValue:
    interval = metric.interval
    ends: list[JsonValue] = [None, None] if interval is None else [interval.low, interval.high]
    return [metric.value, *ends, metric.reason if metric.value is None else metric.interval_reason]


def _by_chance(value: Value) -> JsonValue:
    return [value.value, None, None, value.reason or "no interval is computed"]


def _read(stored: Mapping[str, JsonValue], names: Sequence[str]) -> PartOfResult:
    labels = stored["labels"]
    values = cast("list[tuple[float, float, float, str]]", stored["values"])
    return PartOfResult(
        part=str(stored["part"]),
        values={name: PartValue(*value) for name, value in zip(names, values, strict=True)},
        groups=cast("dict[str, str]", stored["groups"]),
        labels=None
        if labels is None
        else Labels(*cast("tuple[list[str], list[int], list[float], list[float], bool, str, str]", labels)),
    )
