"""Which metrics the columns of a table show, in which order, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evaluators.scoring import metric_definitions
from leaderboard.entries import Entry
from schemas.result import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One metric of one slice."""

    key: str
    """Name in JSON and CSV."""
    label: str
    metric: str
    group: dict[str, str] = field(default_factory=dict)

    def of(self, entry: Entry) -> Metric | None:
        """The metric of a result; none if the scoring of its task does not know it."""
        return entry.metric(self.metric, self.group)

    def description(self, task: str) -> str:
        """What the metric is, in the words of the scoring; the slice after it."""
        found = {definition.name: definition.description for definition in metric_definitions(task)}.get(
            self.metric, ""
        )
        if not self.group:
            return found
        return f"{found} Only {', '.join(f'{key} = {value}' for key, value in self.group.items())}."


_UCERF = Column(key="ucerf", label="UCerF", metric="ucerf")
_UNDETERMINED_RATE = Column(key="undetermined_rate", label="Undetermined", metric="undetermined_rate")

_WITH_REFERENT = (
    _UCERF,
    Column(key="accuracy", label="Accuracy", metric="accuracy"),
    Column(key="accuracy_pro", label="Accuracy, pro", metric="accuracy", group={"stereotype": "pro"}),
    Column(key="accuracy_anti", label="Accuracy, anti", metric="accuracy", group={"stereotype": "anti"}),
    Column(key="accuracy_gap", label="Accuracy gap", metric="accuracy_gap"),
    Column(key="desirability_gap", label="Desirability gap", metric="desirability_gap"),
    Column(key="ucerf_group", label="U_group", metric="ucerf_group"),
    Column(key="equalized_odds", label="Equalized odds", metric="equalized_odds"),
    Column(key="eo_gap", label="EO gap", metric="eo_gap"),
    _UNDETERMINED_RATE,
)
_AMBIGUOUS = (
    _UCERF,
    Column(key="pro_rate", label="Pro rate", metric="pro_rate"),
    Column(
        key="pro_rate_masculine", label="Pro rate, masculine", metric="pro_rate", group={"pronoun_gender": "masculine"}
    ),
    Column(
        key="pro_rate_feminine", label="Pro rate, feminine", metric="pro_rate", group={"pronoun_gender": "feminine"}
    ),
    Column(key="certainty", label="Certainty", metric="certainty"),
    _UNDETERMINED_RATE,
)


class _Layout(NamedTuple):
    decider: str
    """The layout fits a table if this metric has a value in any of its rows."""
    columns: tuple[Column, ...]


_LAYOUTS = (_Layout("accuracy", _WITH_REFERENT), _Layout("pro_rate", _AMBIGUOUS))


class Undefined(NamedTuple):
    """A metric that has no value in any row of a table, and why."""

    metric: str
    reason: str


def choose(entries: Sequence[Entry]) -> tuple[Column, ...]:
    """Columns for a table of these results.

    Known layouts come first; a benchmark that none of them fits shows every metric of all items. A column without a
    value in any row is left out: ``undefined`` says why it has none.
    """
    for layout in _LAYOUTS:
        if any((metric := entry.metric(layout.decider)) and metric.value is not None for entry in entries):
            return tuple(column for column in layout.columns if _has_value(column, entries))
    names = dict.fromkeys(name for entry in entries for name, group in entry.metrics if not group)
    plain = (Column(key=name, label=name.replace("_", " "), metric=name) for name in names)
    return tuple(column for column in plain if _has_value(column, entries))


def undefined(entries: Sequence[Entry]) -> tuple[Undefined, ...]:
    """Metrics of all items that are null in every one of these results, with the reason of the first."""
    found = {}
    for name, group in dict.fromkeys(key for entry in entries for key in entry.metrics):
        metrics = [metric for entry in entries if (metric := entry.metrics.get((name, group)))]
        if not group and all(metric.value is None for metric in metrics):
            found[name] = metrics[0].reason or ""
    return tuple(Undefined(name, reason) for name, reason in found.items())


def _has_value(column: Column, entries: Sequence[Entry]) -> bool:
    return any((metric := column.of(entry)) is not None and metric.value is not None for entry in entries)
