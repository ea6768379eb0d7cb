"""Accuracy of labels, and confidence on the items that support the measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from evaluators.metric import MetricDefinition
from evaluators.statistics.bootstrap import FloatArray
from evaluators.statistics.record_tables import GroupedTable, Statistics, mean
from schemas.record_columns import RecordColumns


@dataclass(frozen=True, eq=False)
class LabelTable(GroupedTable):
    """Records of the task ``labelling`` as arrays: one row per item of a config, or one per part of a suite."""

    accuracy: FloatArray
    """Share of right labels on the items of split test, shape (n,); nan where there is none."""
    confidence: FloatArray
    """Mean probability of the best label on the items of split bias, shape (n,); nan where there is none."""

    @classmethod
    def of_items(cls, records: RecordColumns) -> LabelTable:
        """Build the table of a config."""
        rows = np.arange(len(records))
        return cls(rows, len(rows), {}, *_values(records))

    @classmethod
    def of_parts(cls, parts: Iterable[RecordColumns]) -> LabelTable:
        """Build the table of a suite."""
        means = [[_mean(values) for values in _values(records)] for records in parts]
        rows = np.arange(len(means))
        return cls(rows, len(rows), {}, *np.array(means).reshape(-1, 2).T)

    def mean_of(self, values: FloatArray, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of the mean of the rows that have a value."""
        return self.mean_statistics(group, np.nan_to_num(values), ~np.isnan(values))


def _values(records: RecordColumns) -> tuple[FloatArray, FloatArray]:
    """Return accuracy and confidence of each record; nan where a record has none."""
    outcomes, shares = (records.readings[name].lists for name in ("outcomes", "probabilities"))
    texts, values, ends = outcomes.values.texts, shares.values.numbers, shares.offsets.tolist()
    accuracy, confidence = np.full((2, len(records)), np.nan)
    rows = zip(records.columns["split"].texts, records.columns["target"].texts, strict=True)
    for place, (split, target) in enumerate(rows):
        first, end = ends[place], ends[place + 1]
        if first == end:
            continue
        own = values[first:end]
        if split == "bias":
            confidence[place] = own.max()
        elif split == "test" and target is not None:
            best = np.flatnonzero(own >= own.max() - 1e-9)
            accuracy[place] = np.mean([texts[first + one] == target for one in best])
    return accuracy, confidence


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def _definition(name: str, description: str) -> MetricDefinition[LabelTable]:
    return MetricDefinition[LabelTable](
        name=name,
        version="1.0",
        task="labelling",
        unit="parts or items",
        minimum=0.0,
        maximum=1.0,
        ideal=lambda table: 1.0,
        slices=(),
        undefined=lambda table: None,
        statistics=lambda table, group: table.mean_of(getattr(table, name), group),
        aggregate=mean,
        description=description,
    )


ACCURACY = _definition("accuracy", "Share of right labels.")
CONFIDENCE = _definition("confidence", "Mean probability of the best label on the items of split bias.")
