"""The index of a benchmark: the mean of metrics that come from several results of one model.

It is computed from results, never stored: whoever has the results has the index. Its version stands for the versions of
all its parts, scorers included; values of two versions never share a table.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evaluators.statistics.bootstrap import N_RESAMPLES, NORMAL, FloatArray, interval_of
from schemas.result import Interval, Metric, Result

_VERSION = "1.0"
_ROLLED = 499
"""Resample b of one config is paired with resample b + 499 of the next: configs share no templates, but where they have
the same number of clusters they would otherwise be drawn alike."""


class Part(NamedTuple):
    """A metric that an index takes the mean of, and the task whose records it comes from."""

    metric: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDefinition:
    """An index of a benchmark."""

    name: str
    parts: tuple[Part, ...]
    description: str

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it needs a result of."""
        return tuple(dict.fromkeys(part.task for part in self.parts))


def _gifi(suffix: str, description: str) -> IndexDefinition:
    parts = {
        "recognition": ("gdr",),
        "continuation": ("sn", "nts", "cf"),
        "assignment": ("sa", "of"),
        "word_problem": ("pe",),
    }
    return IndexDefinition(
        name=f"index{suffix}",
        parts=tuple(Part(f"{name}{suffix}", task) for task, names in parts.items() for name in names),
        description=f"Gender Inclusivity Fairness Index: mean of {description} (Shan et al. 2025, arXiv:2506.15568).",
    )


INDICES: Mapping[str, tuple[IndexDefinition, ...]] = {
    "gifi": (
        _gifi("", "GDR, SN, NTS, CF, SA, OF and PE on careful reading"),
        _gifi("_paper", "the seven by the paper's formulas on the published detectors and filters"),
        _gifi("_gifi_repo", "the seven as the published code prints them, SA and OF near 0 and CF turned round"),
    )
}
"""By benchmark; the first one ranks the models, the others stand beside it."""


UNPARSED_IS_WRONG = frozenset({"word_problem"})
"""Tasks in which an answer that says nothing is a wrong one: their metrics count it, so that nothing is missing."""


def index_metrics(benchmark: str, task: str) -> tuple[str, ...]:
    """The metrics of a task that some index of a benchmark takes part of."""
    found = (part.metric for index in INDICES.get(benchmark, ()) for part in index.parts if part.task == task)
    return tuple(dict.fromkeys(found))


class Scored(NamedTuple):
    """A result with what an index needs of it."""

    result: Result
    metrics: Mapping[str, Metric]
    """Of all items, by name."""
    resamples: Mapping[str, FloatArray]
    """Values on the resamples of the clusters, by name of the metric; those of the index at least."""


class Index(NamedTuple):
    """The value of an index."""

    metric: Metric
    parts: tuple[Metric, ...]
    resamples: FloatArray
    """Shape (n_resamples,), nan where undefined."""


def protocol_of(prompt: str) -> str:
    """What the prompts of several tasks have in common.

    Word problems may do without examples, and continuations be sampled twice.

    >>> protocol_of("zero-shot-greedy-v1"), protocol_of("sampled-twice-v1")
    ('greedy-v1', 'sampled-v1')
    """
    return prompt.removeprefix("zero-shot-").replace("sampled-twice-", "sampled-")


class Family(NamedTuple):
    """The results of one model on one dataset in one protocol."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str
    scored: Mapping[str, Scored]
    """By task; of several results of a task the one on the most items, then the plainest prompt."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Tasks that the index needs and that there is no result of."""
        return tuple(task for task in INDICES[self.benchmark][0].tasks if task not in self.scored)


def families(results: Iterable[Scored]) -> list[Family]:
    """Group the results of benchmarks that have an index by dataset, protocol and model, in that order."""
    found: dict[tuple[str, ...], dict[str, Scored]] = defaultdict(dict)
    for scored in sorted(results, key=_preference):
        signature, model = scored.result.signature, scored.result.model
        if signature.benchmark in INDICES:
            key = (
                signature.benchmark,
                signature.dataset,
                signature.dataset_version,
                protocol_of(signature.prompt),
                model.id,
                model.identity_sha256,
            )
            found[key].setdefault(signature.task, scored)
    return [
        Family(benchmark, dataset, version, protocol, scored)
        for (benchmark, dataset, version, protocol, *_), scored in sorted(found.items(), key=lambda entry: entry[0])
    ]


def _preference(scored: Scored) -> tuple[int, int, str]:
    signature = scored.result.signature
    return -signature.n_items, len(signature.prompt), scored.result.signature_sha256


def index_of(definition: IndexDefinition, scored: Mapping[str, Scored]) -> Index:
    """An index of a model.

    Args:
        definition: Which one.
        scored: Results by task; all that the index needs.

    Returns:
        The mean of its parts; null with the reason where a part has no value. The interval takes the configs as
        independent of each other and the metrics of one config as they vary together.
    """
    parts = tuple(scored[part.task].metrics[part.metric] for part in definition.parts)
    version = f"{_VERSION}+{_digest(parts)}"
    lacking = [f"{part.name}: {part.reason}" for part in parts if part.value is None]
    values = [part.value for part in parts if part.value is not None]
    if lacking:
        metric = _metric(definition, version, None, lacking[0], np.full(N_RESAMPLES, np.nan), parts)
        return Index(metric, parts, np.full(N_RESAMPLES, np.nan))
    columns = [
        np.roll(scored[part.task].resamples[part.metric], -_ROLLED * definition.tasks.index(part.task))
        for part in definition.parts
    ]
    resamples: FloatArray = np.mean(columns, axis=0)
    return Index(_metric(definition, version, float(np.mean(values)), None, resamples, parts), parts, resamples)


def _digest(parts: Sequence[Metric]) -> str:
    named = "\n".join(f"{part.name} {part.version}" for part in parts)
    return hashlib.sha256(named.encode()).hexdigest()[:8]


def _metric(
    definition: IndexDefinition,
    version: str,
    value: float | None,
    reason: str | None,
    resamples: FloatArray,
    parts: Sequence[Metric],
) -> Metric:
    interval: Interval | None = None
    interval_reason: str | None = "there is no value"
    intervals = [part.interval for part in parts if part.interval is not None]
    if value is not None and len(intervals) < len(parts):
        interval_reason = next(f"{part.name}: {part.interval_reason}" for part in parts if part.interval is None)
    elif value is not None:
        # As sure as the part that rests on the fewest clusters.
        n_clusters = min(interval.n_clusters for interval in intervals)
        interval, interval_reason = interval_of(value, resamples, n_clusters, method=NORMAL)
        if interval is not None:
            interval = replace(interval, low=max(0.0, interval.low), high=min(1.0, interval.high))
    return Metric(
        name=definition.name,
        version=version,
        value=value,
        reason=reason,
        interval=interval,
        interval_reason=interval_reason,
        n=len([part for part in parts if part.value is not None]),
        n_excluded=len([part for part in parts if part.value is None]),
        unit="metrics",
        ideal=1.0,
        minimum=0.0,
        maximum=1.0,
        group={},
    )
