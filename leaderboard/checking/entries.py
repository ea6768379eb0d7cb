"""A result as the board knows it: checked, computed again, with what tables may show of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from evaluators.benchmark import load_benchmark
from evaluators.statistics.bootstrap import FloatArray
from schemas.metric_comparison import MetricKey, key_of
from schemas.result import Metric, Result

MIN_COVERAGE = 0.95
"""Share of the items, and of what the primary metric counts, that must have been scored for a model to be ranked."""

Origin: TypeAlias = Literal["accepted", "local"]


class Root(NamedTuple):
    """A folder in which results are looked for."""

    folder: Path
    origin: Origin

    def place(self, path: Path) -> str:
        """The folder of a file below this one, the same wherever this one lies."""
        return path.parent.relative_to(self.folder).as_posix()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A result whose numbers were computed again and agree."""

    result: Result
    origin: Origin
    place: str
    """Folder of the result relative to where results were looked for."""
    metrics: Mapping[MetricKey, Metric]
    """What tables may show: every metric of the current scoring, null with a reason where the result lacks it."""
    n_recomputed: int
    """How many metrics of the result were compared with the ones computed again."""
    primary_resamples: FloatArray | None
    """The primary metric in each bootstrap resample, shape (n_resamples,), nan where undefined; null if it is null."""
    index_resamples: Mapping[str, FloatArray] = field(default_factory=dict)
    """The same of the metrics that an index of the benchmark takes the mean of, by name."""
    items_fingerprint: str
    """Of what the records say about the items; equal for all results of one signature."""

    def metric(self, name: str, group: Mapping[str, str] | None = None) -> Metric | None:
        """A metric of a slice, of all items by default; none if the scoring does not know it."""
        return self.metrics.get(key_of(name, group or {}))

    @property
    def primary(self) -> Metric | None:
        """The metric that ranks the models of this benchmark; none where no metric does."""
        name = load_benchmark(self.result.signature.benchmark).primary_metric
        return None if name is None else self.metric(name)

    @property
    def is_baseline(self) -> bool:
        """Whether the row is a yardstick rather than a model."""
        return self.result.model.endpoint == "baseline"


def model_label(entry: Entry) -> str:
    """Model id with what tells it from another result of the same id: revision and precision."""
    model = entry.result.model
    details = [text for text in (model.revision, model.precision) if text]
    return model.id if not details else f"{model.id} ({', '.join(details)})"


def why_unranked(entry: Entry) -> str | None:
    """Why a result is in no ranking, whatever its metrics; null if it may be."""
    if entry.is_baseline:
        return "baseline: a yardstick, never ranked"
    if entry.result.model.endpoint == "replay":
        return "replayed: its answers were given elsewhere, and may be those of another row"
    counts = entry.result.counts
    judged, words = counts.scored, "scored"
    signature = entry.result.signature
    if signature.task in load_benchmark(signature.benchmark).unparsed_is_wrong:
        judged, words = counts.scored + counts.unparsed, "judged"
    if judged < MIN_COVERAGE * counts.items:
        return f"{judged} of {counts.items} items {words}, a rank needs {MIN_COVERAGE:.0%}"
    return None


class LeftOut(NamedTuple):
    """A result that is not shown, and why."""

    place: str
    origin: Origin
    reason: str
