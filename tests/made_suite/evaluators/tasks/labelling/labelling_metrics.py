"""Accuracy of labels, and confidence on the items that support the measurement."""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.metric import MetricDefinition
from evaluators.statistics.record_tables import MeasureTable
from schemas.files.record_columns import RecordColumns


def values_of(records: RecordColumns) -> dict[str, FloatArray]:
    """Return accuracy (split test) and confidence (split bias) of each record; nan where a record has none."""
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
    return {"accuracy": accuracy, "confidence": confidence}


def _definition(name: str, description: str) -> MetricDefinition[MeasureTable]:
    return MetricDefinition[MeasureTable](
        name=name,
        task="labelling",
        unit_of_suite="parts",
        ideal=1.0,
        statistics=lambda table, group: table.mean_of(name, group),
        description=description,
    )


ACCURACY = _definition("accuracy", "Share of right labels.")
CONFIDENCE = _definition("confidence", "Mean probability of the best label on the items of split bias.")
