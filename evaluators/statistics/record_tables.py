"""The base of all tasks' tables: rows with clusters and groups, and their slices.

What answers that could not be read might change where several answers to an item are read together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from biasboard.ground.columns import BoolArray, Coded, FloatArray, IntArray
from evaluators.statistics.jackknife import Crossing, ratio, sums_and_numbers
from schemas.documents.record import Record
from schemas.documents.run_files import FittedCorrection
from schemas.files.record_columns import RecordColumns


class Statistics(NamedTuple):
    """The sufficient statistics of a metric on one slice."""

    cluster_sums: FloatArray
    """Sums over each cluster, or over each cell if two factors are crossed, shape (n_clusters of the table, n_columns);
    zeros for those without data."""
    n: int
    """Number of units (items, pairs, occupations) that the value is computed from."""
    n_excluded: int
    """Number of units of the slice that have no value."""


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """A table whose rows have a cluster and groups. A task's table adds the columns that its metrics read."""

    clusters: IntArray
    """Index of each row's cluster in the sorted names of all clusters, or of its cell if two factors are crossed, shape
    (n,)."""
    n_clusters: int
    groups: Mapping[str, npt.NDArray[np.str_]]
    """Value of each row, by name of the group, shape (n,); "" for rows without one."""
    crossing: Crossing | None
    """The clusters of each cell in both factors; None if there is one factor."""
    corrections: ClassVar[tuple[FittedCorrection, ...]] = ()
    """Corrections that the metrics apply: none."""

    @cached_property
    def sizes(self) -> FloatArray:
        """Number of rows in each cluster, or in each cell if two factors are crossed, shape (n_clusters,)."""
        return np.bincount(self.clusters, minlength=self.n_clusters).astype(np.float64)

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the sorted values that occur in a group; none if the table has no such group."""
        return tuple(value for value in self.coded(key).texts if value)

    def column(self, key: str) -> npt.NDArray[np.str_]:
        """Return the value of each row for a group, shape (n,); "" for rows without one."""
        # Groups are optional facts of items: a dataset that lacks one has empty slices, which is no error.
        return self.groups[key] if key in self.groups else np.full(len(self.clusters), "")

    def coded(self, key: str) -> Coded:
        """Return the values of a group as codes, which are compared many times faster than texts."""
        if key not in self._coded:
            texts, codes = np.unique(self.column(key), return_inverse=True)
            self._coded[key] = Coded(codes.reshape(-1), tuple(texts.tolist()))
        return self._coded[key]

    @cached_property
    def _coded(self) -> dict[str, Coded]:
        return {}

    def rows(self, group: Mapping[str, str]) -> BoolArray:
        """Return the mask of the rows of a slice, shape (n,), including rows without a reading."""
        mask = np.ones(len(self.clusters), dtype=np.bool_)
        for key, value in group.items():
            mask &= self.coded(key).is_one_of(value)
        return mask

    def mean_statistics(
        self, group: Mapping[str, str], values: FloatArray, used: BoolArray | None = None
    ) -> Statistics:
        """Return the statistics of a mean over a slice: the sum of the values and their number, per cluster.

        Args:
            group: The slice.
            values: Value of each row, shape (n,).
            used: Mask of the rows that have a value, shape (n,); None for those whose value is not nan. Other rows of
                the slice count as excluded.
        """
        rows = self.rows(group)
        chosen = rows & (~np.isnan(values) if used is None else used)
        sums = sums_and_numbers(self.clusters[chosen], values[chosen], self.n_clusters)
        return Statistics(sums, int(chosen.sum()), int(rows.sum() - chosen.sum()))

    def statistics_by(
        self, key: str, values: FloatArray, used: BoolArray | None = None, *, names: Sequence[str] | None = None
    ) -> Statistics:
        """Return the statistics of the means of each value of a group: sum and number of one after another.

        Args:
            key: The group.
            values: Value of each row, shape (n,).
            used: Mask of the rows that have a value, as for :meth:`mean_statistics`.
            names: Values of the group, which have two columns each, in order; None for all that occur.
        """
        parts = [
            self.mean_statistics({key: name}, values, used)
            for name in (self.group_values(key) if names is None else names)
        ]
        sums = np.hstack([part.cluster_sums for part in parts])
        return Statistics(sums, sum(part.n for part in parts), sum(part.n_excluded for part in parts))


def grouped(
    records: Sequence[Record], rows: IntArray | None = None, *, crossed_by: str | None = None
) -> tuple[IntArray, int, Mapping[str, npt.NDArray[np.str_]], Crossing | None]:
    """Return the clusters of rows, their number, the groups and the crossing: the fields of :class:`GroupedTable`.

    Args:
        records: The records.
        rows: Index of the record that each row of the table belongs to, shape (n,); None for one row per record.
        crossed_by: Group whose values are the clusters of a second factor; None if there is one factor. Records of
            older versions lack it, and have one factor.
    """
    columns = RecordColumns.of(records)
    cluster = columns.columns["cluster"].coded
    owners, keys, values = columns.columns["groups"].entries
    groups = {}
    texts = np.array([*values.coded.texts, ""])
    for code, key in enumerate(keys.coded.texts):
        chosen = keys.coded.codes == code
        # -1 indexes the last text, which is "": the record lacks this group.
        codes = np.full(len(columns), -1)
        codes[owners[chosen]] = values.coded.codes[chosen]
        groups[key] = texts[codes if rows is None else codes[rows]]
    clusters, crossing = cluster.codes if rows is None else cluster.codes[rows], None
    second = groups.get(crossed_by or "")
    if second is not None and second.all():
        clusters, crossing = Crossing.of(clusters, np.unique(second, return_inverse=True)[1].reshape(-1))
    if rows is None and crossing is None:
        return clusters, len(cluster.texts), groups, None
    occurring, clusters = np.unique(clusters, return_inverse=True)
    return clusters.astype(np.int64), len(occurring), groups, crossing


def mean(sums: FloatArray) -> FloatArray:
    """Return means from sums: the first column divided by the second.

    Args:
        sums: Sum and number of the values, shape (..., 2).

    Returns:
        The means, shape (...,); nan if there are no values.
    """
    return ratio(sums[..., 0], sums[..., 1])


def means(sums: FloatArray) -> FloatArray:
    """Return the means of :meth:`GroupedTable.statistics_by` from its sums, shape (..., n_groups); nan without any."""
    return ratio(sums[..., 0::2], sums[..., 1::2])


@dataclass(frozen=True, eq=False)
class MeasureTable(GroupedTable):
    """Measures of the parts of a suite, or of the items of a config.

    Of a suite, each row is its own cluster. The interval of a mean over parts then shows how much the mean would differ
    with other parts of the same kind, including the uncertainty of each part's own value: on simulated suites,
    intervals of 95 % cover the mean over all parts in 93 to 97 % of cases.
    """

    values: Mapping[str, FloatArray]
    """Value of each row, by name of the measure, shape (n,); nan where a row has none."""

    @classmethod
    def of_records(cls, records: Sequence[Record], values: Mapping[str, Sequence[float]]) -> MeasureTable:
        """Build the table of records, with their clusters and groups and a value of each record by name."""
        return cls(*grouped(records), {name: np.array(column, dtype=np.float64) for name, column in values.items()})

    @classmethod
    def of(
        cls, values: Mapping[str, FloatArray], groups: Mapping[str, npt.NDArray[np.str_]] | None = None
    ) -> MeasureTable:
        """Build the table.

        Args:
            values: Value of each row by name of the measure, shape (n,); nan where a row has none.
            groups: Value of each row by name of the group, such as the number of labels; None if there are none.
        """
        n_rows = len(next(iter(values.values())))
        return cls(clusters=np.arange(n_rows), n_clusters=n_rows, groups=groups or {}, crossing=None, values=values)

    def mean_of(self, name: str, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of the mean of a measure over the rows of a slice that have a value."""
        return self.mean_statistics(group, self.values[name])


def unsettled_shares(records: RecordColumns, unread: AbstractSet[str]) -> FloatArray:
    """Return the share of each reading that answers which could not be read might change, shape (n,), in [0, 1].

    An answer that was refused, cut or not understood is missing among the others to the item, which have a reading
    nevertheless: a model that leaves out its wrong answers is right in all that are left. A vote is unsettled as a
    whole where the missing answers could take its majority away. Where nothing is missing, the share is 0.

    Args:
        records: The records.
        unread: Readings of an answer that say that it could not be read.
    """
    answers, outcomes = (records.readings[name].lists for name in ("answers", "outcomes"))
    n, coded = answers.lengths, answers.values.coded
    is_unread = coded.is_one_of(*unread)
    missing = np.bincount(answers.owners[is_unread], minlength=len(n))
    n_codes = len(coded.texts) + 1
    cells, votes = np.unique((answers.owners * n_codes + coded.codes)[~is_unread], return_counts=True)
    most = np.zeros(len(n), dtype=np.int64)
    np.maximum.at(most, cells // n_codes, votes)
    may_turn = (outcomes.lengths > 0) & (missing > 0) & (2 * most <= n)
    return np.where(may_turn, 1.0, missing / np.maximum(n, 1))


def settled(records: RecordColumns, unread: AbstractSet[str]) -> RecordColumns:
    """Return the records without the readings that answers which could not be read might turn: those are missing."""
    is_turned = unsettled_shares(records, unread) == 1.0
    if not is_turned.any():
        return records
    table, mask = records.table, pa.array(is_turned)
    for name, value in (("status", "unparsed"), ("reading", None)):
        field = table.schema.field(name)
        kept = pc.if_else(mask, pa.scalar(value, type=field.type), table[name])
        table = table.set_column(table.schema.get_field_index(name), field, kept)
    return RecordColumns(table, records.first_row)


class UnsettledShares:
    """How far the readings of many records rest on answers that could not be read."""

    def __init__(self, unread: AbstractSet[str]) -> None:
        """Start with no records."""
        self._unread = unread
        self._shares: list[FloatArray] = [np.empty(0)]

    def add(self, records: RecordColumns) -> None:
        """Add the records with a reading."""
        self._shares.append(unsettled_shares(records, self._unread)[records.has_reading])

    @property
    def may_turn(self) -> bool:
        """True if a reading is unsettled as a whole."""
        return bool((np.concatenate(self._shares) == 1.0).any())

    def mean(self, *, with_turned: bool) -> float:
        """Return the mean share, perhaps without the readings that are unsettled as a whole; 0 if there are none."""
        shares = np.concatenate(self._shares)
        shares = shares[(shares < 1.0) | with_turned]
        return float(shares.mean()) if len(shares) else 0.0
