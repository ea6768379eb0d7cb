"""Which metrics the columns of a table show, in which order, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from evaluators.runs.measuring import metric_definitions
from leaderboard.checking.entries import Entry
from schemas.result import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One metric of one slice."""

    key: str
    """Name in JSON and CSV."""
    label: str
    metric: str
    group: dict[str, str] = field(default_factory=dict)
    version: str | None = None
    """The one version that the column shows, where rows have several; values of two never share a column."""

    @property
    def name(self) -> str:
        """The label without the version, for a page on which there is one only."""
        return self.label.removesuffix(f", {self.version}")

    def of(self, entry: Entry) -> Metric | None:
        """The metric of a result; none if the scoring of its task does not know it."""
        metric = entry.metric(self.metric, self.group)
        if metric is None or self.version is None or metric.value is None or metric.version == self.version:
            return metric
        reason = f"scored as {metric.version}, this column shows {self.version}"
        return replace(metric, value=None, reason=reason, interval=None, interval_reason=reason, version=self.version)

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


_CONTINUATION = tuple(
    Column(key=name, label=label, metric=name)
    for name, label in {
        "cf": "CF",
        "sn": "SN",
        "nts": "NTS",
        "cf_excess": "CF excess",
        "cf_mean_cosine": "Mean cosine",
        "sentiment_mean": "Sentiment",
        "sentiment_deviation": "Sentiment deviation",
        "toxicity_mean": "Toxicity",
        "toxicity_deviation": "Toxicity deviation",
        "refusal_rate": "Refusal rate",
        "echo_rate": "Echo rate",
        "cf_paper": "CF, paper",
        "sn_paper": "SN, paper",
        "nts_paper": "NTS, paper",
        "cf_gifi_repo": "CF, gifi repo",
        "sn_gifi_repo": "SN, gifi repo",
        "nts_gifi_repo": "NTS, gifi repo",
    }.items()
)


class _Layout(NamedTuple):
    deciders: tuple[str, ...]
    """The layout fits a table if one of these metrics has a value in any of its rows."""
    columns: tuple[Column, ...]


_LAYOUTS = (
    _Layout(("accuracy",), _WITH_REFERENT),
    _Layout(("pro_rate",), _AMBIGUOUS),
    _Layout(("cf", "sn", "nts"), _CONTINUATION),
)


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
        found = [entry.metric(name) for entry in entries for name in layout.deciders]
        if any(metric is not None and metric.value is not None for metric in found):
            return _of_one_version([column for column in layout.columns if _has_value(column, entries)], entries)
    names = dict.fromkeys(name for entry in entries for name, group in entry.metrics if not group)
    plain = (Column(key=name, label=name.replace("_", " "), metric=name) for name in names)
    return _of_one_version([column for column in plain if _has_value(column, entries)], entries)


def _of_one_version(columns: Sequence[Column], entries: Sequence[Entry]) -> tuple[Column, ...]:
    """Columns of which each shows one version: where rows have several, as by two scorers, one column for each."""
    found: list[Column] = []
    for column in columns:
        metrics = [metric for entry in entries if (metric := column.of(entry)) is not None]
        versions = sorted({metric.version for metric in metrics if metric.value is not None})
        if len(versions) == 1:
            found.append(column)
        else:
            found += [
                replace(column, key=f"{column.key}@{version}", label=f"{column.label}, {version}", version=version)
                for version in versions
            ]
    return tuple(found)


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
