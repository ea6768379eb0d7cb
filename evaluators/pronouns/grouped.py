"""What tables of records have in common: clusters, groups and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluators.metric import Statistics
from evaluators.statistics.bootstrap import FloatArray, IntArray, ratio, sum_by_cluster
from schemas.lexicon import pronoun_families
from schemas.record import Exchange, Record

BoolArray = npt.NDArray[np.bool_]

FAMILIES: tuple[str, ...] = tuple(pronoun_families())


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """Rows are records."""

    clusters: IntArray
    """Shape (n,): index into the sorted names of all clusters."""
    n_clusters: int
    groups: Mapping[str, npt.NDArray[np.str_]]
    """Per group key one value per row, shape (n,); "" where a record has none."""

    def group_values(self, key: str) -> tuple[str, ...]:
        """Values of a group that occur, sorted; none if the table has no such group."""
        if key not in self.groups:
            return ()
        return tuple(value for value in np.unique(self.groups[key]).tolist() if value)

    def rows(self, group: Mapping[str, str]) -> BoolArray:
        """Mask of the rows of a slice, shape (n,)."""
        mask = np.ones(len(self.clusters), dtype=np.bool_)
        for key, value in group.items():
            mask &= self.groups[key] == value
        return mask

    def mean_statistics(self, group: Mapping[str, str], values: FloatArray, used: BoolArray) -> Statistics:
        """Statistics of the mean of a value per row: its sum and the number of rows, per cluster."""
        rows = self.rows(group)
        chosen = rows & used
        clusters = self.clusters[chosen]
        shape = {"n_clusters": self.n_clusters, "n_columns": 2}
        sums = sum_by_cluster(clusters, 0, values[chosen], **shape) + sum_by_cluster(clusters, 1, 1.0, **shape)
        return Statistics(sums, int(chosen.sum()), int(rows.sum() - chosen.sum()))

    def family_statistics(self, group: Mapping[str, str], correct: FloatArray, used: BoolArray) -> Statistics:
        """Statistics of accuracies per family: what is correct in each family, then the rows of each, per cluster."""
        rows = self.rows(group)
        chosen = rows & used
        codes = np.searchsorted(np.array(sorted(FAMILIES)), self.groups["family"][chosen])
        clusters = self.clusters[chosen]
        shape = {"n_clusters": self.n_clusters, "n_columns": 2 * len(FAMILIES)}
        sums = sum_by_cluster(clusters, codes, correct[chosen], **shape)
        sums += sum_by_cluster(clusters, codes + len(FAMILIES), 1.0, **shape)
        return Statistics(sums, int(chosen.sum()), int(rows.sum() - chosen.sum()))


class Answer(NamedTuple):
    """One answer to an item."""

    record: Record
    exchange: Exchange
    text: str
    """What was generated; empty where nothing came."""
    told: str | None
    """What was read from it; None where nothing was."""


def answers_of(records: Sequence[Record]) -> list[Answer]:
    """Every answer of every record, in order."""
    found = []
    for record in records:
        told = record.reading.answers if record.reading is not None else (None,) * len(record.exchanges)
        for exchange, answer in zip(record.exchanges, told, strict=True):
            found.append(Answer(record, exchange, exchange.text or "", answer))
    return found


def grouped(records: Sequence[Record]) -> tuple[IntArray, int, Mapping[str, npt.NDArray[np.str_]]]:
    """Clusters and groups of records, in the order of the fields of :class:`GroupedTable`."""
    names = sorted({record.cluster for record in records})
    codes = {name: index for index, name in enumerate(names)}
    keys = sorted({key for record in records for key in record.groups})
    clusters = np.array([codes[record.cluster] for record in records], dtype=np.int64)
    return clusters, len(names), {key: np.array([record.groups.get(key, "") for record in records]) for key in keys}


def mean(sums: FloatArray) -> FloatArray:
    """First column over the second."""
    return ratio(sums[..., 0], sums[..., 1])


def uniformity(sums: FloatArray, *, ddof: int) -> FloatArray:
    """1 / (1 + CV) of the accuracies of all families: 1 where they are equal, also where they are equally bad.

    Args:
        sums: Shape (..., 22): correct answers per family, then answers per family.
        ddof: 1 for the standard deviation of a sample, 0 for that of a population.

    Returns:
        Shape (...,); 0 where no family has a correct answer, nan where a family has no answers.

    References:
        Shan et al. 2025, arXiv:2506.15568, definitions of GDR and PE.
    """
    n_families = sums.shape[-1] // 2
    accuracy = ratio(sums[..., :n_families], sums[..., n_families:])
    average = accuracy.mean(axis=-1)
    deviation = accuracy.std(axis=-1, ddof=ddof)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(average == 0, 0.0, average / (average + deviation))
