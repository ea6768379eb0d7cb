"""Measures a result by stored sums over clusters, where its generated texts are kept elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.metric import Facts, MetricDefinition, Source
from evaluators.runs.measuring import Measurement, metric_definitions
from evaluators.statistics.record_tables import Statistics
from evaluators.text_scores import TextScores, read_scores
from schemas.cluster_sums import ClusterSums
from schemas.errors import DataError
from schemas.record_columns import RecordColumns
from schemas.result import Result
from schemas.run_folder import SUBMIT_AGAIN, read_sums


class StoredSums:
    """The statistics of a result, as they were stored when its texts were at hand."""

    def __init__(self, rows: Iterable[ClusterSums], baseline: str | None = None) -> None:
        """Index the statistics.

        Args:
            rows: All rows of a file of sums.
            baseline: Baseline whose statistics are meant; None for those of the model.
        """
        self._rows: dict[str, dict[tuple[tuple[str, str], ...], ClusterSums]] = {}
        for row in rows:
            if row.baseline == baseline:
                self._rows.setdefault(row.metric, {})[_key(row.group)] = row

    def facts(self, definition: MetricDefinition[Any]) -> Facts:
        """Return the facts about a metric; it is undefined if its sums are missing or are of another version."""
        row = self._rows.get(definition.name, {}).get(())
        if row is None:
            told = "its sums were not stored, and the texts that it is computed from are kept elsewhere"
            return Facts(definition.version, told, None)
        if row.version != definition.version and not row.version.startswith(f"{definition.version}."):
            told = f"its sums are of version {row.version}; version {definition.version} is computed from the texts"
            return Facts(definition.version, f"{told}, which are kept elsewhere", None)
        return Facts(row.version, row.reason, row.ideal)

    def groups(self, definition: MetricDefinition[Any]) -> Sequence[Mapping[str, str]]:
        """Return the slices of a metric, all items first; only these if the metric is undefined."""
        if self.facts(definition).undefined is not None:
            return [{}]
        return [row.group for row in self._rows[definition.name].values() if {*row.group} <= {*definition.slices}]

    def statistics(self, definition: MetricDefinition[Any], group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a metric on a slice.

        Raises:
            DataError: there are none.
        """
        row = self._rows.get(definition.name, {}).get(_key(group))
        if row is None:
            raise DataError(f"metric {definition.name} has no sums on {dict(group) or 'all items'}; {SUBMIT_AGAIN}")
        sums = np.array(row.sums, dtype=np.float64).reshape(row.n_columns, -1)
        return Statistics(np.ascontiguousarray(sums.T), row.n, row.n_excluded)


def _key(group: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(group.items()))


def rows_of(
    definitions: Sequence[MetricDefinition[Any]], source: Source, baseline: str | None = None
) -> Iterator[ClusterSums]:
    """Yield the statistics of metrics on all their slices as rows.

    Args:
        definitions: The metrics.
        source: The statistics.
        baseline: Baseline that the statistics belong to; None if they are those of the model.
    """
    for definition in definitions:
        facts = source.facts(definition)
        for group in source.groups(definition):
            found = None if facts.undefined is not None else source.statistics(definition, group)
            yield ClusterSums(
                metric=definition.name,
                version=facts.version,
                baseline=baseline,
                group=dict(group),
                reason=facts.undefined,
                ideal=facts.ideal,
                n=0 if found is None else found.n,
                n_excluded=0 if found is None else found.n_excluded,
                n_columns=0 if found is None else found.cluster_sums.shape[1],
                sums=() if found is None else tuple(found.cluster_sums.T.ravel().tolist()),
            )


def measurement_of(
    folder: Path, result: Result, parts: Iterable[RecordColumns], scores: TextScores | None = None
) -> Measurement:
    """Return the measurement of a result: from its records and scores, or from its sums if its texts are elsewhere.

    Args:
        folder: Folder of the result.
        result: The result in it.
        parts: The records of each part, each of which is read once.
        scores: Scores of its texts; None to read them.

    Raises:
        DataError: a file is damaged, or the records do not come from the task.
    """
    signature = result.signature
    if result.withheld is None:
        known = read_scores(folder, result.scores) if scores is None else scores
        return Measurement.of(parts, signature.task, known, is_suite=bool(signature.parts))
    deque(parts, maxlen=0)  # Whoever made the parts checks them while they are read.
    rows = read_sums(folder, result.withheld.sums)
    n_clusters = max((len(row.sums) // row.n_columns for row in rows if row.n_columns), default=0)
    if n_clusters > result.records.n_rows:
        told = f"has sums over {n_clusters} clusters of {result.records.n_rows} items"
        raise DataError(f"{folder}: {told}; {SUBMIT_AGAIN}")
    names = {definition.name for definition in metric_definitions(signature.task)}
    if strange := sorted({row.metric for row in rows} - names):
        raise DataError(f"{folder}: has sums of '{strange[0]}', which is no metric of {signature.task}; {SUBMIT_AGAIN}")
    return Measurement(signature.task, StoredSums(rows))
